/* See ml.h. */
#include "ops/ml/ml.h"
#include <string.h>
#include "base/error.h"
#include "graph/graph_internal.h"

/* ---- lists ---- */

static void *room_for(fac_graph *g, int n, size_t size) {
    void *p = fac_arena_alloc(&g->arena, (size_t)n + 1, size);
    if (!p) fac_fail_graph(g, FAC_E_NOMEM, "no memory for %d elements of an attribute", n);
    return p;
}

fac_ml_ints fac_ml_ints_of(const fac_onnx_node *n, fac_graph *g, const char *attr) {
    const int count = fac_onnx_count(n, attr);
    int64_t *to = count >= 0 ? room_for(g, count, sizeof *to) : NULL;
    if (!to || fac_onnx_ints_long(n, attr, to, count) < 0) return (fac_ml_ints){ -1, NULL };
    return (fac_ml_ints){ count, to };
}

fac_ml_texts fac_ml_texts_of(const fac_onnx_node *n, fac_graph *g, const char *attr) {
    const int count = fac_onnx_count(n, attr);
    const char **to = count >= 0 ? room_for(g, count, sizeof *to) : NULL;
    if (!to || fac_onnx_texts(n, attr, to, count) < 0) return (fac_ml_texts){ -1, NULL };
    return (fac_ml_texts){ count, to };
}

static fac_ml_reals reals_of_tensor(fac_graph *g, const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    double *to = n < INT32_MAX ? room_for(g, (int)n, sizeof *to) : NULL;
    fac_tensor *wide = NULL;
    fac_error err = { 0 };
    if (!to) return (fac_ml_reals){ .n = -1 };
    fac_status status = fac_tensor_convert(t, FAC_F64, &wide, &err);
    if (!status) status = fac_tensor_read(wide, to, (size_t)n * sizeof *to, &err);
    fac_tensor_free(wide);
    if (!status) return (fac_ml_reals){ (int)n, to, type.dtype };
    fac_fail_graph(g, status, "%s", err.text);
    return (fac_ml_reals){ .n = -1 };
}

fac_ml_reals fac_ml_reals_of(const fac_onnx_node *n, fac_graph *g, const char *attr) {
    const char *longer = fac_arena_print(&g->arena, "%s_as_tensor", attr);
    const int count = fac_onnx_count(n, attr);
    const bool other = longer && fac_onnx_has(n, longer);
    if (count < 0 && !other && !fac_onnx_has(n, attr))
        return (fac_ml_reals){ .n = -1, .dtype = FAC_F32 };
    if (count < 0) {
        const fac_tensor *t = fac_onnx_tensor(n, other ? longer : attr);
        return t ? reals_of_tensor(g, t) : (fac_ml_reals){ .n = -1 };
    }
    double *to = room_for(g, count, sizeof *to);
    if (!to || fac_onnx_reals(n, attr, to, count) < 0) return (fac_ml_reals){ .n = -1 };
    return (fac_ml_reals){ count, to, FAC_F32 };
}

/* ---- constants ---- */

fac_value *fac_ml_const(fac_graph *g, fac_dtype dtype, int64_t n, const void *elements) {
    const size_t size =
        dtype == FAC_TEXT ? sizeof(char *) : (size_t)fac_dtype_get(dtype)->block_bytes;
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    fac_status status = fac_tensor_new(NULL, dtype, fac_shape(n), &t, &err);
    if (!status && n) status = fac_tensor_write(t, elements, (size_t)n * size, &err);
    fac_value *v = status ? fac_fail_graph(g, status, "%s", err.text) : fac_const(g, t);
    fac_tensor_free(t);
    return v;
}

fac_value *fac_ml_numbers(fac_graph *g, fac_dtype dtype, fac_dims dims, const double *numbers) {
    fac_tensor *wide = NULL, *t = NULL;
    fac_error err = { 0 };
    const size_t bytes = (size_t)fac_dims_count(&dims) * sizeof *numbers;
    fac_status status = fac_tensor_new(NULL, FAC_F64, dims, &wide, &err);
    if (!status && bytes) status = fac_tensor_write(wide, numbers, bytes, &err);
    if (!status) status = fac_tensor_convert(wide, dtype, &t, &err);
    fac_value *v = status ? fac_fail_graph(g, status, "%s", err.text) : fac_const(g, t);
    fac_tensor_free(wide);
    fac_tensor_free(t);
    return v;
}

fac_value *fac_ml_rows(fac_value *x) {
    const bool is_float = fac_dtype_get(x->type.dtype)->kind == 'f';
    if (!is_float) x = fac_cast(x, FAC_F32);
    return x->type.dims.n == 1 ? fac_unsqueeze(x, fac_shape(0)) : x;
}

/* ---- scores ---- */

