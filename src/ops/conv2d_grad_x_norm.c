/* The gradient of a convolution by its input, which a batch norm of training made of norm_x: with
 * the two sums over each channel that the norm's gradient begins with, since kernels that have the
 * result in registers need not read it again.  Made by src/passes/norm/norm_sums.c.  Has no
 * prototype.
 *
 *     dx = conv2d_grad_x(dy, w, x) + add  where lo < y < hi,  0 elsewhere
 *     dbias = sum dx,   dscale = sum dx (norm_x - mean) / sqrt(var + epsilon)
 *
 * Without an operand y it is what the norm makes: (norm_x - mean) / sqrt(var + epsilon) scale +
 * bias.  With an operand mask its bits (ops/bits.h) say where dx is not 0, and lo, hi and y
 * nothing.  With `apart` > 1 add has only each apart-th row and column of the result, as the
 * gradient of a strided convolution of 1 x 1 does: others are 0. */
#include <limits.h>
#include <math.h>
#include "op_list.h"
#include "base/error.h"
#include "ops/bits.h"
#include "ops/conv_grad.h"
#include "ops/map_grad.h"
#include "ops/batch_norm_ref.h"

/* The convolution's own first: what reads those of conv2d reads them here. */
typedef struct attrs {
    fac_conv2d_opts conv;
    double epsilon, lo, hi;
    int64_t apart;
} attrs;
#define AT(field) offsetof(attrs, conv.field)
static const fac_attr table[] = {
    { "stride", FAC_A_INT, AT(stride), 2, 1, 1, INT_MAX, NULL, "height, width" },
    { "pad", FAC_A_INT, AT(pad), 4, 0, 0, INT_MAX, NULL, "top, left, bottom, right" },
    { "dilation", FAC_A_INT, AT(dilation), 2, 1, 1, INT_MAX, NULL, "distance of kernel elements" },
    { "groups", FAC_A_INT, AT(groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0, NULL, "added to the variance" },
    { "lo", FAC_A_REAL, offsetof(attrs, lo), 0, 0, 0, 0, NULL,
      "nothing passes where y is not above it" },
    { "hi", FAC_A_REAL, offsetof(attrs, hi), 0, 0, 0, 0, NULL,
      "nothing passes where y is not below it" },
    { "apart", FAC_A_INT, offsetof(attrs, apart), 0, 1, 1, INT_MAX, NULL,
      "rows, columns from one of add to the next" },
    { 0 }
};
#undef AT
enum { PORTS = 11, IMAGES = 10, MASK = 10 }; /* the first IMAGES are floats */
static const fac_port in[] = { { "dy", FAC_FLOATS, 0 },
                               { "w", FAC_FLOATS, 0 },
                               { "x", FAC_FLOATS, FAC_SHAPE_ONLY },
                               { "norm_x", FAC_FLOATS, 0 },
                               { "mean", FAC_FLOATS, 0 },
                               { "var", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, 0 },
                               { "bias", FAC_FLOATS, 0 },
                               { "add", FAC_FLOATS, FAC_OPTIONAL },
                               { "y", FAC_FLOATS, FAC_OPTIONAL },
                               { "mask", FAC_INTS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "dx", FAC_FLOATS, 0 },
                                { "dscale", FAC_FLOATS, FAC_OPTIONAL },
                                { "dbias", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

/* Of add, whose pixels are `apart` from one another in the result. */
static fac_dims dims_of(const fac_dims *dx, int64_t apart) {
    fac_dims d = *dx;
    for (int k = 2; k < d.n; k++)
        if (d.d[k] >= 0) d.d[k] = (d.d[k] + apart - 1) / apart;
    return d;
}

static bool infer(fac_node *n) {
    enum { ADD = 8 };
    const attrs *a = n->attrs;
    fac_node conv = *n;
    conv.op = &fac_op_conv2d_grad_x;
    conv.nin = 3;
    if (!fac_conv_grad_infer(&conv)) return false;
    const fac_type *dx = &n->out[0]->type;
    for (int i = 3; i < IMAGES; i++) {
        const bool of_channels = i > 3 && i < 8;
        const fac_type *t = n->in[i] ? &n->in[i]->type : NULL;
        const fac_dims dims = dims_of(&dx->dims, i == ADD ? a->apart : 1);
        if (t && !of_channels && (t->dtype != dx->dtype || !fac_dims_equal(&t->dims, &dims)))
            return fac_fail(n, FAC_E_SHAPE, "%s differs from the gradient", in[i].name);
        if (of_channels && (t->dims.n != 1 || (t->dims.d[0] != dx->dims.d[1] && t->dims.d[0] >= 0 &&
                                               dx->dims.d[1] >= 0)))
            return fac_fail(n, FAC_E_SHAPE, "%s must have one number for each of the %lld channels",
                            in[i].name, (long long)dx->dims.d[1]);
    }
    const fac_dims bytes = fac_bits_dims(&dx->dims);
    if (n->in[MASK] &&
        (n->in[MASK]->type.dtype != FAC_U8 || !fac_dims_equal(&n->in[MASK]->type.dims, &bytes)))
        return fac_fail(n, FAC_E_SHAPE, "mask must be u8 with a byte for %d channels", FAC_BITS);
    if (n->in[MASK] && n->in[MASK - 1])
        return fac_fail(n, FAC_E_SHAPE, "y and mask are both there");
    n->out[1]->type = n->out[2]->type = n->in[6]->type;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    FAC_TRY(fac_conv2d_grad_x_ref(r, err));
    const attrs *a = r->attrs;
    const fac_dims *d = &r->out[0].type.dims;
    const int64_t plane = d->d[2] * d->d[3], s = a->apart, wide = (d->d[3] + s - 1) / s,
                  own = (d->d[2] + s - 1) / s * wide;
    const double *x = r->in[3].f, *add = r->in[8].f, *y = r->in[9].f;
    const int64_t *mask = r->in[MASK].i;
    for (int64_t c = 0; c < d->d[1]; c++) {
        const double mean = r->in[4].f[c], inverse = 1 / sqrt(r->in[5].f[c] + a->epsilon);
        double sum = 0, along = 0;
        for (int64_t i = 0; i < d->d[0] * plane; i++) {
            const int64_t at = (i / plane * d->d[1] + c) * plane + i % plane;
            const double hat = (x[at] - mean) * inverse,
                         made = y ? y[at] : hat * r->in[6].f[c] + r->in[7].f[c];
            const int64_t h = i % plane / d->d[3], w = i % plane % d->d[3];
            double dx = r->out[0].f[at];
            if (add && h % s == 0 && w % s == 0)
                dx += add[(i / plane * d->d[1] + c) * own + h / s * wide + w / s];
            int bit;
            const int64_t byte = mask ? mask[fac_bits_at(d, plane, at, &bit)] : 0;
            if (mask ? !(byte >> bit & 1) : fac_norm_stops(made, a->lo, a->hi)) dx = 0;
            r->out[0].f[at] = dx;
            sum += dx;
            along += dx * hat;
        }
        if (r->out[1].f) r->out[1].f[c] = along;
        if (r->out[2].f) r->out[2].f[c] = sum;
    }
    return FAC_OK;
}

extern const fac_op fac_op_slice_grad;

/* add with zeros between its pixels, as the gradient of x has them. */
static fac_value *apart(const fac_node *n, fac_value *add, fac_value *x) {
    enum { HEIGHT = 2 };
    const int64_t step = ((const attrs *)n->attrs)->apart;
    if (step == 1) return add;
    fac_graph *g = n->graph;
    fac_value *of[] = { x,
                        fac_ints(g, fac_shape(0, 0)),
                        fac_ints(g, fac_shape(INT64_MAX, INT64_MAX)),
                        fac_ints(g, fac_shape(HEIGHT, HEIGHT + 1)),
                        fac_ints(g, fac_shape(step, step)),
                        add };
    return fac_emit(&fac_op_slice_grad, NULL, 6, of);
}

/* The formula above, sums and the norm in no less than f32. */
static void expand(const fac_node *n, fac_value *to[]) {
    enum { DY, W, X, NORM_X, MEAN, VAR, SCALE, BIAS, ADD, Y };
    const fac_dims over = { 3, { 0, 2, 3 } };
    const attrs *a = n->attrs;
    const fac_dtype wide = fac_grad_wide(n->in[DY]->type.dtype), sums = n->in[SCALE]->type.dtype;
    fac_value *x = fac_grad_as(n->in[NORM_X], wide), *of[BIAS + 1];
    for (int k = MEAN; k <= BIAS; k++) of[k] = fac_grad_of_channels(n->in[k], x);
    fac_value *inverse = fac_reciprocal(fac_sqrt(fac_grad_shifted(of[VAR], a->epsilon)));
    fac_value *hat = fac_mul(fac_sub(x, of[MEAN]), inverse);
    fac_value *made =
        n->in[Y] ? fac_grad_as(n->in[Y], wide) : fac_add(fac_mul(hat, of[SCALE]), of[BIAS]);
    fac_value *dx = fac_conv2d_grad_x(n->in[DY], n->in[W], n->in[X], &a->conv);
    if (n->in[ADD]) dx = fac_add(dx, apart(n, n->in[ADD], n->in[X]));
    if (n->in[MASK])
        dx = fac_grad_where(fac_bits_apart(n->in[MASK], x->type.dims.d[1]), dx);
    else {
        if (a->hi < INFINITY) dx = fac_grad_short_of(made, a->hi, dx);
        if (a->lo > -INFINITY) dx = fac_grad_past(made, a->lo, dx);
    }
    to[0] = dx;
    dx = fac_grad_as(to[0], wide);
    to[1] = fac_grad_as(fac_sum(fac_mul(dx, hat), over, false), sums);
    to[2] = fac_grad_as(fac_sum(dx, over, false), sums);
}

static void cost(const fac_node *n, fac_cost *to) {
    fac_node conv = *n;
    conv.op = &fac_op_conv2d_grad_x;
    fac_conv_grad_cost(&conv, to);
}

static const fac_case cases[] = {
    { "conv2d_grad_x_norm(f32[2,5,5,8], f32[5,3,3,2], f32[2,3,9,8], f32[2,3,9,8], f32[3], f32[3], "
      "f32[3], f32[3]) stride=2,1 "
      "pad=1,0,2,1 epsilon=0.1 hi=2",
      0.1, 1, 1e-5 },
    { "conv2d_grad_x_norm(f32[2,24,6,7], f32[24,16,1,1], f32[2,16,6,7], f32[2,16,6,7], f32[16], "
      "f32[16], f32[16], f32[16], "
      "f32[2,16,6,7], f32[2,16,6,7]) epsilon=0.1 lo=0.3 hi=9",
      0.1, 1, 1e-5 },
    { "conv2d_grad_x_norm(f32[2,24,6,7], f32[24,16,1,1], f32[2,16,6,7], f32[2,16,6,7], f32[16], "
      "f32[16], f32[16], f32[16], "
      "f32[2,16,2,3], f32[2,16,6,7]) epsilon=0.1 lo=0.3 hi=9 apart=3",
      0.1, 1, 1e-5 },
    { "conv2d_grad_x_norm(f32[2,4,6,7], f32[4,10,1,1], f32[2,10,6,7], f32[2,10,6,7], f32[10], "
      "f32[10], f32[10], f32[10], "
      "f32[2,10,6,7], -, u8[2,3,6,7]) epsilon=0.1",
      0.1, 15, 1e-5 },
    { 0 }
};

extern const fac_op fac_op_conv2d_grad_x_norm;
const fac_op fac_op_conv2d_grad_x_norm = {
    .name = "conv2d_grad_x_norm",
    .doc = "the gradient of a convolution by its input with the sums that the norm before it needs",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
