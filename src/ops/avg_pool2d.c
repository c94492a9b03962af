/* Two-dimensional average pooling, the reference of all ranks, and the ONNX spelling of all three.
 */
#include "ops/pool_grad.h"

#if FAC_INTERFACE
/* Sliding windows over N,C,H,W:  P = floor((H + top + bottom - (kernel - 1) dilation - 1) / stride)
 * + 1. */
typedef struct fac_pool2d_opts {
    int64_t stride[2];   /* 0 = kernel */
    int64_t pad[4];      /* top, left, bottom, right */
    int64_t dilation[2]; /* 0 = 1 */
    int auto_pad;        /* fac_auto_pad; pad is ignored unless it is FAC_AUTO_NONE */
    bool ceil_mode; /* ceil instead of floor, unless the last window would begin after x and its
                       first pad */
    bool count_include_pad; /* average: divide by the taps in the padding too */
} fac_pool2d_opts;

/* y[n,c,p,q] = mean over r,s of x[n, c, p stride + r dilation - pad, ...], taps outside of x left
 * out (0 if none is left). x N,C,H,W -> y N,C,P,Q.  f32 f64 f16 bf16. */
fac_value *fac_avg_pool2d(fac_value *x, int64_t kernel_height, int64_t kernel_width,
                          const fac_pool2d_opts *opts);
#endif

static double average(const fac_pool_geom *g, const double *x, int64_t o, int64_t p, int64_t q) {
    const fac_window *d = &g->window[0], *h = &g->window[1], *w = &g->window[2];
    int64_t t0, t1, r0, r1, s0, s1;
    int64_t taps = fac_window_taps(d, o, &t0, &t1) * fac_window_taps(h, p, &r0, &r1) *
                   fac_window_taps(w, q, &s0, &s1);
    if (!g->count_include_pad) taps = (t1 - t0) * (r1 - r0) * (s1 - s0);
    double sum = 0;
    for (int64_t t = t0; t < t1; t++)
        for (int64_t r = r0; r < r1; r++)
            for (int64_t s = s0; s < s1; s++) {
                int64_t z = o * d->stride + t * d->dilation - d->pad,
                        i = p * h->stride + r * h->dilation - h->pad;
                sum += x[(z * h->in + i) * w->in + q * w->stride + s * w->dilation - w->pad];
            }
    return taps ? sum / (double)taps : 0;
}

static fac_status ref(int rank, const fac_ref *r) {
    fac_pool_geom g;
    if (!fac_pool_of_ref(r, rank, &g)) return FAC_E_INTERNAL;
    int64_t size = g.window[0].in * g.window[1].in * g.window[2].in;
    double *y = r->out[0].f;
    for (int64_t nc = 0; nc < g.N * g.C; nc++)
        for (int64_t o = 0; o < g.window[0].out; o++)
            for (int64_t p = 0; p < g.window[1].out; p++)
                for (int64_t q = 0; q < g.window[2].out; q++)
                    *y++ = average(&g, r->in[0].f + nc * size, o, p, q);
    return FAC_OK;
}

fac_status fac_avg_pool2d_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(2, r);
}
fac_status fac_avg_pool3d_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(3, r);
}

static const fac_onnx onnx[] = { { "", "AveragePool", 1, 0, fac_pool_spellings, fac_pool_load, 0 },
                                 { "com.microsoft.nchwc", "AveragePool", 1, 0, fac_pool_spellings,
                                   fac_pool_load, 0 },
                                 { 0 } };
static const fac_case cases[] = {
    { "avg_pool2d(f32[1,3,8,8]) kernel=2,2", -1, 1, 1e-6 },
    { "avg_pool2d(f32[2,8,9,7]) kernel=3,3 stride=2,1 pad=1,1,1,1", -1, 1, 1e-6 },
    { "avg_pool2d(f32[2,3,11,9]) kernel=3,3 stride=2,2 pad=1,1,1,1", -1, 1, 1e-6 },
    { "avg_pool2d(f32[2,3,11,9]) kernel=3,3 stride=2,2 pad=1,1,1,1 count_include_pad", -1, 1,
      1e-6 },
    { "avg_pool2d(f32[1,5,13,10]) kernel=3,2 stride=2,3 pad=1,0,0,1 ceil_mode count_include_pad",
      -1, 1, 1e-6 },
    { "avg_pool2d(f32[1,2,12,12]) kernel=2,3 stride=1,1 dilation=3,2", -1, 1, 1e-6 },
    { "avg_pool2d(f32[1,2,9,7]) kernel=3,3 stride=2,2 auto_pad=same_lower", -1, 1, 1e-6 },
    { "avg_pool2d(f16[1,2,6,6]) kernel=7,7 stride=1,1 pad=3,3,3,3", -1, 1, 1e-3 },
    { "avg_pool2d(f32[0,2,6,6]) kernel=2,2", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_avg_pool2d;
const fac_op fac_op_avg_pool2d = {
    .name = "avg_pool2d",
    .doc = "the mean of each two-dimensional window",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .attrs = fac_pool2d_table,
    .attrs_size = sizeof(fac_pool2d_attrs),
    .infer = fac_pool_infer,
    .ref = fac_avg_pool2d_ref,
    .grad = fac_avg_pool_grad,
    .cost = fac_pool_cost,
    .onnx = onnx,
    .save = fac_pool_save,
    .cases = cases,
    .define = fac_avg_pool_define,
    .layer = FAC_CLASS_AVG_POOL,
    .torch = "AvgPool2d",
    .mixed = FAC_MIXED_FOLLOWS,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_SUM },
};
fac_value *fac_avg_pool2d(fac_value *x, int64_t kernel_height, int64_t kernel_width,
                          const fac_pool2d_opts *opts) {
    fac_pool2d_attrs a = { .kernel = { kernel_height, kernel_width } };
    if (opts) a.o = *opts;
    return fac_emit(&fac_op_avg_pool2d, &a, 1, &x);
}
