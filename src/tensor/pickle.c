/* The interpreter: a stack, a memo, and one case for each opcode (Lib/pickletools.py describes them
 * all). */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "tensor/pickle_global.h"
#include "tensor/pickle_numpy.h"

typedef fac_pickle_value value;

typedef struct machine {
    fac_arena *arena;
    const unsigned char *start, *p, *end;
    value **stack, **memo;
    size_t n, room, memos, room_memos, pairs;
    value *storages;
    value *none, *yes, *no, *mark; /* there is one of each */
    fac_error *err;
} machine;

/* ---- stack and values ---- */

static fac_status no_memory(machine *m) { return fac_raise_memory(m->err, "a pickle"); }
static fac_status broken(machine *m, const char *what) {
    return fac_raise(m->err, FAC_E_FORMAT, "a broken pickle: %s", what);
}

static fac_status push(machine *m, value *v) {
    if (!v || !fac_reserve(&m->stack, &m->room, m->n + 1, sizeof *m->stack)) return no_memory(m);
    m->stack[m->n++] = v;
    return FAC_OK;
}

static value *make(machine *m, fac_pickle_kind kind) {
    value *v = fac_arena_alloc(m->arena, 1, sizeof *v);
    if (v) v->kind = (unsigned char)kind;
    return v;
}

static fac_status push_int(machine *m, fac_pickle_kind kind, int64_t i) {
    value *v = make(m, kind);
    if (v) v->i = i;
    return push(m, v);
}

static value *top(const machine *m, size_t k) { return k < m->n ? m->stack[m->n - 1 - k] : NULL; }
static bool is(const value *v, fac_pickle_kind kind) { return v && v->kind == kind; }

/* Lists grow by doubling inside the arena: what is left behind is at most as much again. */
static fac_status append(machine *m, value *to, value *const *items, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (items[i]->kind == FAC_PICKLE_MARK) return broken(m, "a mark inside a container");
    if (to->n + n > to->room) {
        size_t room = to->room * 2 > to->n + n ? to->room * 2 : to->n + n;
        value **item = fac_arena_alloc(m->arena, room, sizeof *item);
        if (!item) return no_memory(m);
        if (to->n) memcpy(item, to->item, to->n * sizeof *item);
        to->item = item;
        to->room = room;
    }
    if (n) memcpy(to->item + to->n, items, n * sizeof *items);
    to->n += n;
    return FAC_OK;
}

/* How many values lie above the topmost mark. */
static fac_status above_mark(machine *m, size_t *n) {
    for (size_t k = 0; k < m->n; k++)
        if (top(m, k)->kind == FAC_PICKLE_MARK) {
            *n = k;
            return FAC_OK;
        }
    return broken(m, "no mark");
}

static fac_status push_tuple(machine *m, size_t n, bool marked) {
    value *v = make(m, FAC_PICKLE_TUPLE);
    if (!v) return no_memory(m);
    if (m->n < n) return broken(m, "a tuple of more values than there are");
    if (n)
        FAC_TRY(
            append(m, v, m->stack + (m->n - n), n)); /* there is no stack before the first value */
    m->n -= n + marked;
    return push(m, v);
}

/* The n topmost values go into the container below them. */
static fac_status put_items(machine *m, size_t n, bool marked, fac_pickle_kind kind) {
    value *to = top(m, n + marked);
    if (is(to, FAC_PICKLE_OTHER)) {
        m->n -= n + marked; /* items of what is passed over are passed over, too */
        return FAC_OK;
    }
    if (!is(to, kind))
        return broken(m, kind == FAC_PICKLE_DICT ? "items for no dict" : "items for no list");
    if (kind == FAC_PICKLE_DICT && n % 2) return broken(m, "a key without a value");
    FAC_TRY(append(m, to, m->stack + (m->n - n), n));
    m->n -= n + marked;
    return FAC_OK;
}

/* ---- bytes ---- */

static fac_status take(machine *m, size_t n, const unsigned char **p) {
    if ((size_t)(m->end - m->p) < n) return broken(m, "it is truncated");
    *p = m->p;
    m->p += n;
    return FAC_OK;
}

static fac_status number(machine *m, int bytes, uint64_t *out) {
    const unsigned char *p;
    FAC_TRY(take(m, (size_t)bytes, &p));
    *out = 0;
    for (int k = bytes - 1; k >= 0; k--) *out = *out << 8 | p[k];
    return FAC_OK;
}