fac_ml_post fac_ml_post_of(const fac_onnx_node *n, fac_graph *g) {
    static const char *const names[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT" };
    const char *text = fac_onnx_text(n, "post_transform", "NONE");
    for (int k = 0; k < 5; k++)
        if (!strcmp(text, names[k])) return (fac_ml_post)k;
    fac_fail_graph(g, FAC_E_FORMAT, "post_transform is \"%s\", which is no such transform", text);
    return FAC_ML_NONE;
}

/* Softmax of the scores that are not 0; what is about 0 stays so. */
static fac_value *softmax_zero(fac_value *x) {
    fac_value *most = fac_reduce_max(x, fac_shape(-1), true), *zero = fac_number_as(x, 0);
    fac_value *some = fac_greater(fac_abs(x), fac_number_as(x, 1e-7)),
              *e = fac_exp(fac_sub(x, most));
    fac_value *all = fac_sum(fac_where(some, e, zero), fac_shape(-1), true);
    return fac_div(fac_where(some, e, fac_mul(x, fac_exp(fac_neg(most)))), all);
}

/* sqrt 2 times the inverse of erf at 2 x - 1, by Winitzki's formula with 0.147, which ONNX's own
 * evaluators use. */
fac_value *fac_ml_probit(fac_value *x) {
    fac_value *one = fac_number_as(x, 1), *u = fac_sub(fac_mul(x, fac_number_as(x, 2)), one);
    fac_value *l = fac_log(fac_mul(fac_sub(one, u), fac_add(one, u)));
    fac_value *v =
        fac_add(fac_mul(l, fac_number_as(x, 0.5)), fac_number_as(x, 2 / (3.14159 * 0.147)));
    fac_value *root = fac_sqrt(fac_sub(fac_mul(v, v), fac_mul(l, fac_number_as(x, 1 / 0.147))));
    fac_value *y = fac_sqrt(fac_sub(root, v));
    return fac_mul(fac_where(fac_less(u, fac_number_as(x, 0)), fac_neg(y), y),
                   fac_number_as(x, 1.41421356));
}

fac_value *fac_ml_post_apply(fac_value *x, fac_ml_post post) {
    const bool alone = x->type.dims.n == 2 && x->type.dims.d[1] == 1;
    if (alone && post != FAC_ML_PROBIT) return x;
    switch (post) {
    case FAC_ML_SOFTMAX:
        return fac_softmax(x, -1);
    case FAC_ML_LOGISTIC:
        return fac_sigmoid(x);
    case FAC_ML_SOFTMAX_ZERO:
        return softmax_zero(x);
    case FAC_ML_PROBIT:
        return fac_ml_probit(x);
    default:
        return x;
    }
}

/* ---- labels ---- */

fac_ml_classes fac_ml_classes_of(const fac_onnx_node *n, fac_graph *g, const char *ints,
                                 const char *texts) {
    const fac_ml_ints i = fac_ml_ints_of(n, g, ints);
    const fac_ml_texts t = fac_ml_texts_of(n, g, texts);
    fac_ml_classes c = { .n = i.n > 0 ? i.n : t.n, .texts = i.n <= 0 };
    if (i.n > 0 && t.n > 0)
        fac_fail_graph(g, FAC_E_FORMAT, "%s has both %s and %s", n->type, ints, texts);
    else if (c.n <= 0)
        fac_fail_graph(g, FAC_E_FORMAT, "%s lacks %s or %s", n->type, ints, texts);
    else if (c.texts)
        c.labels = fac_ml_const(g, FAC_TEXT, t.n, t.v);
    else
        c.labels = fac_ml_const(g, FAC_I64, i.n, i.v);
    return c;
}

fac_value *fac_ml_label(const fac_ml_classes *c, fac_value *scores) {
    return fac_gather(c->labels, fac_arg_max(scores, 1, false), 0);
}

/* [the other label, the label] of a classifier that knows one class. */
static fac_value *with_another(const fac_ml_classes *c) {
    fac_graph *g = fac_value_graph(c->labels);
    fac_value *zero = c->texts ? fac_ml_const(g, FAC_TEXT, 1, &(const char *){ "" })
                               : fac_ml_const(g, FAC_I64, 1, &(int64_t){ 0 });
    return fac_concat((fac_value *[]){ zero, c->labels }, 2, 0);
}

fac_value *fac_ml_label_of_two(const fac_ml_classes *c, fac_value *yes) {
    return fac_gather(c->n == 1 ? with_another(c) : c->labels, fac_cast(yes, FAC_I64), 0);
}

fac_value *fac_ml_two_columns(fac_value *a, fac_value *b) {
    return fac_concat((fac_value *[]){ a, b }, 2, 1);
}

fac_value *fac_ml_both(fac_value *s, fac_ml_post post) {
    if (post == FAC_ML_PROBIT) return fac_ml_probit(s);
    if (post == FAC_ML_LOGISTIC) return fac_sigmoid(fac_ml_two_columns(fac_neg(s), s));
    return fac_ml_two_columns(fac_sub(fac_number_as(s, 1), s), s);
}
