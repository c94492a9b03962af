/* Attributes, driven by the op's table: defaults, ranges, text, equality and hash.  Never memcmp:
 * structs have padding. */
#include <string.h>
#include "base/error.h"
#include "graph/build.h"
#include "graph/lexer.h"
#include "graph/number.h"

static int length_of(const fac_attr *a) { return a->count > 0 ? a->count : 1; }
static void *field(const void *attrs, const fac_attr *a) { return (char *)attrs + a->at; }

static int choices_of(const fac_attr *a) {
    int n = 0;
    while (a->choices && a->choices[n]) n++;
    return n;
}

static uint64_t bits(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* ---- defaults and ranges ---- */

static bool in_range(const fac_attr *a, double x) {
    return (!a->min && !a->max) || (x >= a->min && x <= a->max);
}

static bool fill_numbers(fac_node *n, const fac_attr *a, void *at) {
    int64_t *i = at;
    double *r = at;
    for (int k = 0; k < length_of(a); k++) {
        if (a->kind == FAC_A_INT) {
            if (!i[k]) i[k] = (int64_t)a->zero_means;
            if (!in_range(a, (double)i[k]))
                return fac_fail(n, FAC_E_ARGUMENT, "%s is %lld, it must be in [%g, %g]", a->name,
                                (long long)i[k], a->min, a->max);
        } else {
            if (r[k] == 0 && a->zero_means != 0) r[k] = a->zero_means;
            if (!in_range(a, r[k]))
                return fac_fail(n, FAC_E_ARGUMENT, "%s is %g, it must be in [%g, %g]", a->name,
                                r[k], a->min, a->max);
        }
    }
    return true;
}

bool fac_attrs_fill(fac_node *n, void *attrs) {
    for (const fac_attr *a = n->op->attrs; a && a->name; a++) {
        void *at = field(attrs, a);
        switch (a->kind) {
        case FAC_A_INT:
        case FAC_A_REAL:
            if (!fill_numbers(n, a, at)) return false;
            break;
        case FAC_A_ENUM:
            if (*(int *)at < 0 || *(int *)at >= choices_of(a))
                return fac_fail(n, FAC_E_ARGUMENT, "%s is choice %d of %d", a->name, *(int *)at,
                                choices_of(a));
            break;
        case FAC_A_DTYPE:
            if ((int)*(fac_dtype *)at < 0 || *(fac_dtype *)at >= FAC_DTYPES)
                return fac_fail(n, FAC_E_DTYPE, "%s is no element type", a->name);
            break;
        case FAC_A_DIMS:
            if (((fac_dims *)at)->n < 0 || ((fac_dims *)at)->n > FAC_DIMS)
                return fac_fail(n, FAC_E_ARGUMENT, "%s has %d elements, at most %d are possible",
                                a->name, ((fac_dims *)at)->n, FAC_DIMS);
            break;
        case FAC_A_REALS:
            if (((fac_reals *)at)->n < 0 || ((fac_reals *)at)->n > FAC_REALS)
                return fac_fail(n, FAC_E_ARGUMENT, "%s has %d elements, at most %d are possible",
                                a->name, ((fac_reals *)at)->n, FAC_REALS);
            break;
        case FAC_A_TEXT: {
            const char **text = at;
            const char *copy = fac_arena_text(&n->graph->arena, *text);
            if (*text && !copy) return fac_fail(n, FAC_E_NOMEM, "no memory for %s", a->name);
            *text = copy;
            break;
        }
        case FAC_A_FLAG:
            break;
        }
    }
    return true;
}

/* ---- text ---- */

static bool is_default(const fac_attr *a, const void *at) {
    const int64_t *i = at;
    const double *r = at;
    switch (a->kind) {
    case FAC_A_INT:
        for (int k = 0; k < length_of(a); k++)
            if (i[k] && i[k] != (int64_t)a->zero_means) return false;
        return true;
    case FAC_A_REAL:
        for (int k = 0; k < length_of(a); k++)
            if (bits(r[k]) && bits(r[k]) != bits(a->zero_means)) return false;
        return true;
    case FAC_A_FLAG:
        return !*(const bool *)at;
    case FAC_A_ENUM:
        return !*(const int *)at;
    case FAC_A_DTYPE:
        return *(const fac_dtype *)at == FAC_NONE;
    case FAC_A_DIMS:
        return !((const fac_dims *)at)->n;
    case FAC_A_REALS:
        return !((const fac_reals *)at)->n;
    case FAC_A_TEXT:
        return !*(const char *const *)at;
    }
    return true;
}

static void print_reals(const double *x, int n, fac_text *to) {
    for (int k = 0; k < n; k++) {
        fac_text_add(to, k ? "," : "");
        fac_real_print(x[k], FAC_F64, to);
    }
}

static void print_value(const fac_attr *a, const void *at, fac_text *to) {
    switch (a->kind) {
    case FAC_A_INT:
        for (int k = 0; k < length_of(a); k++)
            fac_text_print(to, k ? ",%lld" : "%lld", (long long)((const int64_t *)at)[k]);
        break;
    case FAC_A_REAL:
        print_reals(at, length_of(a), to);
        break;
    case FAC_A_REALS:
        print_reals(((const fac_reals *)at)->v, ((const fac_reals *)at)->n, to);
        break;
    case FAC_A_DIMS: {
        const fac_dims *d = at;
        for (int k = 0; k < d->n; k++) fac_text_print(to, k ? ",%lld" : "%lld", (long long)d->d[k]);
        break;
    }
    case FAC_A_FLAG:
        fac_text_add(to, "1");
        break;
    case FAC_A_ENUM:
        fac_text_add(to, a->choices[*(const int *)at]);
        break;
    case FAC_A_DTYPE:
        fac_text_add(to, fac_dtype_get(*(const fac_dtype *)at)->name);
        break;
    case FAC_A_TEXT:
        fac_quote(*(const char *const *)at, to);
        break;
    }
}

void fac_attrs_put(const fac_op *op, const void *attrs, bool strict, fac_text *to) {
    for (const fac_attr *a = op->attrs; a && a->name; a++) {
        const void *at = field(attrs, a);
        if (is_default(a, at)) continue;
        fac_text_add(to, " ");
        fac_text_add(to, a->name);
        if (a->kind == FAC_A_FLAG && !strict) continue;
        fac_text_add(to, "=");
        print_value(a, at, to);
    }
}

void fac_attrs_print(const fac_op *op, const void *attrs, fac_text *to) {
    fac_attrs_put(op, attrs, false, to);
}

static fac_status unknown(const fac_op *op, const char *name, fac_error *err) {
    fac_text names = { 0 };
    for (const fac_attr *a = op->attrs; a && a->name; a++) {
        fac_text_add(&names, names.n ? ", " : "");
        fac_text_add(&names, a->name);
    }
    if (names.n && !names.failed)
        fac_raise(err, FAC_E_FORMAT, "there is no attribute '%s'; %s has %s", name, op->name,
                  names.s);
    else
        fac_raise(err, FAC_E_FORMAT, "there is no attribute '%s'; %s has none", name, op->name);
    fac_text_free(&names);
    return FAC_E_FORMAT;
}

/* "1,2,3" into numbers; one number stands for all of an array. */
static fac_status parse_numbers(fac_lexer *l, const fac_attr *a, void *at) {
    fac_dims *dims = a->kind == FAC_A_DIMS ? at : NULL;
    fac_reals *list = a->kind == FAC_A_REALS ? at : NULL;
    const bool real = list || a->kind == FAC_A_REAL;
    int most = length_of(a);
    if (dims) most = FAC_DIMS;
    if (list) most = FAC_REALS;
    int64_t *ints = dims ? dims->d : at;
    double *reals = list ? list->v : at;
    int n = 0;
    do {
        if (n == most)
            return fac_lex_fail(l, "%s has at most %d element%s", a->name, most,
                                most > 1 ? "s" : "");
        if (real ? !fac_real_parse(&l->s, l->end, &reals[n])
                 : !fac_int_parse(&l->s, l->end, &ints[n]))
            return fac_lex_fail(l, "%s needs %s", a->name,
                                real ? "a number" : "an integer of 64 bits");
        n++;
    } while (fac_lex_is(l, ','));
    if (dims)
        dims->n = n;
    else if (list)
        list->n = n;
    else if (n == 1)
        for (int k = 1; k < most; k++) {
            if (a->kind == FAC_A_REAL)
                reals[k] = reals[0];
            else
                ints[k] = ints[0];
        }
    else if (n < most)
        return fac_lex_fail(l, "%s has %d elements, it needs %d", a->name, n, most);
    return FAC_OK;
}

static fac_status parse_value(fac_lexer *l, const fac_attr *a, fac_arena *arena, void *at) {
    char word[128];
    switch (a->kind) {
    case FAC_A_INT:
    case FAC_A_REAL:
    case FAC_A_DIMS:
    case FAC_A_REALS:
        return parse_numbers(l, a, at);
    case FAC_A_FLAG: {
        int64_t x;
        if (!fac_int_parse(&l->s, l->end, &x) || x < 0 || x > 1)
            return fac_lex_fail(l, "%s needs 0 or 1", a->name);
        *(bool *)at = x;
        return FAC_OK;
    }
    case FAC_A_ENUM:
        FAC_TRY(fac_lex_word(l, a->name, word, sizeof word));
        for (int k = 0; k < choices_of(a); k++)
            if (!strcmp(a->choices[k], word)) {
                *(int *)at = k;
                return FAC_OK;
            }
        return fac_lex_fail(l, "%s cannot be '%s'; its first choice is '%s'", a->name, word,
                            choices_of(a) ? a->choices[0] : "");
    case FAC_A_DTYPE:
        FAC_TRY(fac_lex_word(l, a->name, word, sizeof word));
        *(fac_dtype *)at = fac_dtype_find(word);
        return *(fac_dtype *)at == FAC_NONE
                   ? fac_lex_fail(l, "%s: there is no element type '%s'", a->name, word)
                   : FAC_OK;
    case FAC_A_TEXT:
        return fac_lex_name(l, a->name, arena, (const char **)at);
    }
    return FAC_OK;
}

fac_status fac_attrs_lex(fac_lexer *l, const fac_op *op, bool strict, fac_arena *arena,
                         void *attrs) {
    uint64_t seen = 0;
    for (;;) {
        const char *before = l->s;
        char name[128];
        if (!fac_lex_letter(l)) return FAC_OK;
        FAC_TRY(fac_lex_word(l, "an attribute", name, sizeof name));
        const bool value = fac_lex_is(l, '=');
        if (!value && strict) { /* in a body the next word is the next op */
            l->s = before;
            return FAC_OK;
        }
        const fac_attr *a = op->attrs;
        while (a && a->name && strcmp(a->name, name)) a++;
        if (!a || !a->name) {
            fac_error err = { 0 };
            unknown(op, name, &err);
            return fac_lex_fail(l, "%s", err.text);
        }
        const uint64_t bit = (uint64_t)1 << ((a - op->attrs) & 63);
        if (seen & bit) return fac_lex_fail(l, "%s is given twice", a->name);
        seen |= bit;
        if (value)
            FAC_TRY(parse_value(l, a, arena, field(attrs, a)));
        else if (a->kind == FAC_A_FLAG)
            *(bool *)field(attrs, a) = true;
        else
            return fac_lex_fail(l, "%s needs a value: %s=...", a->name, a->name);
    }
}

fac_status fac_attrs_parse(const fac_op *op, const char *text, fac_arena *arena, void *attrs,
                           fac_error *err) {
    if (!text) return FAC_OK;
    fac_lexer l = { .s = text, .end = text + strlen(text), .err = err };
    FAC_TRY(fac_attrs_lex(&l, op, false, arena, attrs));
    return fac_lex_end(&l);
}

/* ---- equality and hash ---- */

static bool reals_equal(const fac_reals *a, const fac_reals *b) {
    return a->n == b->n && !memcmp(a->v, b->v, (size_t)a->n * sizeof *a->v);
}

bool fac_attrs_equal(const fac_op *op, const void *x, const void *y) {
    for (const fac_attr *a = op->attrs; a && a->name; a++) {
        const void *p = field(x, a), *q = field(y, a);
        bool same = true;
        switch (a->kind) {
        case FAC_A_INT:
        case FAC_A_REAL:
            same = !memcmp(p, q, (size_t)length_of(a) * 8);
            break;
        case FAC_A_FLAG:
            same = *(const bool *)p == *(const bool *)q;
            break;
        case FAC_A_ENUM:
            same = *(const int *)p == *(const int *)q;
            break;
        case FAC_A_DTYPE:
            same = *(const fac_dtype *)p == *(const fac_dtype *)q;
            break;
        case FAC_A_DIMS:
            same = fac_dims_equal(p, q);
            break;
        case FAC_A_REALS:
            same = reals_equal(p, q);
            break;
        case FAC_A_TEXT: {
            const char *s = *(const char *const *)p, *t = *(const char *const *)q;
            same = s && t ? !strcmp(s, t) : s == t;
            break;
        }
        }
        if (!same) return false;
    }
    return true;
}

fac_hash fac_attrs_hash(fac_hash h, const fac_op *op, const void *attrs) {
    for (const fac_attr *a = op->attrs; a && a->name; a++) {
        const void *p = field(attrs, a);
        switch (a->kind) {
        case FAC_A_INT:
        case FAC_A_REAL:
            h = fac_hash_bytes(h, p, (size_t)length_of(a) * 8);
            break;
        case FAC_A_FLAG:
            h = fac_hash_int(h, *(const bool *)p);
            break;
        case FAC_A_ENUM:
            h = fac_hash_int(h, (uint64_t) * (const int *)p);
            break;
        case FAC_A_DTYPE:
            h = fac_hash_int(h, (uint64_t) * (const fac_dtype *)p);
            break;
        case FAC_A_DIMS: {
            const fac_dims *d = p;
            h = fac_hash_int(h, (uint64_t)d->n);
            for (int k = 0; k < d->n; k++) h = fac_hash_int(h, (uint64_t)d->d[k]);
            break;
        }
        case FAC_A_REALS: {
            const fac_reals *list = p;
            h = fac_hash_bytes(fac_hash_int(h, (uint64_t)list->n), list->v,
                               (size_t)list->n * sizeof *list->v);
            break;
        }
        case FAC_A_TEXT:
            h = fac_hash_text(h, *(const char *const *)p);
            break;
        }
    }
    return h;
}
