/* The gradient of batch normalization in training. */
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/batch_norm_ref.h"
#include "ops/cost.h"
#include "ops/grad.h"

#if FAC_INTERFACE
/* Through the statistics of x itself (Ioffe, Szegedy, 2015), with hat = (x - mean x) / sqrt(var x +
 * epsilon) in each channel:
 *   dx = scale / sqrt(var x + epsilon) (dy - mean dy - hat mean(dy hat)),   dscale = sum dy hat,
 *       dbias = sum dy
 * x, dy N,C,... (or N alone: one channel)   scale C.   Outputs 1 and 2 are dscale and dbias. */
fac_value *fac_batch_norm_grad(fac_value *x, fac_value *dy, fac_value *scale, double epsilon);
#endif

typedef struct attrs {
    double epsilon;
} attrs;
static const fac_attr table[] = { { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the variance" },
                                  { 0 } };
static const fac_port in[] = {
    { "x", FAC_FLOATS, 0 }, { "dy", FAC_FLOATS, 0 }, { "scale", FAC_FLOATS, 0 }, { 0 }
};
static const fac_port out[] = { { "dx", FAC_FLOATS, 0 },
                                { "dscale", FAC_FLOATS, FAC_OPTIONAL },
                                { "dbias", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *dy = &n->in[1]->type, *scale = &n->in[2]->type;
    if (x->dims.n < 1 || dy->dims.n != x->dims.n || dy->dtype != x->dtype)
        return fac_fail(n, FAC_E_SHAPE, "x and dy differ");
    for (int k = 0; k < x->dims.n; k++)
        if (x->dims.d[k] >= 0 && dy->dims.d[k] >= 0 && x->dims.d[k] != dy->dims.d[k])
            return fac_fail(n, FAC_E_SHAPE, "x and dy differ in dim %d", k);
    int64_t channels = x->dims.n > 1 ? x->dims.d[1] : 1;
    if (scale->dims.n != 1 ||
        (scale->dims.d[0] != channels && scale->dims.d[0] >= 0 && channels >= 0))
        return fac_fail(n, FAC_E_SHAPE, "scale must have one number for each channel");
    n->out[0]->type = *x;
    n->out[1]->type = n->out[2]->type = *scale;
    return true;
}

void fac_batch_norm_grad_ref(const fac_ref *r, double epsilon, const double *y, double lo,
                             double hi) {
    const fac_dims *d = &r->in[0].type.dims;
    const double *x = r->in[0].f, *dy = r->in[1].f, *scale = r->in[2].f;
    int64_t images = d->d[0], channels = d->n > 1 ? d->d[1] : 1, plane = 1;
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    double count = (double)(images * plane);
    for (int64_t c = 0; c < channels; c++) {
        double mean = 0, var = 0, sum = 0, along = 0;
        for (int64_t i = 0; i < images; i++)
            for (int64_t k = 0; k < plane; k++) mean += x[(i * channels + c) * plane + k] / count;
        for (int64_t i = 0; i < images; i++)
            for (int64_t k = 0; k < plane; k++) {
                int64_t at = (i * channels + c) * plane + k;
                var += (x[at] - mean) * (x[at] - mean) / count;
                if (y && fac_norm_stops(y[at], lo, hi)) continue;
                sum += dy[at];
                along += dy[at] * (x[at] - mean);
            }
        double inverse = 1 / sqrt(var + epsilon);
        if (r->out[1].f) r->out[1].f[c] = along * inverse;
        if (r->out[2].f) r->out[2].f[c] = sum;
        for (int64_t i = 0; r->out[0].f && i < images; i++)
            for (int64_t k = 0; k < plane; k++) {
                int64_t at = (i * channels + c) * plane + k;
                double hat = (x[at] - mean) * inverse,
                       own = y && fac_norm_stops(y[at], lo, hi) ? 0 : dy[at];
                r->out[0].f[at] =
                    scale[c] * inverse * (own - sum / count - hat * inverse * along / count);
            }
    }
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    fac_batch_norm_grad_ref(r, ((const attrs *)r->attrs)->epsilon, NULL, 0, 0);
    return FAC_OK;
}

/* The formula in ops, in no less than f32: for second derivatives, and where no kernel is. */
static void expand(const fac_node *n, fac_value *to[]) {
    const fac_dtype dtype = n->in[0]->type.dtype, wide = fac_grad_wide(dtype);
    fac_value *x = fac_grad_as(n->in[0], wide), *dy = fac_grad_as(n->in[1], wide),
              *scale = n->in[2];
    fac_dims over = { .n = 1 };
    for (int k = 2; k < x->type.dims.n; k++) over.d[over.n++] = k;
    fac_standard s = fac_grad_standard(x, over, ((const attrs *)n->attrs)->epsilon);
    to[0] =
        fac_grad_as(fac_mul(fac_grad_unstandard(&s, dy), fac_grad_of_channels(scale, x)), dtype);
    to[1] = fac_grad_as(fac_reshape_like(fac_sum(fac_mul(dy, s.hat), over, true), scale),
                        scale->type.dtype);
    to[2] = fac_grad_as(fac_reshape_like(fac_sum(dy, over, true), scale), scale->type.dtype);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 10, to); }

static const fac_case cases[] = {
    { "batch_norm_grad(f32[2,3,4,5], f32[2,3,4,5], f32[3]) epsilon=1e-5", -2, 2, 1e-5 },
    { "batch_norm_grad(f32[6,7], f32[6,7], f32[7]) epsilon=0.01", -2, 2, 1e-5 },
    { "batch_norm_grad(f32[3,5,33], f32[3,5,33], f32[5]) epsilon=1e-5", -2, 2, 1e-5 },
    { "batch_norm_grad(f32[9], f32[9], f32[1]) epsilon=1e-5", -2, 2, 1e-5 },
    { "batch_norm_grad(f32[0,3,4], f32[0,3,4], f32[3]) epsilon=1e-5", 0, 1, 0 },
    { 0 }
};

extern const fac_op fac_op_batch_norm_grad;
const fac_op fac_op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .doc = "the gradient of batch normalization in training",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_batch_norm_grad(fac_value *x, fac_value *dy, fac_value *scale, double epsilon) {
    return fac_emit(&fac_op_batch_norm_grad, &(attrs){ epsilon }, 3,
                    (fac_value *[]){ x, dy, scale });
}
