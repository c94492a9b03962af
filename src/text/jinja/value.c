/* Values of chat templates, as Python has them. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "text/jinja/jinja.h"
#include "text/tokenizer.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;

enum { MOST_BYTES = 64 << 20, MOST_STEPS = 5000000, MOST_DEPTH = 600 };

fac_jinja_value fac_jinja_fail(run *r, fac_status status, const char *format, ...) {
    char text[256];
    va_list a;
    if (r->status) return (value){ 0 };
    va_start(a, format);
    vsnprintf(text, sizeof text, format, a);
    va_end(a);
    r->status = fac_raise(r->err, status, "the chat template, line %d: %s", r->line, text);
    return (value){ 0 };
}

/* Templates come with files, so what one takes is bounded. */
void *fac_jinja_alloc(run *r, size_t n, size_t size) {
    if (r->status) return NULL;
    if (n > MOST_BYTES / size || r->bytes > MOST_BYTES - n * size) {
        fac_jinja_fail(r, FAC_E_UNSUPPORTED, "it makes more than 64 MiB of texts");
        return NULL;
    }
    r->bytes += n * size;
    void *p = fac_arena_alloc(r->arena, n + !n, size);
    if (!p) r->status = fac_raise_memory(r->err, "a conversation");
    return p;
}

bool fac_jinja_step(run *r) {
    if (++r->steps > MOST_STEPS) fac_jinja_fail(r, FAC_E_UNSUPPORTED, "it does not come to an end");
    return !r->status;
}

bool fac_jinja_read(run *r, size_t n) {
    r->steps += (int64_t)(n / 64);
    return fac_jinja_step(r);
}

/* The caller counts r->depth down again. */
bool fac_jinja_deeper(run *r) {
    if (++r->depth <= MOST_DEPTH) return true;
    fac_jinja_fail(r, FAC_E_UNSUPPORTED, "it goes too deep");
    r->depth--;
    return false;
}

/* ---- making ---- */

fac_jinja_value fac_jinja_bool(bool x) { return (value){ .kind = FAC_JINJA_BOOL, .i = x }; }
fac_jinja_value fac_jinja_int(int64_t x) { return (value){ .kind = FAC_JINJA_INT, .i = x }; }

fac_jinja_value fac_jinja_string(const char *s) {
    return (value){ .kind = FAC_JINJA_TEXT, .text = { s, NULL, strlen(s) } };
}

fac_jinja_value fac_jinja_part(fac_jinja_text t, size_t from, size_t to) {
    if (to < from) to = from;
    return (value){ .kind = FAC_JINJA_TEXT,
                    .text = { t.s + from, t.from ? t.from + from : NULL, to - from } };
}

fac_jinja_value fac_jinja_undefined(const char *name) {
    return (value){ .kind = FAC_JINJA_UNDEFINED, .name = name };
}

fac_jinja_value fac_jinja_new_list(run *r, fac_jinja_kind kind) {
    value v = { .kind = kind, .list = fac_jinja_alloc(r, 1, sizeof *v.list) };
    return v.list ? v : (value){ 0 };
}

fac_jinja_value fac_jinja_new_dict(run *r, fac_jinja_kind kind) {
    value v = { .kind = kind, .dict = fac_jinja_alloc(r, 1, sizeof *v.dict) };
    return v.dict ? v : (value){ 0 };
}

void fac_jinja_add(run *r, fac_jinja_list *to, value v) {
    if (r->status) return;
    if (to->n == to->room) {
        const size_t room = to->room ? 2 * to->room : 8;
        value *wide = fac_jinja_alloc(r, room, sizeof *wide);
        if (!wide) return;
        if (to->n) memcpy(wide, to->at, to->n * sizeof *wide);
        to->at = wide;
        to->room = room;
    }
    to->at[to->n++] = v;
}

void fac_jinja_put(run *r, fac_jinja_dict *to, value key, value v) {
    if (r->status) return;
    fac_jinja_read(r, 4 * to->keys.n);
    for (size_t k = 0; k < to->keys.n; k++) {
        if (!fac_jinja_equal(r, to->keys.at[k], key)) continue;
        to->values.at[k] = v;
        return;
    }
    fac_jinja_add(r, &to->keys, key);
    fac_jinja_add(r, &to->values, v);
}

const fac_jinja_value *fac_jinja_get(run *r, const fac_jinja_dict *d, value key) {
    fac_jinja_read(r, 4 * d->keys.n);
    for (size_t k = 0; k < d->values.n; k++)
        if (fac_jinja_equal(r, d->keys.at[k], key)) return &d->values.at[k];
    return NULL;
}

const fac_jinja_value *fac_jinja_field(run *r, const fac_jinja_dict *d, const char *key) {
    return fac_jinja_get(r, d, fac_jinja_string(key));
}

/* ---- asking ---- */

const char *fac_jinja_kind_name(value v) {
    static const char *const names[] = {
        "undefined", "None",  "bool", "int",  "float", "str",
        "list",      "tuple", "dict", "dict", "macro", "function"
    };
    return names[v.kind];
}

bool fac_jinja_truth(value v) {
    switch (v.kind) {
    case FAC_JINJA_BOOL:
    case FAC_JINJA_INT:
        return v.i != 0;
    case FAC_JINJA_FLOAT:
        return v.f != 0;
    case FAC_JINJA_TEXT:
        return v.text.n > 0;
    case FAC_JINJA_LIST:
    case FAC_JINJA_TUPLE:
        return v.list->n > 0;
    case FAC_JINJA_DICT:
        return v.dict->keys.n > 0;
    default:
        return v.kind > FAC_JINJA_NONE;
    }
}

