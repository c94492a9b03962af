/* Reading types and constants. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/format.h"
#include "graph/number.h"

fac_status fac_lex_graph(fac_lexer *l, const fac_graph *g) {
    if (!g->error.status) return FAC_OK;
    if (l->line) return fac_raise(l->err, g->error.status, "line %d: %s", l->line, g->error.text);
    return fac_raise(l->err, g->error.status, "%s", g->error.text);
}

/* ---- types ---- */

/* After '?'.  The numbers of a text have nothing to do with those that nameless symbols get here.
 */
static fac_status read_nameless(fac_lexer *l, fac_graph *g, int64_t *out) {
    int64_t k;
    if (!fac_int_parse(&l->s, l->end, &k) || k < 0)
        return fac_lex_fail(l, "a nameless symbol needs a number");
    const char *key = fac_arena_print(&g->arena, "%lld", (long long)k);
    uintptr_t place = key ? (uintptr_t)fac_table_get(&l->nameless, key) : 0;
    if (!place) {
        *out = fac_symbol(g, NULL);
        FAC_TRY(fac_lex_graph(l, g));
        place = fac_symbol_index(*out) + 1;
        if (!key || !fac_table_put(&l->nameless, key, (void *)place))
            return fac_raise_memory(l->err, "a symbol");
    }
    *out = fac_symbol_at(place - 1);
    return FAC_OK;
}

static fac_status read_symbol(fac_lexer *l, fac_graph *g, int64_t *out) {
    char word[128];
    const char *name = word;
    if (fac_lex_is(l, '?')) return read_nameless(l, g, out);
    if (fac_lex_letter(l)) {
        FAC_TRY(fac_lex_word(l, "a symbol", word, sizeof word));
    } else
        FAC_TRY(fac_lex_name(l, "a symbol", &g->arena, &name));
    *out = fac_symbol(g, name);
    return fac_lex_graph(l, g);
}

static bool symbol_follows(fac_lexer *l) {
    fac_lex_space(l);
    return l->s < l->end && (*l->s == '?' || *l->s == '"' || fac_lex_letter(l));
}

static fac_status read_size(fac_lexer *l, fac_graph *g, int64_t *out) {
    if (symbol_follows(l)) return read_symbol(l, g, out);
    int64_t d;
    const char *before = l->s;
    if (!fac_int_parse(&l->s, l->end, &d) || d < 0) {
        l->s = before;
        return fac_lex_fail(l, "a size or a symbol is missing");
    }
    *out = d;
    return FAC_OK;
}

static fac_status read_dtype(fac_lexer *l, fac_dtype *out) {
    char word[128];
    FAC_TRY(fac_lex_word(l, "an element type", word, sizeof word));
    *out = fac_dtype_find(word);
    return *out == FAC_NONE ? fac_lex_fail(l, "there is no element type '%s'", word) : FAC_OK;
}

/* After '['. */
static fac_status read_dims(fac_lexer *l, fac_graph *g, fac_dims *out) {
    fac_dims d = { 0 };
    if (!fac_lex_is(l, ']'))
        for (;;) {
            if (d.n == FAC_DIMS) return fac_lex_fail(l, "a type has at most %d dims", FAC_DIMS);
            FAC_TRY(read_size(l, g, &d.d[d.n]));
            d.n++;
            if (fac_lex_is(l, ']')) break;
            FAC_TRY(fac_lex_need(l, ','));
        }
    if (!fac_dims_valid(g, &d)) return fac_lex_fail(l, "a type has 2^56 elements or more");
    *out = d;
    return FAC_OK;
}

fac_status fac_read_type(fac_lexer *l, fac_graph *g, fac_type *out) {
    fac_type type;
    FAC_TRY(read_dtype(l, &type.dtype));
    FAC_TRY(fac_lex_need(l, '['));
    FAC_TRY(read_dims(l, g, &type.dims));
    *out = type;
    return FAC_OK;
}

/* ---- contents ---- */

typedef struct elements {
    int n;
    unsigned symbolic;
    union {
        double f[FAC_LITERAL];
        int64_t i[FAC_LITERAL];
        const char *t[FAC_LITERAL];
    } x;
} elements;

static bool in_range(fac_dtype dtype, int64_t x) {
    const fac_dtype_info *info = fac_dtype_get(dtype);
    const int bits = info->bits;
    if (info->kind == 'b') return x == 0 || x == 1;
    if (bits == 64) return true;
    const int64_t low = info->kind == 'u' ? 0 : -((int64_t)1 << (bits - 1));
    return x >= low && x < low + ((int64_t)1 << bits);
}

static fac_status read_element(fac_lexer *l, fac_graph *g, fac_dtype dtype, elements *e) {
    const char kind = fac_dtype_get(dtype)->kind;
    fac_lex_space(l);
    if (kind == 'q') /* blocks of numbers */
        return fac_lex_fail(l, "%s has no contents in text", fac_dtype_get(dtype)->name);
    if (e->n == FAC_LITERAL)
        return fac_lex_fail(l, "a constant with contents has at most %d elements", FAC_LITERAL);
    if (kind == 't') {
        FAC_TRY(fac_lex_name(l, "a text", &g->arena, &e->x.t[e->n]));
    } else if (kind == 'f') {
        if (!fac_real_parse(&l->s, l->end, &e->x.f[e->n]))
            return fac_lex_fail(l, "a number is missing");
    } else if (dtype == FAC_I64 && symbol_follows(l)) {
        FAC_TRY(read_symbol(l, g, &e->x.i[e->n]));
        e->symbolic |= 1u << e->n;
    } else if (!(dtype == FAC_U64 ? fac_unsigned_parse(&l->s, l->end, (uint64_t *)&e->x.i[e->n])
                                  : fac_int_parse(&l->s, l->end, &e->x.i[e->n]) &&
                                        in_range(dtype, e->x.i[e->n])))
        return fac_lex_fail(l, "an integer that fits into %s is missing",
                            fac_dtype_get(dtype)->name);
    e->n++;
    return FAC_OK;
}

