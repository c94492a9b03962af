/* The interpreter: a stack, a memo, and one case for each opcode (Lib/pickletools.py describes them
 * all). */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "tensor/pickle/pickle_global.h"
#include "tensor/pickle/pickle_machine.h"

typedef fac_pickle_value value;
typedef fac_pickle_machine machine;

/* ---- stack and values ---- */

fac_status fac_pickle_no_memory(machine *m) { return fac_raise_memory(m->err, "a pickle"); }
fac_status fac_pickle_broken(machine *m, const char *what) {
    return fac_raise(m->err, FAC_E_FORMAT, "a broken pickle: %s", what);
}

value *fac_pickle_make(machine *m, fac_pickle_kind kind) {
    value *v = fac_arena_alloc(m->arena, 1, sizeof *v);
    if (v) v->kind = (unsigned char)kind;
    return v;
}

fac_status fac_pickle_push(machine *m, value *v) {
    if (!v || !fac_reserve(&m->stack, &m->room, m->n + 1, sizeof *m->stack))
        return fac_pickle_no_memory(m);
    m->stack[m->n++] = v;
    return FAC_OK;
}

static fac_status push_int(machine *m, fac_pickle_kind kind, int64_t i) {
    value *v = fac_pickle_make(m, kind);
    if (v) v->i = i;
    return fac_pickle_push(m, v);
}