static fac_status push_text(machine *m, int length_bytes) {
    uint64_t n;
    const unsigned char *p;
    FAC_TRY(number(m, length_bytes, &n));
    FAC_TRY(take(m, (size_t)n, &p));
    value *v = make(m, FAC_PICKLE_TEXT);
    char *copy = fac_arena_alloc(m->arena, (size_t)n + 1, 1);
    if (!v || !copy) return no_memory(m);
    memcpy(copy, p, (size_t)n);
    v->text = copy;
    v->n = (size_t)n;
    return push(m, v);
}

/* Two's complement, as few bytes as it takes. */
static fac_status push_long(machine *m) {
    uint64_t n, x = 0;
    const unsigned char *p;
    FAC_TRY(number(m, 1, &n));
    FAC_TRY(take(m, (size_t)n, &p));
    if (n > 8) return push_int(m, FAC_PICKLE_LONG, 0);
    for (uint64_t k = 0; k < n; k++) x |= (uint64_t)p[k] << 8 * k;
    if (n && n < 8 && p[n - 1] & 0x80) x |= UINT64_MAX << 8 * n;
    return push_int(m, FAC_PICKLE_INT, (int64_t)x);
}

static fac_status line(machine *m, const char **text, size_t *n) {
    const unsigned char *close = memchr(m->p, '\n', (size_t)(m->end - m->p));
    if (!close) return broken(m, "it is truncated");
    *text = (const char *)m->p;
    *n = (size_t)(close - m->p);
    m->p = close + 1;
    return FAC_OK;
}

static fac_status push_global(machine *m) {
    const char *module, *name;
    size_t a, b;
    FAC_TRY(line(m, &module, &a));
    FAC_TRY(line(m, &name, &b));
    const int row = fac_pickle_name_find(module, a, name, b);
    if (row < 0)
        return fac_raise(m->err, FAC_E_UNSUPPORTED,
                         "a pickle that uses %.*s.%.*s: refused, for it could run code",
                         a < 99 ? (int)a : 99, module, b < 99 ? (int)b : 99, name);
    value *v = make(m, FAC_PICKLE_GLOBAL);
    if (!v) return no_memory(m);
    v->text = fac_pickle_name_at(row)->name;
    v->i = fac_pickle_name_at(row)->is;
    v->dtype = (unsigned char)fac_pickle_name_at(row)->dtype;
    v->row = (unsigned char)row;
    return push(m, v);
}

/* ---- memo: pickles number their values 0, 1, 2... ---- */

static fac_status memo_put(machine *m, int bytes) {
    uint64_t k;
    FAC_TRY(number(m, bytes, &k));
    if (!m->n || top(m, 0)->kind == FAC_PICKLE_MARK) return broken(m, "nothing to remember");
    if (k > m->memos + !m->memos)
        return broken(m, "a memo out of order"); /* Python 2 counts from 1 */
    if (!fac_reserve(&m->memo, &m->room_memos, (size_t)k + 1, sizeof *m->memo)) return no_memory(m);
    if (k > m->memos) m->memo[0] = NULL;
    m->memo[k] = top(m, 0);
    if (k >= m->memos) m->memos = (size_t)k + 1;
    return FAC_OK;
}

static fac_status memo_get(machine *m, int bytes) {
    uint64_t k;
    FAC_TRY(number(m, bytes, &k));
    return k < m->memos && m->memo[k] ? push(m, m->memo[k]) : broken(m, "a memo that was not set");
}

/* ---- what calls mean ---- */

/* ("storage", class, key, location, elements) and, in files before 1.6, a view into it, which is
 * None. */
static fac_status persistent(machine *m) {
    value *t = top(m, 0), *v;
    bool known =
        is(t, FAC_PICKLE_TUPLE) && (t->n == 5 || (t->n == 6 && is(t->item[5], FAC_PICKLE_NONE))) &&
        is(t->item[0], FAC_PICKLE_TEXT) && !strcmp(t->item[0]->text, "storage") &&
        is(t->item[1], FAC_PICKLE_GLOBAL) && t->item[1]->i == FAC_PICKLE_STORAGE_CLASS &&
        is(t->item[2], FAC_PICKLE_TEXT) && is(t->item[4], FAC_PICKLE_INT) && t->item[4]->i >= 0;
    if (!known) return broken(m, "a reference that is no storage");
    if (!(v = make(m, FAC_PICKLE_STORAGE))) return no_memory(m);
    v->dtype = t->item[1]->dtype;
    v->row = t->item[1]->row;
    v->text = t->item[2]->text;
    v->n = t->item[2]->n;
    v->i = t->item[4]->i;
    v->next = m->storages;
    m->storages = v;
    m->n--;
    return push(m, v);
}

