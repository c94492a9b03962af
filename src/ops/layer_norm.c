/* Layer normalization (Ba, Kiros, Hinton, 2016). */
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/grad.h"
#include "ops/lines.h"
#include "ops/norm.h"

#if FAC_INTERFACE
/* y = (x - mean) / sqrt(var + epsilon) scale + bias;  mean and var over the dims axis.. of x (a
 * negative axis counts from the end).  scale and bias broadcast to those dims; both may be NULL.
 * Floats.  Outputs 1 and 2: mean and 1 / sqrt(var + epsilon), with 1 in place of the dims they were
 * taken over. */
fac_value *fac_layer_norm(fac_value *x, fac_value *scale, fac_value *bias, int64_t axis,
                          double epsilon);
#endif

extern const fac_op fac_op_layer_norm;

typedef struct attrs {
    int64_t axis;
    double epsilon;
    fac_dtype stash;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "the first normalized dim" },
                                  { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the variance" },
                                  { "stash", FAC_A_DTYPE, offsetof(attrs, stash), 0, 0, 0, 0, NULL,
                                    "of mean and inv_std; none: f32, for f64 f64" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, FAC_OPTIONAL },
                               { "bias", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 },
                                { "mean", FAC_FLOATS, FAC_OPTIONAL },
                                { "inv_std", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    const fac_type *x = &n->in[0]->type;
    int axis = fac_lines_axis(n, a->axis);
    if (axis < 0) return false;
    for (int k = 1; k < n->nports; k++)
        if (n->in[k] && !fac_norm_fits(&n->in[k]->type.dims, &x->dims, axis))
            return fac_fail(n, FAC_E_SHAPE, "%s does not broadcast to the dims of x from %d on",
                            in[k].name, axis);
    n->out[0]->type = *x;
    fac_type rest = { a->stash != FAC_NONE  ? a->stash
                      : x->dtype == FAC_F64 ? FAC_F64
                                            : FAC_F32,
                      x->dims };
    for (int k = axis; k < rest.dims.n; k++) rest.dims.d[k] = 1;
    for (int k = 1; k < n->nout; k++) n->out[k]->type = rest;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_dims *d = &r->in[0].type.dims;
    const fac_array *scale = &r->in[1], *bias = &r->in[2];
    int axis = fac_axis(a->axis, d->n ? d->n : 1);
    int64_t rows = 1, size = 1;
    for (int k = 0; k < d->n; k++) *(k < axis ? &rows : &size) *= d->d[k];
    for (int64_t i = 0; i < rows; i++) {
        const double *x = r->in[0].f + i * size;
        double mean, var;
        fac_moments(x, size, &mean, &var);
        double inverse = 1 / sqrt(var + a->epsilon);
        if (r->out[1].f) r->out[1].f[i] = mean;
        if (r->out[2].f) r->out[2].f[i] = inverse;
        for (int64_t k = 0; r->out[0].f && k < size; k++) {
            double y = (x[k] - mean) * inverse;
            if (scale->f) y *= scale->f[fac_norm_at(&scale->type.dims, d, k)];
            if (bias->f) y += bias->f[fac_norm_at(&bias->type.dims, d, k)];
            r->out[0].f[i * size + k] = y;
        }
    }
    return FAC_OK;
}

/* The usual case: nothing used the statistics, and nothing broadcasts inside a row. */
static bool grad_of_rows(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    const int rank = n->in[0]->type.dims.n, axis = rank ? fac_axis(a->axis, rank) : -1;
    if (axis < 0 || !dy[0] || (n->nout > 1 && dy[1]) || (n->nout > 2 && dy[2])) return false;
    if (!fac_norm_covers(n, 1, axis) || !fac_norm_covers(n, 2, axis) || !fac_needs(n, 0))
        return false; /* sums alone are ops of their own */
    dx[0] = fac_layer_norm_grad(n->in[0], dy[0], n->in[1], a->axis, a->epsilon);
    if (fac_needs(n, 1)) dx[1] = fac_value_other(dx[0], 1);
    if (fac_needs(n, 2)) dx[2] = fac_value_other(dx[0], 2);
    return true;
}

/* Through the normalized x, and through the two statistics when they were used:
 *   d mean / d x = 1 / size,   d inv_std / d x = -inv_std^2 hat / size. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0], *scale = n->in[1], *bias = n->in[2];
    fac_dtype dtype = x->type.dtype;
    fac_dims over = { 0 };
    int rank = x->type.dims.n;
    if (grad_of_rows(n, dy, dx)) return;
    for (int k = fac_axis(a->axis, rank ? rank : 1); k < rank; k++) over.d[over.n++] = k;
    fac_standard s = fac_grad_standard(x, over, a->epsilon);
    if (dy[0]) {
        if (fac_needs(n, 1))
            dx[1] = fac_grad_as(fac_sum_like(fac_mul(dy[0], s.hat), scale), scale->type.dtype);
        if (fac_needs(n, 2)) dx[2] = fac_grad_as(fac_sum_like(dy[0], bias), bias->type.dtype);
        if (fac_needs(n, 0))
            dx[0] =
                fac_grad_unstandard(&s, scale ? fac_mul(dy[0], fac_grad_as(scale, dtype)) : dy[0]);
    }
    if (!fac_needs(n, 0)) return;
    if (n->nout > 1 && dy[1])
        dx[0] = fac_grad_plus(
            dx[0], fac_grad_spread(fac_grad_share(fac_grad_as(dy[1], dtype), x, s.mean), x));
    if (n->nout > 2 && dy[2]) {
        fac_value *d = fac_mul(fac_grad_as(dy[2], dtype), fac_mul(s.inverse, s.inverse));
        dx[0] = fac_grad_plus(dx[0], fac_neg(fac_mul(fac_grad_share(d, x, s.mean), s.hat)));
    }
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 7, to); }

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    attrs a = { fac_onnx_int(n, "axis", -1), fac_onnx_real(n, "epsilon", 1e-5),
                fac_onnx_dtype(n, "stash_type", FAC_F32) };
    y[0] = fac_emit(&fac_op_layer_norm, &a, 3,
                    (fac_value *[]){ x[0], x[1], n->nin > 2 ? x[2] : NULL });
    for (int k = 1; k < n->nout && k < 3; k++) y[k] = fac_value_other(y[0], k);
}

static const fac_onnx_attr spellings[] = { { "stash_type", "stash" }, { 0 } };
static const fac_onnx onnx[] = { { "", "LayerNormalization", 17, 0, spellings, load, 2 },
                                 { "com.microsoft", "SkipLayerNormalization", 1, 0, fac_names_norm,
                                   fac_load_skip_layer_norm, 3 },
                                 { "com.microsoft", "EmbedLayerNormalization", 1, 0, fac_names_norm,
                                   fac_load_embed_layer_norm, 1 },
                                 { 0 } };
/* ONNX must have a scale, and statistics in f32 or bf16. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const fac_type *x = &n->in[0]->type;
    fac_dims normal = { 0 };
    for (int k = fac_axis(a->axis, x->dims.n ? x->dims.n : 1); k < x->dims.n; k++)
        normal.d[normal.n++] = x->dims.d[k];
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]),
                          fac_onnx_name(w, n->in[2]) };
    const char *y = fac_onnx_name(w, n->out[0]), *mean = fac_onnx_name(w, n->out[1]),
               *inv_std = fac_onnx_name(w, n->out[2]);
    const fac_dtype stash = n->out[1]->type.dtype;
    const bool told = mean || inv_std;
    if (w->opset < 17 || (told && stash != FAC_F32 && stash != FAC_BF16)) return false;
    if (!n->in[1] && fac_dims_count(&normal) < 0) return false;
    if (!ins[1]) ins[1] = fac_onnx_full(w, x->dtype, normal, 1);
    fac_onnx_put(w, "LayerNormalization", 3, ins, y ? y : "");
    if (told) fac_onnx_put_out(w, mean);
    if (inv_std) fac_onnx_put_out(w, inv_std);
    fac_onnx_put_int(w, "axis", a->axis);
    fac_onnx_put_real(w, "epsilon", a->epsilon);
    if (told) fac_onnx_put_dtype(w, "stash_type", stash);
    return true;
}

static const fac_case cases[] = {
    { "layer_norm(f32[2,3,8], f32[8], f32[8]) axis=-1 epsilon=1e-5", -1, 1, 1e-5 },
    { "layer_norm(f32[2,3,8], f32[3,8], -) axis=1 epsilon=1e-5", -1, 1, 1e-5 },
    { "layer_norm(f32[5,384], f32[384], f32[384]) axis=1 epsilon=1e-12", -1, 1, 1e-5 },
    { "layer_norm(f32[2,3,4], f32[1], f32[3,1]) axis=1 epsilon=1e-5", -1, 1, 1e-5 },
    { "layer_norm(f32[4,6], -, -) axis=0 epsilon=0.01", -1, 1, 1e-5 },
    { "layer_norm(f32[0,8], f32[8], f32[8]) axis=-1 epsilon=1e-5", 0, 0, 0 },
    { "layer_norm(f16[2,8], f16[8], f16[8]) axis=-1 epsilon=1e-5", -1, 1, 1e-2 },
    { 0 }
};

static void define(const fac_node *n, fac_value *y[]) {
    const attrs *a = n->attrs;
    const int rank = n->in[0]->type.dims.n;
    fac_dims over = { 0 };
    for (int k = fac_axis(a->axis, rank ? rank : 1); k < rank; k++) over.d[over.n++] = k;
    const fac_standard s = fac_grad_standard(n->in[0], over, a->epsilon);
    y[0] = fac_define_scaled(s.hat, n->in[1], n->in[2]);
    y[1] = fac_grad_as(s.mean, n->out[1]->type.dtype);
    y[2] = fac_grad_as(s.inverse, n->out[2]->type.dtype);
}

const fac_op fac_op_layer_norm = {
    .name = "layer_norm",
    .doc = "normalization of each sample over its last dims",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .define = define,
    .layer = FAC_CLASS_LAYER_NORM,
    .torch = "LayerNorm",
    .rounding = { .rule = FAC_ROUND_LAYER_NORM },
};
fac_value *fac_layer_norm(fac_value *x, fac_value *scale, fac_value *bias, int64_t axis,
                          double epsilon) {
    return fac_emit(&fac_op_layer_norm, &(attrs){ axis, epsilon, FAC_NONE }, 3,
                    (fac_value *[]){ x, scale, bias });
}