/* Lists grow by doubling inside the arena: what is left behind is at most as much again. */
fac_status fac_pickle_append(machine *m, value *to, value *const *items, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (items[i]->kind == FAC_PICKLE_MARK)
            return fac_pickle_broken(m, "a mark inside a container");
    if (to->n + n > to->room) {
        size_t room = to->room * 2 > to->n + n ? to->room * 2 : to->n + n;
        value **item = fac_arena_alloc(m->arena, room, sizeof *item);
        if (!item) return fac_pickle_no_memory(m);
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
        if (fac_pickle_top(m, k)->kind == FAC_PICKLE_MARK) {
            *n = k;
            return FAC_OK;
        }
    return fac_pickle_broken(m, "no mark");
}

static fac_status push_tuple(machine *m, size_t n, bool marked) {
    value *v = fac_pickle_make(m, FAC_PICKLE_TUPLE);
    if (!v) return fac_pickle_no_memory(m);
    if (m->n < n) return fac_pickle_broken(m, "a tuple of more values than there are");
    /* there is no stack before the first value */
    if (n) FAC_TRY(fac_pickle_append(m, v, m->stack + (m->n - n), n));
    m->n -= n + marked;
    return fac_pickle_push(m, v);
}

/* The n topmost values go into the container below them. */
static fac_status put_items(machine *m, size_t n, bool marked, fac_pickle_kind kind) {
    value *to = fac_pickle_top(m, n + marked);
    if (fac_pickle_is(to, FAC_PICKLE_OTHER)) {
        m->n -= n + marked; /* items of what is passed over are passed over, too */
        return FAC_OK;
    }
    if (!fac_pickle_is(to, kind))
        return fac_pickle_broken(m, kind == FAC_PICKLE_DICT ? "items for no dict"
                                                            : "items for no list");
    if (kind == FAC_PICKLE_DICT && n % 2) return fac_pickle_broken(m, "a key without a value");
    FAC_TRY(fac_pickle_append(m, to, m->stack + (m->n - n), n));
    m->n -= n + marked;
    return FAC_OK;
}

/* ---- bytes ---- */

static fac_status take(machine *m, size_t n, const unsigned char **p) {
    if ((size_t)(m->end - m->p) < n) return fac_pickle_broken(m, "it is truncated");
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
    value *v = fac_pickle_make(m, FAC_PICKLE_TEXT);
    char *copy = fac_arena_alloc(m->arena, (size_t)n + 1, 1);
    if (!v || !copy) return fac_pickle_no_memory(m);
    memcpy(copy, p, (size_t)n);
    v->text = copy;
    v->n = (size_t)n;
    return fac_pickle_push(m, v);
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
    if (!close) return fac_pickle_broken(m, "it is truncated");
    *text = (const char *)m->p;
    *n = (size_t)(close - m->p);
    m->p = close + 1;
    return FAC_OK;
}

/* How much of a name of n bytes a message holds. */
static int shown(size_t n) { return n < 99 ? (int)n : 99; }

static fac_status push_global(machine *m) {
    const char *module, *name;
    size_t a, b;
    FAC_TRY(line(m, &module, &a));
    FAC_TRY(line(m, &name, &b));
    const int row = fac_pickle_name_find(module, a, name, b);
    if (row < 0)
        return fac_raise(m->err, FAC_E_UNSUPPORTED,
                         "a pickle that uses %.*s.%.*s: refused, for it could run code", shown(a),
                         module, shown(b), name);
    value *v = fac_pickle_make(m, FAC_PICKLE_GLOBAL);
    if (!v) return fac_pickle_no_memory(m);
    v->text = fac_pickle_name_at(row)->name;
    v->i = fac_pickle_name_at(row)->is;
    v->dtype = (unsigned char)fac_pickle_name_at(row)->dtype;
    v->row = (unsigned char)row;
    return fac_pickle_push(m, v);
}

/* ---- memo: pickles number their values 0, 1, 2... ---- */

static fac_status memo_put(machine *m, int bytes) {
    uint64_t k;
    FAC_TRY(number(m, bytes, &k));
    if (!m->n || fac_pickle_top(m, 0)->kind == FAC_PICKLE_MARK)
        return fac_pickle_broken(m, "nothing to remember");
    if (k > m->memos + !m->memos)
        return fac_pickle_broken(m, "a memo out of order"); /* Python 2 counts from 1 */
    if (!fac_reserve(&m->memo, &m->room_memos, (size_t)k + 1, sizeof *m->memo))
        return fac_pickle_no_memory(m);
    if (k > m->memos) m->memo[0] = NULL;
    m->memo[k] = fac_pickle_top(m, 0);
    if (k >= m->memos) m->memos = (size_t)k + 1;
    return FAC_OK;
}

static fac_status memo_get(machine *m, int bytes) {
    uint64_t k;
    FAC_TRY(number(m, bytes, &k));
    return k < m->memos && m->memo[k] ? fac_pickle_push(m, m->memo[k])
                                      : fac_pickle_broken(m, "a memo that was not set");
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
        return fac_pickle_push(m, m->mark); /* MARK            */
    case 'N':
        return fac_pickle_push(m, m->none); /* NONE            */
    case 0x88:
        return fac_pickle_push(m, m->yes); /* NEWTRUE         */
    case 0x89:
        return fac_pickle_push(m, m->no); /* NEWFALSE        */
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
        return fac_pickle_push(m, fac_pickle_make(m, FAC_PICKLE_REAL)); /* BINFLOAT        */
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
        return fac_pickle_push(m, fac_pickle_make(m, FAC_PICKLE_LIST)); /* EMPTY_LIST      */
    case '}':
        return fac_pickle_push(m, fac_pickle_make(m, FAC_PICKLE_DICT)); /* EMPTY_DICT      */
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
        return fac_pickle_persistent(m); /* BINPERSID       */
    case 'R':
        return fac_pickle_reduce(m); /* REDUCE          */
    case 0x81:
        return fac_pickle_new_object(m); /* NEWOBJ          */
    case 'b':
        return fac_pickle_build(m); /* BUILD           */
    default:
        return fac_raise(m->err, FAC_E_UNSUPPORTED,
                         "a pickle with opcode 0x%02x ('%c'), which weights do not need", code,
                         code > 32 && code < 127 ? (int)code : '?');
    }
}

static fac_status interpret(machine *m) {
    m->none = fac_pickle_make(m, FAC_PICKLE_NONE);
    m->yes = fac_pickle_make(m, FAC_PICKLE_BOOL);
    m->no = fac_pickle_make(m, FAC_PICKLE_BOOL);
    m->mark = fac_pickle_make(m, FAC_PICKLE_MARK);
    if (!m->none || !m->yes || !m->no || !m->mark) return fac_pickle_no_memory(m);
    m->yes->i = 1;
    for (bool stop = false; !stop;) {
        const unsigned char *code;
        FAC_TRY(take(m, 1, &code));
        FAC_TRY(step(m, *code, &stop));
    }
    return m->n == 1 && !fac_pickle_is(fac_pickle_top(m, 0), FAC_PICKLE_MARK)
               ? FAC_OK
               : fac_pickle_broken(m, "it does not end with one value");
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
        if (fac_pickle_is(dict->item[i], FAC_PICKLE_TEXT) && !strcmp(dict->item[i]->text, key))
            return dict->item[i + 1];
    return NULL;
}