/* What is passed over; `tensor`: it would be one, but for what it says. */
static fac_status other(machine *m, const char *what, bool tensor, value **out) {
    value *v = make(m, FAC_PICKLE_OTHER);
    if (!v) return no_memory(m);
    v->text = what;
    v->i = tensor;
    *out = v;
    return FAC_OK;
}

/* (storage, offset, size, stride, ...); typed: (storage of bytes, offset, size, stride, grad,
 * hooks, dtype, ...) */
static fac_status rebuild_tensor(machine *m, const value *a, bool typed, value **out) {
    bool known = a->n >= 4 && is(a->item[0], FAC_PICKLE_STORAGE) &&
                 is(a->item[1], FAC_PICKLE_INT) && a->item[1]->i >= 0 &&
                 is(a->item[2], FAC_PICKLE_TUPLE) && is(a->item[3], FAC_PICKLE_TUPLE) &&
                 a->item[2]->n == a->item[3]->n;
    const value *type = typed && a->n > 6 ? a->item[6] : NULL;
    if (typed)
        known &= is(type, FAC_PICKLE_GLOBAL) && type->i == FAC_PICKLE_TYPE &&
                 a->item[0]->dtype == FAC_U8;
    if (known && a->item[2]->n > FAC_DIMS) return other(m, "more than 8 dims", true, out);
    const value *element = typed ? type : known ? a->item[0] : NULL;
    if (known && element->dtype == FAC_NONE)
        return other(m, fac_pickle_name_at(element->row)->what, true, out);
    value *v = make(m, FAC_PICKLE_TENSOR);
    fac_pickle_tensor *t = fac_arena_alloc(m->arena, 1, sizeof *t);
    if (!v || !t) return no_memory(m);
    if (!known || !fac_pickle_dims(a->item[2], t->dims.d) ||
        !fac_pickle_dims(a->item[3], t->stride))
        return broken(m, "a tensor without storage, offset, sizes and strides");
    t->storage = a->item[0];
    t->offset = a->item[1]->i;
    t->dims.n = (int)a->item[2]->n;
    v->dtype = typed ? type->dtype : FAC_NONE;
    v->tensor = t;
    *out = v;
    return FAC_OK;
}

/* () or, from Python 2, ([[key, value], ...],) */
static fac_status ordered_dict(machine *m, const value *a, value **out) {
    value *v = make(m, FAC_PICKLE_DICT);
    if (!v) return no_memory(m);
    if (a->n > 1 || (a->n && !is(a->item[0], FAC_PICKLE_LIST)))
        return broken(m, "an OrderedDict of what is no list");
    /* one list in a call after the other would make much of little: a list has fewer pairs than it
     * has bytes */
    m->pairs += a->n ? a->item[0]->n : 0;
    if (m->pairs > (size_t)(m->end - m->start))
        return broken(m, "OrderedDicts of more pairs than there are");
    for (size_t i = 0; a->n && i < a->item[0]->n; i++) {
        const value *pair = a->item[0]->item[i];
        if ((!is(pair, FAC_PICKLE_LIST) && !is(pair, FAC_PICKLE_TUPLE)) || pair->n != 2)
            return broken(m, "an OrderedDict of what are no pairs");
        FAC_TRY(append(m, v, pair->item, 2));
    }
    *out = v;
    return FAC_OK;
}

/* A parameter is the tensor that it is made of. */
static fac_status parameter(machine *m, const value *a, value **out) {
    const bool tensor = a->n && (is(a->item[0], FAC_PICKLE_TENSOR) ||
                                 (is(a->item[0], FAC_PICKLE_OTHER) && a->item[0]->i));
    if (!tensor) return broken(m, "a parameter that is no tensor");
    *out = a->item[0];
    return FAC_OK;
}

