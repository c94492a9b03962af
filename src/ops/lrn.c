/* Local response normalization (Krizhevsky, Sutskever, Hinton, 2012). */
#include <limits.h>
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/define.h"
#include "ops/grad.h"

#if FAC_INTERFACE
/* y[n,c,...] = x[n,c,...] / (bias + alpha / size sum over j of x[n,j,...]^2)^beta,
 * j from c - floor((size-1)/2) to c + ceil((size-1)/2).   x N,C,...   f32 f64 f16 bf16. */
fac_value *fac_lrn(fac_value *x, int64_t size, double alpha, double beta, double bias);
#endif

typedef struct attrs {
    int64_t size;
    double alpha, beta, bias;
} attrs;
static const fac_attr table[] = {
    { "size", FAC_A_INT, offsetof(attrs, size), 0, 1, 1, INT_MAX, NULL, "channels in the sum" },
    { "alpha", FAC_A_REAL, offsetof(attrs, alpha), 0, 0, 0, 0, NULL, "factor of the mean square" },
    { "beta", FAC_A_REAL, offsetof(attrs, beta), 0, 0, 0, 0, NULL, "exponent" },
    { "bias", FAC_A_REAL, offsetof(attrs, bias), 0, 0, 0, 0, NULL, "added to it" },
    { 0 }
};

static bool infer(fac_node *n) {
    if (n->in[0]->type.dims.n < 2) return fac_fail(n, FAC_E_SHAPE, "x must have a channel dim");
    n->out[0]->type = n->in[0]->type;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_dims *d = &r->in[0].type.dims;
    int64_t channels = d->d[1], plane = 1, before = (a->size - 1) / 2, after = a->size - 1 - before;
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    for (int64_t i = 0; i < d->d[0]; i++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t first = c > before ? c - before : 0,
                    last = c + after < channels ? c + after : channels - 1;
            for (int64_t k = 0; k < plane; k++) {
                const double *x = r->in[0].f + i * channels * plane + k;
                double sum = 0;
                for (int64_t j = first; j <= last; j++) sum += x[j * plane] * x[j * plane];
                double base = a->bias + a->alpha / (double)a->size * sum;
                r->out[0].f[(i * channels + c) * plane + k] = x[c * plane] / pow(base, a->beta);
            }
        }
    return FAC_OK;
}

/* The mean over a window of neighbouring channels (beside the edges: zeros), as an average pool of
 * N,1,C,all others; or that of the window flipped, which is its transpose. */
static fac_value *neighbours(const fac_node *n, fac_value *v, bool flipped) {
    int64_t size = ((const attrs *)n->attrs)->size;
    int64_t before = flipped ? size / 2 : (size - 1) / 2;
    fac_pool2d_opts o = { .stride = { 1, 1 },
                          .pad = { before, 0, size - 1 - before, 0 },
                          .count_include_pad = true };
    v = fac_unsqueeze(fac_reshape(v, fac_shape(0, 0, -1)), fac_shape(1));
    return fac_reshape_like(fac_avg_pool2d(v, size, 1, &o), n->in[0]);
}

/* base = bias + alpha mean of x^2:   dx = dy base^-beta - 2 alpha beta x mean'(dy x base^(-beta -
 * 1)) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0];
    fac_dtype dtype = x->type.dtype;
    fac_value *base = fac_grad_times(neighbours(n, fac_mul(x, x), false), a->alpha);
    base = fac_add(base, fac_number(n->graph, dtype, a->bias));
    fac_value *factor = fac_mul(dy[0], fac_pow(base, fac_number(n->graph, dtype, -a->beta)));
    fac_value *through = neighbours(n, fac_div(fac_mul(factor, x), base), true);
    dx[0] = fac_sub(factor, fac_grad_times(fac_mul(x, through), 2 * a->alpha * a->beta));
}

static void cost(const fac_node *n, fac_cost *to) {
    fac_cost_each(n, 2 * (double)((const attrs *)n->attrs)->size + 3, to);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    if (!fac_onnx_has(n, "size"))
        out[0] = fac_fail_graph(g, FAC_E_FORMAT, "LRN without size");
    else
        out[0] = fac_lrn(in[0], fac_onnx_int(n, "size", 0), fac_onnx_real(n, "alpha", 1e-4),
                         fac_onnx_real(n, "beta", 0.75), fac_onnx_real(n, "bias", 1));
}

static const fac_onnx onnx[] = { { "", "LRN", 1, 0, NULL, load, 0 }, { 0 } };
static const fac_case cases[] = {
    { "lrn(f32[2,7,3,4]) size=5 alpha=0.5 beta=0.75 bias=1", -2, 2, 1e-5 },
    { "lrn(f32[1,6,5,5]) size=4 alpha=0.0002 beta=0.5 bias=2", -2, 2, 1e-5 },
    { "lrn(f32[2,3]) size=9 alpha=1 beta=0.75 bias=1", -2, 2, 1e-5 },
    { "lrn(f32[0,3,2,2]) size=3 alpha=1 beta=0.75 bias=1", 0, 0, 0 },
    { 0 }
};

/* The sum over a window of channels is a convolution of N,1,C,all others with ones. */
static void define(const fac_node *n, fac_value *out[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0];
    const fac_dims d = x->type.dims;
    if (fac_dims_count(&d) <= 0) return;
    const int64_t before = (a->size - 1) / 2;
    const fac_conv2d_opts o = { .pad = { before, 0, a->size - 1 - before, 0 } };
    fac_value *squares = fac_reshape(fac_mul(x, x), fac_shape(d.d[0], 1, d.d[1], -1));
    fac_value *ones = fac_expand(fac_number_as(x, 1), fac_shape(1, 1, a->size, 1));
    fac_value *sum = fac_reshape(fac_conv2d(squares, ones, NULL, &o), d);
    fac_value *mean =
        fac_mul(sum, fac_div(fac_number_as(x, a->alpha), fac_number_as(x, (double)a->size)));
    fac_value *base = fac_add(mean, fac_number_as(x, a->bias));
    out[0] = fac_div(x, fac_pow(base, fac_number_as(x, a->beta)));
}

extern const fac_op fac_op_lrn;
const fac_op fac_op_lrn = {
    .name = "lrn",
    .doc = "local response normalization across neighbouring channels",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = fac_onnx_plain,
    .cases = cases,
    .define = define,
    .torch = "LocalResponseNorm",
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_LRN },
};
fac_value *fac_lrn(fac_value *x, int64_t size, double alpha, double beta, double bias) {
    return fac_emit(&fac_op_lrn, &(attrs){ size, alpha, beta, bias }, 1, &x);
}