bool fac_jinja_number(value v, double *to) {
    if (v.kind == FAC_JINJA_FLOAT)
        *to = v.f;
    else if (v.kind == FAC_JINJA_INT || v.kind == FAC_JINJA_BOOL)
        *to = (double)v.i;
    else
        return false;
    return true;
}

static bool is_text(value v, value w) {
    return v.kind == FAC_JINJA_TEXT && w.kind == FAC_JINJA_TEXT;
}

static bool same_lists(run *r, const fac_jinja_list *a, const fac_jinja_list *b) {
    bool equal = a->n == b->n;
    for (size_t k = 0; equal && k < a->n; k++) equal = fac_jinja_equal(r, a->at[k], b->at[k]);
    return equal;
}

static bool same_dicts(run *r, const fac_jinja_dict *a, const fac_jinja_dict *b) {
    bool equal = a->keys.n == b->keys.n;
    for (size_t k = 0; equal && k < a->values.n; k++) {
        const value *other = fac_jinja_get(r, b, a->keys.at[k]);
        equal = other && fac_jinja_equal(r, a->values.at[k], *other);
    }
    return equal;
}

bool fac_jinja_equal(run *r, value a, value b) {
    double x, y;
    bool equal = true;
    if (is_text(a, b))
        return a.text.n == b.text.n && (a.text.n < 64 || fac_jinja_read(r, a.text.n)) &&
               !memcmp(a.text.s, b.text.s, a.text.n);
    if (fac_jinja_number(a, &x) && fac_jinja_number(b, &y)) return x == y;
    if (a.kind != b.kind || !fac_jinja_step(r) || !fac_jinja_deeper(r)) return false;
    if (a.kind == FAC_JINJA_LIST || a.kind == FAC_JINJA_TUPLE)
        equal = same_lists(r, a.list, b.list);
    else if (a.kind == FAC_JINJA_DICT)
        equal = same_dicts(r, a.dict, b.dict);
    else if (a.kind == FAC_JINJA_NAMESPACE)
        equal = a.dict == b.dict;
    else if (a.kind == FAC_JINJA_MACRO)
        equal = a.macro.node == b.macro.node;
    else if (a.kind == FAC_JINJA_FUNCTION)
        equal = !strcmp(a.name, b.name);
    r->depth--;
    return equal;
}

int fac_jinja_order(run *r, value a, value b) {
    double x, y;
    if (is_text(a, b)) {
        const size_t n = a.text.n < b.text.n ? a.text.n : b.text.n;
        if (!fac_jinja_read(r, n)) return 0;
        const int order = memcmp(a.text.s, b.text.s, n);
        return order ? order : (a.text.n > b.text.n) - (a.text.n < b.text.n);
    }
    if (fac_jinja_number(a, &x) && fac_jinja_number(b, &y)) return (x > y) - (x < y);
    fac_jinja_fail(r, FAC_E_ARGUMENT, "%s and %s have no order", fac_jinja_kind_name(a),
                   fac_jinja_kind_name(b));
    return 0;
}

bool fac_jinja_has(run *r, value in, value what) {
    if (is_text(in, what))
        return !what.text.n || (in.text.n && fac_jinja_read(r, in.text.n) &&
                                memmem(in.text.s, in.text.n, what.text.s, what.text.n));
    if (in.kind == FAC_JINJA_DICT || in.kind == FAC_JINJA_NAMESPACE)
        return fac_jinja_get(r, in.dict, what);
    if (in.kind == FAC_JINJA_UNDEFINED) return false;
    if (in.kind != FAC_JINJA_LIST && in.kind != FAC_JINJA_TUPLE) {
        fac_jinja_fail(r, FAC_E_ARGUMENT, "%s in %s", fac_jinja_kind_name(what),
                       fac_jinja_kind_name(in));
        return false;
    }
    for (size_t k = 0; k < in.list->n; k++)
        if (fac_jinja_equal(r, in.list->at[k], what)) return true;
    return false;
}

fac_jinja_list fac_jinja_each(run *r, value v) {
    fac_jinja_list all = { 0 };
    if (v.kind == FAC_JINJA_LIST || v.kind == FAC_JINJA_TUPLE) return *v.list;
    if (v.kind == FAC_JINJA_DICT) return v.dict->keys;
    if (v.kind == FAC_JINJA_TEXT) {
        for (size_t at = 0, used; at < v.text.n && !r->status; at += used) {
            fac_code_point(v.text.s + at, v.text.n - at, &used);
            fac_jinja_add(r, &all, fac_jinja_part(v.text, at, at + used));
        }
    } else if (v.kind != FAC_JINJA_UNDEFINED) {
        fac_jinja_fail(r, FAC_E_ARGUMENT, "%s has no items", fac_jinja_kind_name(v));
    }
    return all;
}

size_t fac_jinja_length(run *r, value v) {
    size_t n = 0;
    if (v.kind != FAC_JINJA_TEXT) return fac_jinja_each(r, v).n;
    if (!fac_jinja_read(r, v.text.n)) return 0;
    for (size_t at = 0, used; at < v.text.n; at += used, n++)
        fac_code_point(v.text.s + at, v.text.n - at, &used);
    return n;
}