static fac_status call(machine *m, const value *f, const value *a, value **out) {
    const fac_pickle_name *row = fac_pickle_name_at(f->row);
    if (f->i == FAC_PICKLE_ONE_DTYPE)
        return fac_raise(m->err, FAC_E_UNSUPPORTED, "a pickle that calls %s", f->text);
    switch (row->is) {
    case FAC_PICKLE_ORDERED_DICT:
        return ordered_dict(m, a, out);
    case FAC_PICKLE_DEFAULT_DICT:
        return (*out = make(m, FAC_PICKLE_DICT)) ? FAC_OK : no_memory(m);
    case FAC_PICKLE_REBUILD:
        return rebuild_tensor(m, a, false, out);
    case FAC_PICKLE_REBUILD_TYPED:
        return rebuild_tensor(m, a, true, out);
    case FAC_PICKLE_PARAMETER:
        return parameter(m, a, out);
    case FAC_PICKLE_RECONSTRUCT:
        return (*out = make(m, FAC_PICKLE_ARRAY)) ? FAC_OK : no_memory(m);
    case FAC_PICKLE_NUMPY_DTYPE:
        return fac_pickle_numpy_dtype(m->arena, a, out, m->err);
    case FAC_PICKLE_ENCODE:
        return fac_pickle_latin1(m->arena, a, out, m->err);
    case FAC_PICKLE_STRANGE:
        return other(m, row->what, true, out);
    case FAC_PICKLE_PLAIN:
        return other(m, row->what, false, out);
    case FAC_PICKLE_STORAGE_CLASS:
    case FAC_PICKLE_TYPE:
        break;
    }
    return fac_raise(m->err, FAC_E_UNSUPPORTED, "a pickle that calls %s", f->text);
}

static fac_status reduce(machine *m) {
    value *a = top(m, 0), *f = top(m, 1), *v = NULL;
    if (!is(a, FAC_PICKLE_TUPLE) || !is(f, FAC_PICKLE_GLOBAL))
        return broken(m, "a call of what cannot be called");
    FAC_TRY(call(m, f, a, &v));
    m->n -= 2;
    return push(m, v);
}

/* cls.__new__(cls, ...): only of classes whose values are passed over. */
static fac_status new_object(machine *m) {
    const value *f = top(m, 1);
    if (is(f, FAC_PICKLE_GLOBAL) && f->i == FAC_PICKLE_PLAIN) return reduce(m);
    return broken(m, "a new object of what is no class");
}

/* The attributes of an OrderedDict, such as a state dict's _metadata, and of what is passed over:
 * of no use here. */
static fac_status build(machine *m) {
    value *v = top(m, 1);
    if (is(v, FAC_PICKLE_ARRAY))
        FAC_TRY(fac_pickle_numpy_array(m->arena, v, top(m, 0), m->err));
    else if (is(v, FAC_PICKLE_GLOBAL) && v->i == FAC_PICKLE_ONE_DTYPE)
        FAC_TRY(fac_pickle_numpy_order(v, top(m, 0), m->err));
    else if ((!is(v, FAC_PICKLE_DICT) && !is(v, FAC_PICKLE_OTHER)) ||
             is(top(m, 0), FAC_PICKLE_MARK))
        return broken(m, "attributes of what is no OrderedDict");
    m->n--;
    return FAC_OK;
}

/* ---- the loop ---- */

