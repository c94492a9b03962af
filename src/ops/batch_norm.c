/* Batch normalization. */
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/batch_norm.h"
#include "ops/cost.h"
#include "ops/define.h"
#include "ops/grad.h"

#if FAC_INTERFACE
/* y[n,c,...] = (x[n,c,...] - mean[c]) / sqrt(var[c] + epsilon) scale[c] + bias[c]
 *   x N,C,... (or N alone: one channel)   scale, bias, mean, var C.   Floats; the five may differ
 *       in precision.
 * The op has an attribute `training_mode`: then mean and var of x itself are taken (var over all
 * elements of a channel, not over one less), and outputs 1 and 2 are the running statistics: mean
 * momentum + (mean of x) (1 - momentum), likewise var. */
fac_value *fac_batch_norm(fac_value *x, fac_value *scale, fac_value *bias, fac_value *mean,
                          fac_value *var, double epsilon);
#endif

extern const fac_op fac_op_batch_norm;

typedef fac_batch_norm_attrs attrs;
static const fac_attr table[] = { { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the variance" },
                                  { "momentum", FAC_A_REAL, offsetof(attrs, momentum), 0, 0, 0, 0,
                                    NULL, "share of the old running statistics" },
                                  { "training_mode", FAC_A_FLAG, offsetof(attrs, training), 0, 0, 0,
                                    0, NULL, "statistics of x instead of mean and var" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },    { "scale", FAC_FLOATS, 0 },
                               { "bias", FAC_FLOATS, 0 }, { "mean", FAC_FLOATS, 0 },
                               { "var", FAC_FLOATS, 0 },  { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 },
                                { "running_mean", FAC_FLOATS, FAC_OPTIONAL },
                                { "running_var", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    if (x->n < 1) return fac_fail(n, FAC_E_SHAPE, "x must have a channel dim");
    int64_t channels = x->n > 1 ? x->d[1] : 1;
    for (int k = 1; k < 5; k++) {
        const fac_dims *d = &n->in[k]->type.dims;
        if (d->n != 1 || (d->d[0] != channels && d->d[0] >= 0 && channels >= 0))
            return fac_fail(n, FAC_E_SHAPE, "%s must have one number for each of the %lld channels",
                            in[k].name, (long long)channels);
    }
    n->out[0]->type = n->in[0]->type;
    for (int k = 1; k < n->nout; k++) n->out[k]->type = n->in[2 + k]->type;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_dims *d = &r->in[0].type.dims;
    const double *x = r->in[0].f, *scale = r->in[1].f, *bias = r->in[2].f;
    int64_t images = d->d[0], channels = d->n > 1 ? d->d[1] : 1, plane = 1;
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    for (int64_t c = 0; c < channels; c++) {
        double mean = r->in[3].f[c], var = r->in[4].f[c];
        if (a->training) {
            double count = (double)(images * plane), sum = 0, squares = 0;
            for (int64_t i = 0; i < images; i++)
                for (int64_t k = 0; k < plane; k++) sum += x[(i * channels + c) * plane + k];
            mean = sum / count;
            for (int64_t i = 0; i < images; i++)
                for (int64_t k = 0; k < plane; k++) {
                    double e = x[(i * channels + c) * plane + k] - mean;
                    squares += e * e;
                }
            var = squares / count;
        }
        double keep = a->training ? a->momentum : 1, f = scale[c] / sqrt(var + a->epsilon);
        if (r->out[1].f) r->out[1].f[c] = r->in[3].f[c] * keep + mean * (1 - keep);
        if (r->out[2].f) r->out[2].f[c] = r->in[4].f[c] * keep + var * (1 - keep);
        for (int64_t i = 0; r->out[0].f && i < images; i++)
            for (int64_t k = 0; k < plane; k++) {
                int64_t at = (i * channels + c) * plane + k;
                r->out[0].f[at] = (x[at] - mean) * f + bias[c];
            }
    }
    return FAC_OK;
}

/* One with ones around the channels, as the gradient of input k. */
static fac_value *channels_of(const fac_node *n, fac_value *v, int k) {
    return fac_grad_as(fac_reshape_like(v, n->in[k]), n->in[k]->type.dtype);
}

/* Inference, with f = scale / sqrt(var + epsilon):
 *   dx = dy f,   dmean = -f sum dy,   dvar = -f / (2 (var + epsilon)) sum dy (x - mean) */
static void grad_given(const fac_node *n, fac_dims over, fac_value *dy, fac_value *dx[]) {
    fac_graph *g = n->graph;
    fac_dtype dtype = n->in[0]->type.dtype;
    fac_value *var = fac_add(fac_grad_of_channels(n->in[4], n->in[0]),
                             fac_number(g, dtype, ((const attrs *)n->attrs)->epsilon));
    fac_value *inverse = fac_reciprocal(fac_sqrt(var)),
              *f = fac_mul(fac_grad_of_channels(n->in[1], n->in[0]), inverse);
    fac_value *centred = fac_sub(n->in[0], fac_grad_of_channels(n->in[3], n->in[0]));
    if (fac_needs(n, 0)) dx[0] = fac_mul(dy, f);
    if (fac_needs(n, 1) || fac_needs(n, 4)) {
        fac_value *along = fac_sum(fac_mul(dy, centred), over, true);
        if (fac_needs(n, 1)) dx[1] = channels_of(n, fac_mul(along, inverse), 1);
        if (fac_needs(n, 4))
            dx[4] = channels_of(n, fac_grad_times(fac_div(fac_mul(along, f), var), -0.5), 4);
    }
    if (fac_needs(n, 2)) dx[2] = channels_of(n, fac_sum(dy, over, true), 2);
    if (fac_needs(n, 3)) dx[3] = channels_of(n, fac_neg(fac_mul(fac_sum(dy, over, true), f)), 3);
}

/* Training: through the statistics of x, and to x from the running ones. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0];
    double keep = a->training ? a->momentum : 1;
    fac_dims over = { .n = 1 }; /* all dims but the channels */
    for (int k = 2; k < x->type.dims.n; k++) over.d[over.n++] = k;
    for (int k = 1; k < 3; k++) /* running = old keep + that of x (1 - keep) */
        if (k < n->nout && dy[k] && fac_needs(n, 2 + k)) dx[2 + k] = fac_grad_times(dy[k], keep);
    if (!a->training) {
        fac_value *own[5] = { NULL };
        if (dy[0]) grad_given(n, over, dy[0], own);
        for (int k = 0; k < 5; k++) dx[k] = fac_grad_plus(dx[k], own[k]);
        return;
    }
    if (dy[0]) {
        fac_value *d = fac_batch_norm_grad(x, dy[0], n->in[1], a->epsilon);
        dx[0] = d;
        dx[1] = fac_value_other(d, 1);
        if (fac_needs(n, 2)) dx[2] = fac_grad_as(fac_value_other(d, 2), n->in[2]->type.dtype);
    }
    bool through_running = (n->nout > 1 && dy[1]) || (n->nout > 2 && dy[2]);
    if (!fac_needs(n, 0) || !through_running) return;
    fac_value *mean = fac_mean(x, over, true);
    if (n->nout > 1 && dy[1]) {
        fac_value *d = fac_grad_times(fac_grad_of_channels(dy[1], x), 1 - keep);
        dx[0] = fac_grad_plus(dx[0], fac_grad_spread(fac_grad_share(d, x, mean), x));
    }
    if (n->nout > 2 && dy[2]) {
        fac_value *d = fac_grad_times(fac_grad_of_channels(dy[2], x), 2 * (1 - keep));
        dx[0] = fac_grad_plus(dx[0], fac_mul(fac_grad_share(d, x, mean), fac_sub(x, mean)));
    }
}

/* A factor and a summand of each element; the statistics of training as much again. */
static void cost(const fac_node *n, fac_cost *to) {
    fac_cost_each(n, ((const attrs *)n->attrs)->training ? 5 : 2, to);
}

/* Training was asked for by the outputs before opset 14, with a meaning of its own that nobody
 * exports. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    attrs a = { fac_onnx_real(n, "epsilon", 1e-5), fac_onnx_real(n, "momentum", 0.9),
                fac_onnx_int(n, "training_mode", 0) };
    if (n->opset < 9 && !fac_onnx_int(n, "spatial", 1)) {
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "BatchNormalization: spatial = 0");
        return;
    }
    if (n->opset < 14 && n->nout > 1) {
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "BatchNormalization: training of opset %d",
                              n->opset);
        return;
    }
    y[0] = fac_emit(&fac_op_batch_norm, &a, 5, x);
    for (int k = 1; k < n->nout && k < 3; k++) y[k] = fac_value_other(y[0], k);
}

static void load_first(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    if (fac_onnx_int(n, "is_test", 0))
        load(n, g, x, y);
    else
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "BatchNormalization: training of opset %d",
                              n->opset);
}

static const fac_onnx_attr spellings[] = { { "spatial", NULL }, { 0 } };
static const fac_onnx_attr first[] = {
    { "spatial", NULL }, { "is_test", NULL }, { "consumed_inputs", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "BatchNormalization", 7, 0, spellings, load, 0 },
                                 { "", "BatchNormalization", 1, 6, first, load_first, 5 },
                                 { 0 } };
/* Training and statistics of another type than x came with opset 14, such a scale with 15.  Without
 * training ONNX has no running statistics: they stay what they were. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const char *from[5], *y = fac_onnx_name(w, n->out[0]);
    const fac_dtype dtype = n->in[0]->type.dtype;
    const bool scaled = n->in[1]->type.dtype == dtype && n->in[2]->type.dtype == dtype;
    const bool whole = scaled && n->in[3]->type.dtype == dtype && n->in[4]->type.dtype == dtype;
    if ((w->opset < 14 && (a->training || !whole)) || (w->opset < 15 && !scaled)) return false;
    for (int k = 0; k < 5; k++) from[k] = fac_onnx_name(w, n->in[k]);
    fac_onnx_put(w, "BatchNormalization", 5, from, y ? y : "");
    if (a->training)
        for (int k = 1; k < 3; k++) fac_onnx_put_out(w, fac_onnx_name(w, n->out[k]));
    fac_onnx_put_real(w, "epsilon", a->epsilon);
    fac_onnx_put_real(w, "momentum", a->momentum);
    if (a->training) fac_onnx_put_int(w, "training_mode", 1);
    for (int k = 1; k < 3 && !a->training; k++)
        if (fac_onnx_name(w, n->out[k]))
            fac_onnx_put(w, "Identity", 1, &from[2 + k], fac_onnx_name(w, n->out[k]));
    return true;
}

static const fac_case cases[] = {
    { "batch_norm(f32[2,3,4,5], f32[3], f32[3], f32[3], f32[3]) epsilon=1e-5", 0.1, 2, 1e-5 },
    { "batch_norm(f32[4,7], f32[7], f32[7], f32[7], f32[7]) epsilon=1e-5", 0.1, 2, 1e-5 },
    { "batch_norm(f32[2,3,5], f32[3], f32[3], f32[3], f32[3]) epsilon=0.01 momentum=0.9 "
      "training_mode",
      0.1, 2, 1e-5 },
    { "batch_norm(f16[2,3,5], f32[3], f32[3], f32[3], f32[3]) epsilon=1e-5", 0.1, 2, 1e-2 },
    { "batch_norm(f32[0,3,4], f32[3], f32[3], f32[3], f32[3]) epsilon=1e-5", 0.1, 2, 0 },
    { 0 }
};

/* old momentum + own (1 - momentum) */
static fac_value *running(fac_value *old, fac_value *own, double momentum) {
    own = fac_grad_as(fac_reshape(own, old->type.dims), old->type.dtype);
    return fac_add(fac_grad_times(old, momentum), fac_grad_times(own, 1 - momentum));
}

static void define(const fac_node *n, fac_value *y[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0], *mean = n->in[3], *var = n->in[4];
    const int rank = x->type.dims.n;
    fac_dims over = { .n = 1 };
    if (rank < 2) return;
    for (int k = 2; k < rank; k++) over.d[over.n++] = k;
    if (a->training) {
        fac_value *own = fac_mean(x, over, true), *centred = fac_sub(x, own);
        fac_value *spread = fac_mean(fac_mul(centred, centred), over, true);
        y[1] = running(mean, own, a->momentum);
        y[2] = running(var, spread, a->momentum);
        mean = fac_reshape(own, n->in[3]->type.dims);
        var = fac_reshape(spread, n->in[4]->type.dims);
    }
    fac_value *root = fac_sqrt(fac_add(var, fac_number_as(var, a->epsilon)));
    fac_value *hat =
        fac_div(fac_sub(x, fac_grad_of_channels(mean, x)), fac_grad_of_channels(root, x));
    y[0] = fac_define_channels(hat, n->in[1], n->in[2]);
}

const fac_op fac_op_batch_norm = {
    .name = "batch_norm",
    .doc = "normalization of each channel by given or own statistics",
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
    .layer = FAC_CLASS_BATCH_NORM,
    .torch = "BatchNorm",
    .mixed = FAC_MIXED_DATA,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_BATCH_NORM },
};
fac_value *fac_batch_norm(fac_value *x, fac_value *scale, fac_value *bias, fac_value *mean,
                          fac_value *var, double epsilon) {
    return fac_emit(&fac_op_batch_norm, &(attrs){ epsilon, 0, false }, 5,
                    (fac_value *[]){ x, scale, bias, mean, var });
}
