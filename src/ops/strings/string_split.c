/* Texts cut into parts.  How many there are is data: it runs at a cut. */
#include <string.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/unicode/unicode.h"
#include "graph/onnx_write.h"
#include "ops/known.h"
#include "ops/shape.h"
#include "ops/strings/strings.h"
#include "tensor/utf.h"

#if FAC_INTERFACE
/* The parts of each text between delimiters, along a new last axis that is as long as the most
 * parts, filled up with ""; output 1 (fac_value_other(y, 1)): how many there are, i64.  delimiter
 * NULL or "": runs of white space, and none at either end. most: cuts at most, from the left;
 * negative: all. */
fac_value *fac_string_split(fac_value *x, const char *delimiter, int64_t most);
#endif

typedef struct attrs {
    const char *delimiter;
    int64_t most;
    bool limited;
} attrs;
static const fac_attr table[] = { { "delimiter", FAC_A_TEXT, offsetof(attrs, delimiter), 0, 0, 0, 0,
                                    NULL, "what stands between parts; white space" },
                                  { "most", FAC_A_INT, offsetof(attrs, most), 0, 0, 0, 1e15, NULL,
                                    "cuts at most, where they are limited" },
                                  { "limited", FAC_A_FLAG, offsetof(attrs, limited), 0, 0, 0, 0,
                                    NULL, "no more cuts than `most`" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_TEXTS, 0 }, { 0 } };
static const fac_port out[] = { { "y", FAC_TEXTS, 0 }, { "count", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    if (x->n == FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "the result has more than %d dims", FAC_DIMS);
    n->out[0]->type = (fac_type){ FAC_TEXT, *x };
    n->out[0]->type.dims.d[n->out[0]->type.dims.n++] = fac_symbol(n->graph, NULL);
    n->out[1]->type = (fac_type){ FAC_I64, *x };
    return true;
}

/* ---- one text ---- */

typedef struct parts {
    fac_arena arena;
    char **text;
    size_t n, room;
    bool failed;
} parts;

static void add(parts *p, const char *from, size_t n) {
    char *copy = fac_reserve(&p->text, &p->room, p->n + 1, sizeof *p->text)
                     ? fac_arena_alloc(&p->arena, n + 1, 1)
                     : NULL;
    p->failed |= !copy;
    if (!copy) return;
    if (n) memcpy(copy, from, n);
    p->text[p->n++] = copy;
}

/* The first white space in it, or its end; *after: what comes after that. */
static const char *space_in(const char *s, const char **after) {
    const unsigned char *p = (const unsigned char *)s;
    while (*p) {
        const char *at = (const char *)p;
        if (!fac_unicode_is_space(fac_utf8_next(&p))) continue;
        *after = (const char *)p;
        return at;
    }
    return *after = (const char *)p;
}

static const char *past_spaces(const char *s) {
    const char *after;
    while (*s && space_in(s, &after) == s) s = after;
    return s;
}

static void by_spaces(parts *p, const char *s, int64_t most) {
    const char *after;
    for (s = past_spaces(s); *s && most; s = past_spaces(after), most--) {
        const char *end = space_in(s, &after);
        add(p, s, (size_t)(end - s));
    }
    if (*s) add(p, s, strlen(s));
}

static void by_delimiter(parts *p, const char *s, const char *delimiter, int64_t most) {
    for (const char *end; most && (end = strstr(s, delimiter)); most--) {
        add(p, s, (size_t)(end - s));
        s = end + strlen(delimiter);
    }
    add(p, s, strlen(s));
}

/* ---- all texts ---- */

static int64_t largest(const int64_t *counts, int64_t n) {
    int64_t most = 0;
    for (int64_t k = 0; k < n; k++)
        if (counts[k] > most) most = counts[k];
    return most;
}

static fac_status put_parts(const parts *p, const int64_t *counts, fac_dims d, fac_tensor **y,
                            fac_error *err) {
    const int64_t n = fac_dims_count(&d), most = largest(counts, n);
    char **all = fac_alloc((size_t)(n * most) + 1, sizeof *all), **from = p->text;
    static char empty[1];
    if (!all) return fac_raise_memory(err, "parts of texts");
    for (int64_t k = 0; k < n; k++)
        for (int64_t j = 0; j < most; j++) all[k * most + j] = j < counts[k] ? *from++ : empty;
    d.d[d.n++] = most;
    fac_status status = fac_strings_tensor(d, all, y, err);
    fac_release(all);
    return status;
}

static fac_status put_all(const parts *p, const int64_t *counts, fac_dims d, fac_tensor *y[],
                          fac_error *err) {
    const int64_t n = fac_dims_count(&d);
    fac_status status = fac_tensor_new(NULL, FAC_I64, d, &y[1], err);
    if (!status && n) status = fac_tensor_write(y[1], counts, (size_t)n * sizeof *counts, err);
    if (!status) status = put_parts(p, counts, d, &y[0], err);
    if (status) {
        fac_tensor_free(y[1]);
        y[1] = NULL;
    }
    return status;
}

static fac_status host(const fac_node *n, fac_tensor *const x[], fac_tensor *y[], fac_error *err) {
    const attrs *a = n->attrs;
    const int64_t count = fac_strings_count(x[0]), most = a->limited ? a->most : -1;
    int64_t *counts = fac_alloc((size_t)count + 1, sizeof *counts);
    parts p = { 0 };
    p.failed = !counts;
    for (int64_t k = 0; k < count && !p.failed; k++) {
        const size_t before = p.n;
        const char *s = fac_strings_of(x[0])[k];
        if (a->delimiter && *a->delimiter)
            by_delimiter(&p, s, a->delimiter, most);
        else
            by_spaces(&p, s, most);
        counts[k] = (int64_t)(p.n - before);
    }
    fac_status status = p.failed ? fac_raise_memory(err, "parts of texts")
                                 : put_all(&p, counts, fac_tensor_type(x[0]).dims, y, err);
    fac_arena_free(&p.arena);
    fac_release(p.text);
    fac_release(counts);
    return status;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_string_split(x[0], fac_onnx_text(n, "delimiter", NULL),
                            fac_onnx_int(n, "maxsplit", -1));
    if (n->nout > 1) y[1] = fac_value_other(y[0], 1);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]),
               *count = fac_onnx_name(w, n->out[1]);
    if (w->opset < 20) return false;
    fac_onnx_put(w, "StringSplit", 1, &x, y ? y : "");
    fac_onnx_put_out(w, count ? count : fac_onnx_fresh(w));
    if (a->delimiter) fac_onnx_put_text(w, "delimiter", a->delimiter);
    if (a->limited) fac_onnx_put_int(w, "maxsplit", a->most);
    return true;
}

static const fac_onnx onnx[] = { { "", "StringSplit", 20, 0, NULL, load, 0 }, { 0 } };
static const fac_case cases[] = { { "string_split(text{\"a b  c\",\"\",\" d\"})", 0, 0, 0 },
                                  { "string_split(text{\"a,,b\",\"\"}) delimiter=\",\"", 0, 0, 0 },
                                  { "string_split(text{\"a b c\"}) most=1 limited", 0, 0, 0 },
                                  { "string_split(text[0,2])", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_string_split;
const fac_op fac_op_string_split = {
    .name = "string_split",
    .doc = "texts cut into parts",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD | FAC_OP_DYNAMIC,
    .infer = infer,
    .host = host,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_string_split(fac_value *x, const char *delimiter, int64_t most) {
    return fac_emit(&fac_op_string_split, &(attrs){ delimiter, most < 0 ? 0 : most, most >= 0 }, 1,
                    &x);
}