static fac_status make_tensor(fac_lexer *l, const fac_type *type, const elements *e,
                              fac_tensor **out) {
    const char kind = fac_dtype_get(type->dtype)->kind;
    fac_dtype wide = FAC_I64;
    if (kind == 't') wide = FAC_TEXT;
    if (kind == 'f') wide = FAC_F64;
    fac_tensor *t = NULL, *narrow = NULL;
    fac_status s = fac_tensor_new(NULL, wide, type->dims, &t, l->err);
    if (!s) s = fac_tensor_write(t, &e->x, (size_t)e->n * 8, l->err);
    if (!s && wide != type->dtype) {
        s = fac_tensor_convert(t, type->dtype, &narrow, l->err);
        fac_tensor_free(t);
        t = narrow;
    }
    if (s)
        fac_tensor_free(t);
    else
        *out = t;
    return s;
}

static fac_status make_const(fac_reader *r, const fac_type *type, const elements *e,
                             fac_value **out) {
    fac_tensor *t = NULL;
    if (e->symbolic) {
        if (type->dims.n != 1) return fac_lex_fail(r->l, "only a vector of i64 may hold symbols");
        fac_contents c = { .n = e->n, .symbolic = e->symbolic };
        memcpy(c.v, e->x.i, sizeof c.v);
        *out = fac_symbols_const(r->g, &c);
    } else {
        FAC_TRY(make_tensor(r->l, type, e, &t));
        *out = fac_const(r->g, t);
        fac_tensor_free(t);
    }
    return fac_lex_graph(r->l, r->g);
}

/* The contents after a type of any rank.  Equal text is one constant, so that a graph does not
 * grow by being read. */
static fac_status read_contents(fac_reader *r, fac_type *type, bool dims, const char *begin,
                                fac_value **out) {
    fac_lexer *l = r->l;
    const bool scalar = !dims && fac_lex_is(l, '(');
    elements e = { 0 };
    if (!scalar) FAC_TRY(fac_lex_need(l, '{'));
    if (type->dtype == FAC_BIT) return fac_lex_fail(l, "bits have no contents in text");
    if (scalar) {
        FAC_TRY(read_element(l, r->g, type->dtype, &e));
        FAC_TRY(fac_lex_need(l, ')'));
    } else if (!fac_lex_is(l, '}'))
        for (;;) {
            FAC_TRY(read_element(l, r->g, type->dtype, &e));
            if (fac_lex_is(l, '}')) break;
            FAC_TRY(fac_lex_need(l, ','));
        }
    if (!dims) type->dims = scalar ? (fac_dims){ 0 } : fac_shape(e.n);
    if (fac_dims_count(&type->dims) != e.n)
        return fac_lex_fail(l, "%d elements do not fill this type", e.n);
    char *key = fac_arena_alloc(&r->g->arena, (size_t)(l->s - begin) + 1, 1);
    if (!key) return fac_raise_memory(l->err, "a constant");
    memcpy(key, begin, (size_t)(l->s - begin));
    if ((*out = fac_table_get(&r->literals, key))) return FAC_OK;
    FAC_TRY(make_const(r, type, &e, out));
    return fac_table_put(&r->literals, key, *out) ? FAC_OK : fac_raise_memory(l->err, "a constant");
}

fac_status fac_read_literal(fac_reader *r, fac_type *type, fac_value **out) {
    fac_lexer *l = r->l;
    fac_lex_space(l);
    const char *begin = l->s;
    *out = NULL;
    *type = (fac_type){ 0 };
    FAC_TRY(read_dtype(l, &type->dtype));
    const bool dims = fac_lex_is(l, '[');
    if (dims) {
        FAC_TRY(read_dims(l, r->g, &type->dims));
        const char *after = l->s;
        const bool contents = fac_lex_is(l, '{');
        l->s = after;
        if (!contents) return FAC_OK;
    }
    return read_contents(r, type, dims, begin, out);
}

fac_status fac_read_zeros(fac_lexer *l, const fac_type *type, fac_tensor **out) {
    const size_t bytes = fac_type_bytes(type);
    if (l->most && (bytes > l->most || l->taken > l->most - bytes))
        return fac_lex_fail(l, "parameters and constants have at most %zu MiB together here",
                            l->most >> 20);
    l->taken += bytes;
    return fac_tensor_new(NULL, type->dtype, type->dims, out, l->err);
}

/* ---- numbers without a type ---- */

fac_status fac_read_number(fac_reader *r, const char *text, size_t n, fac_dtype dtype,
                           fac_value **out) {
    fac_lexer l = *r->l;
    l.s = text;
    l.end = text + n;
    elements e = { 0 };
    const fac_type scalar = { dtype, { 0 } };
    char *key = fac_arena_print(&r->g->arena, "%s(%.*s)", fac_dtype_get(dtype)->name, (int)n, text);
    if (!key) return fac_raise_memory(l.err, "a constant");
    if ((*out = fac_table_get(&r->literals, key))) return FAC_OK;
    FAC_TRY(read_element(&l, r->g, dtype, &e));
    if (l.s != l.end || e.symbolic)
        return fac_lex_fail(&l, "this is no %s", fac_dtype_get(dtype)->name);
    FAC_TRY(make_const(r, &scalar, &e, out));
    return fac_table_put(&r->literals, key, *out) ? FAC_OK : fac_raise_memory(l.err, "a constant");
}
