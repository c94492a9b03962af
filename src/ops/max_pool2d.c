/* Two-dimensional max pooling, the reference of all ranks, and the ONNX spelling of all three. */
#include "ops/order.h"
#include "ops/pool_grad.h"

#if FAC_INTERFACE
/* y[n,c,p,q] = max over r,s of x[n, c, p stride + r dilation - pad, ...], taps outside of x left
 * out; NaN wins. x N,C,H,W -> y N,C,P,Q, sizes as in fac_pool2d_opts; floats and integers.
 * fac_value_other(y, 1): where each maximum was, i64, counted through the whole of x.  A window
 * without any tap gives the lowest value and index -1. */
fac_value *fac_max_pool2d(fac_value *x, int64_t kernel_height, int64_t kernel_width,
                          const fac_pool2d_opts *opts);
#endif

const fac_port fac_max_pool_in[] = { { "x", FAC_NUMBERS, 0 }, { 0 } };
const fac_port fac_max_pool_out[] = { { "y", FAC_NUMBERS, 0 },
                                      { "indices", FAC_INTS, FAC_OPTIONAL },
                                      { 0 } };

int64_t fac_pool_largest(const fac_pool_geom *g, const fac_array *x, int64_t plane, int64_t o,
                         int64_t p, int64_t q) {
    const fac_window *d = &g->window[0], *h = &g->window[1], *w = &g->window[2];
    int64_t t0, t1, r0, r1, s0, s1, best = -1;
    fac_window_taps(d, o, &t0, &t1);
    fac_window_taps(h, p, &r0, &r1);
    fac_window_taps(w, q, &s0, &s1);
    for (int64_t t = t0; t < t1; t++)
        for (int64_t r = r0; r < r1; r++)
            for (int64_t s = s0; s < s1; s++) {
                int64_t z = o * d->stride + t * d->dilation - d->pad,
                        i = p * h->stride + r * h->dilation - h->pad;
                int64_t at = (z * h->in + i) * w->in + q * w->stride + s * w->dilation - w->pad;
                if (best < 0 || fac_above(x, plane + at, plane + best)) best = at;
            }
    return best;
}

static int64_t column_major(const fac_pool_geom *g, int64_t at) {
    int64_t D = g->window[0].in, H = g->window[1].in, W = g->window[2].in;
    return at / (H * W) + D * (at / W % H + H * (at % W));
}

/* The index of element `at`, in the order that was asked for. */
static int64_t place_of(const fac_pool_geom *g, int64_t at) {
    return g->column_major ? column_major(g, at) : at;
}

static fac_status ref(int rank, const fac_ref *r) {
    fac_pool_geom g;
    if (!fac_pool_of_ref(r, rank, &g)) return FAC_E_INTERNAL;
    const fac_array *x = &r->in[0], *y = &r->out[0];
    int64_t *index = r->out[1].i, size = g.window[0].in * g.window[1].in * g.window[2].in, to = 0;
    for (int64_t nc = 0; nc < g.N * g.C; nc++)
        for (int64_t o = 0; o < g.window[0].out; o++)
            for (int64_t p = 0; p < g.window[1].out; p++)
                for (int64_t q = 0; q < g.window[2].out; q++, to++) {
                    int64_t at = fac_pool_largest(&g, x, nc * size, o, p, q);
                    if (y->f)
                        y->f[to] = at < 0 ? -INFINITY : x->f[nc * size + at];
                    else if (y->i)
                        y->i[to] = at < 0 ? fac_int_lowest(x->type.dtype) : x->i[nc * size + at];
                    if (index) index[to] = at < 0 ? -1 : nc * size + place_of(&g, at);
                }
    return FAC_OK;
}

fac_status fac_max_pool2d_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(2, r);
}
fac_status fac_max_pool3d_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(3, r);
}

static const fac_onnx onnx[] = { { "", "MaxPool", 1, 0, fac_pool_spellings, fac_pool_load, 0 },
                                 { "com.microsoft.nchwc", "MaxPool", 1, 0, fac_pool_spellings,
                                   fac_pool_load, 0 },
                                 { 0 } };
static const fac_case cases[] = {
    { "max_pool2d(f32[1,3,8,8]) kernel=2,2", -1, 1, 0 },
    { "max_pool2d(f32[2,3,11,9]) kernel=3,3 stride=2,2 pad=1,1,1,1", -1, 1, 0 },
    { "max_pool2d(f32[1,5,13,10]) kernel=3,2 stride=2,3 pad=1,0,0,1 ceil_mode", -1, 1, 0 },
    { "max_pool2d(f32[1,2,12,12]) kernel=2,3 stride=1,1 dilation=3,2", -1, 1, 0 },
    { "max_pool2d(f32[1,2,9,7]) kernel=3,3 stride=2,2 auto_pad=same_upper", -1, 1, 0 },
    { "max_pool2d(f32[1,2,9,7]) kernel=2,4 stride=2,1 auto_pad=same_lower column_major", -1, 1, 0 },
    { "max_pool2d(u8[1,2,6,6]) kernel=2,2 stride=1,1", 0, 255, 0 },
    { "max_pool2d(i8[1,2,6,6]) kernel=3,3 stride=3,3 pad=1,1,1,1", -128, 127, 0 },
    { "max_pool2d(f32[0,2,6,6]) kernel=2,2", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_max_pool2d;
const fac_op fac_op_max_pool2d = {
    .name = "max_pool2d",
    .doc = "the largest element of each two-dimensional window",
    .in = fac_max_pool_in,
    .out = fac_max_pool_out,
    .attrs = fac_pool2d_table,
    .attrs_size = sizeof(fac_pool2d_attrs),
    .infer = fac_pool_infer,
    .ref = fac_max_pool2d_ref,
    .grad = fac_max_pool_grad,
    .cost = fac_pool_cost,
    .onnx = onnx,
    .save = fac_pool_save,
    .cases = cases,
    .is = FAC_OP_PICKS,
    .layer = FAC_CLASS_MAX_POOL,
    .torch = "MaxPool2d",
    .mixed = FAC_MIXED_FOLLOWS,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_LARGEST },
};
fac_value *fac_max_pool2d(fac_value *x, int64_t kernel_height, int64_t kernel_width,
                          const fac_pool2d_opts *opts) {
    fac_pool2d_attrs a = { .kernel = { kernel_height, kernel_width } };
    if (opts) a.o = *opts;
    return fac_emit(&fac_op_max_pool2d, &a, 1, &x);
}
