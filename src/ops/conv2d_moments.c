/* A convolution with the mean and the variance of each channel of its result, for the batch norm
 * after it: kernels that have the result in registers need not read it again.  Made by
 * src/passes/norm/norm_moments.c.  Has no prototype. */
#include "op_list.h"
#include "base/error.h"
#include "ops/conv.h"
#include "ops/grad.h"

static const fac_port out[] = { { "y", FAC_FLOATS, 0 },
                                { "mean", FAC_FLOATS, FAC_OPTIONAL },
                                { "var", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    fac_node conv = *n;
    conv.op = &fac_op_conv2d;
    if (!fac_conv_infer(&conv)) return false;
    const fac_type *y = &n->out[0]->type;
    n->out[1]->type = n->out[2]->type =
        (fac_type){ y->dtype == FAC_F64 ? FAC_F64 : FAC_F32, fac_shape(y->dims.d[1]) };
    return true;
}

/* var: over all elements of a channel, not over one less. */
static fac_status ref(const fac_ref *r, fac_error *err) {
    FAC_TRY(fac_conv2d_ref(r, err));
    const fac_dims *d = &r->out[0].type.dims;
    const int64_t plane = d->d[2] * d->d[3];
    for (int64_t c = 0; c < d->d[1]; c++) {
        const double count = (double)(d->d[0] * plane);
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < d->d[0] * plane; i++)
            sum += r->out[0].f[(i / plane * d->d[1] + c) * plane + i % plane];
        for (int64_t i = 0; i < d->d[0] * plane; i++) {
            const double e =
                r->out[0].f[(i / plane * d->d[1] + c) * plane + i % plane] - sum / count;
            squares += e * e;
        }
        if (r->out[1].f) r->out[1].f[c] = sum / count;
        if (r->out[2].f) r->out[2].f[c] = squares / count;
    }
    return FAC_OK;
}

/* The statistics in no less than f32. */
static void expand(const fac_node *n, fac_value *to[]) {
    const fac_dims over = { 3, { 0, 2, 3 } };
    to[0] = fac_conv2d(n->in[0], n->in[1], n->in[2], n->attrs);
    fac_value *wide = fac_grad_as(to[0], n->out[1]->type.dtype), *mean = fac_mean(wide, over, true),
              *e = fac_sub(wide, mean);
    to[1] = fac_squeeze(mean, over);
    to[2] = fac_mean(fac_mul(e, e), over, false);
}

static const fac_case cases[] = {
    { "conv2d_moments(f32[2,3,9,8], f32[5,3,3,2], f32[5]) stride=2,1 pad=1,0,2,1", -1, 1, 1e-5 },
    { "conv2d_moments(f32[3,16,14,14], f32[24,16,1,1])", -1, 1, 1e-5 },
    { "conv2d_moments(f32[2,8,5,7], f32[4,4,3,3]) pad=1,1,1,1 groups=2", -1, 1, 1e-5 },
    { "conv2d_moments(f16[1,3,6,6], f16[4,3,3,3], f16[4])", -1, 1, 4e-3 },
    { 0 }
};

extern const fac_op fac_op_conv2d_moments;
const fac_op fac_op_conv2d_moments = {
    .name = "conv2d_moments",
    .doc = "a convolution with the mean and variance of each channel",
    .in = fac_conv_in,
    .out = out,
    .attrs = fac_conv2d_table,
    .attrs_size = sizeof(fac_conv2d_opts),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = fac_conv_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