static fac_status step(machine *m, unsigned code, bool *stop) {
    uint64_t x;
    size_t n = 0;
    const unsigned char *p;
    switch (code) {
    case 0x80:
        return take(m, 1, &p); /* PROTO           */
    case '.':
        *stop = true;
        return FAC_OK; /* STOP            */
    case '(':
        return push(m, m->mark); /* MARK            */
    case 'N':
        return push(m, m->none); /* NONE            */
    case 0x88:
        return push(m, m->yes); /* NEWTRUE         */
    case 0x89:
        return push(m, m->no); /* NEWFALSE        */
    case 'J':
        FAC_TRY(number(m, 4, &x));
        return push_int(m, FAC_PICKLE_INT, (int32_t)x); /* BININT  */
    case 'K':
        FAC_TRY(number(m, 1, &x));
        return push_int(m, FAC_PICKLE_INT, (int64_t)x); /* BININT1 */
    case 'M':
        FAC_TRY(number(m, 2, &x));
        return push_int(m, FAC_PICKLE_INT, (int64_t)x); /* BININT2 */
    case 0x8a:
        return push_long(m); /* LONG1           */
    case 'G':
        FAC_TRY(take(m, 8, &p));
        return push(m, make(m, FAC_PICKLE_REAL)); /* BINFLOAT        */
    case 'X':
        return push_text(m, 4); /* BINUNICODE      */
    case 'T':
        return push_text(m, 4); /* BINSTRING       */
    case 'U':
        return push_text(m, 1); /* SHORT_BINSTRING */
    case 'B':
        return push_text(m, 4); /* BINBYTES        */
    case 'C':
        return push_text(m, 1); /* SHORT_BINBYTES  */
    case ')':
        return push_tuple(m, 0, false); /* EMPTY_TUPLE     */
    case 0x85:
        return push_tuple(m, 1, false); /* TUPLE1          */
    case 0x86:
        return push_tuple(m, 2, false); /* TUPLE2          */
    case 0x87:
        return push_tuple(m, 3, false); /* TUPLE3          */
    case 't':
        FAC_TRY(above_mark(m, &n));
        return push_tuple(m, n, true); /* TUPLE           */
    case ']':
        return push(m, make(m, FAC_PICKLE_LIST)); /* EMPTY_LIST      */
    case '}':
        return push(m, make(m, FAC_PICKLE_DICT)); /* EMPTY_DICT      */
    case 'a':
        return put_items(m, 1, false, FAC_PICKLE_LIST); /* APPEND          */
    case 'e':
        FAC_TRY(above_mark(m, &n));
        return put_items(m, n, true, FAC_PICKLE_LIST); /* APPENDS */
    case 's':
        return put_items(m, 2, false, FAC_PICKLE_DICT); /* SETITEM         */
    case 'u':
        FAC_TRY(above_mark(m, &n));
        return put_items(m, n, true, FAC_PICKLE_DICT); /* SETITEMS */
    case 'q':
        return memo_put(m, 1); /* BINPUT          */
    case 'r':
        return memo_put(m, 4); /* LONG_BINPUT     */
    case 'h':
        return memo_get(m, 1); /* BINGET          */
    case 'j':
        return memo_get(m, 4); /* LONG_BINGET     */
    case 'c':
        return push_global(m); /* GLOBAL          */
    case 'Q':
        return persistent(m); /* BINPERSID       */
    case 'R':
        return reduce(m); /* REDUCE          */
    case 0x81:
        return new_object(m); /* NEWOBJ          */
    case 'b':
        return build(m); /* BUILD           */
    default:
        return fac_raise(m->err, FAC_E_UNSUPPORTED,
                         "a pickle with opcode 0x%02x ('%c'), which weights do not need", code,
                         code > 32 && code < 127 ? (int)code : '?');
    }
}

static fac_status interpret(machine *m) {
    m->none = make(m, FAC_PICKLE_NONE);
    m->yes = make(m, FAC_PICKLE_BOOL);
    m->no = make(m, FAC_PICKLE_BOOL);
    m->mark = make(m, FAC_PICKLE_MARK);
    if (!m->none || !m->yes || !m->no || !m->mark) return no_memory(m);
    m->yes->i = 1;
    for (bool stop = false; !stop;) {
        const unsigned char *code;
        FAC_TRY(take(m, 1, &code));
        FAC_TRY(step(m, *code, &stop));
    }
    return m->n == 1 && !is(top(m, 0), FAC_PICKLE_MARK)
               ? FAC_OK
               : broken(m, "it does not end with one value");
}

fac_status fac_pickle_read(fac_arena *arena, const void *data, size_t size, fac_pickle *out,
                           fac_error *err) {
    const unsigned char *p = data;
    machine m = { .arena = arena, .start = p, .p = p, .end = p + size, .err = err };
    fac_status status = interpret(&m);
    if (!status) *out = (fac_pickle){ m.stack[0], m.storages, (size_t)(m.p - p) };
    fac_release(m.stack);
    fac_release(m.memo);
    return status;
}

fac_pickle_value *fac_pickle_get(const fac_pickle_value *dict, const char *key) {
    for (size_t i = 0; i + 1 < dict->n; i += 2)
        if (is(dict->item[i], FAC_PICKLE_TEXT) && !strcmp(dict->item[i]->text, key))
            return dict->item[i + 1];
    return NULL;
}
