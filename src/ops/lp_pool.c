/* ONNX's LpPool and GlobalLpPool: norms of windows. */
#include <limits.h>
#include <math.h>
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/cost.h"
#include "ops/map_grad.h"
#include "ops/window.h"

#if FAC_INTERFACE
typedef struct fac_lp_pool_opts {
    fac_dims kernel, stride, dilation,
        pad;        /* of each spatial dim; pad: first ones, then last ones; none: -, 1, 1, 0 */
    double p;       /* 0: 2 */
    int auto_pad;   /* fac_auto_pad; pad is ignored unless it is FAC_AUTO_NONE */
    bool ceil_mode; /* as in fac_pool2d_opts */
} fac_lp_pool_opts;
/* y = (sum of |x|^p over each window)^(1/p):  x N,C,spatial.. -> y N,C,..;  1 to 3 spatial dims;
 * what lies outside of x counts 0. Floats. */
fac_value *fac_lp_pool(fac_value *x, const fac_lp_pool_opts *opts);
#endif

#define AT(field) offsetof(fac_lp_pool_opts, field)
static const fac_attr table[] = {
    { "kernel", FAC_A_DIMS, AT(kernel), 0, 0, 0, 0, NULL, "size of a window" },
    { "stride", FAC_A_DIMS, AT(stride), 0, 0, 0, 0, NULL, "distance of windows" },
    { "dilation", FAC_A_DIMS, AT(dilation), 0, 0, 0, 0, NULL, "distance of a window's elements" },
    { "pad", FAC_A_DIMS, AT(pad), 0, 0, 0, 0, NULL, "first ones, then last ones" },
    { "p", FAC_A_REAL, AT(p), 0, 2, 0, 0, NULL, "of the norm" },
    { "auto_pad", FAC_A_ENUM, AT(auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { "ceil_mode", FAC_A_FLAG, AT(ceil_mode), 0, 0, 0, 0, NULL, "windows may reach over the end" },
    { 0 }
};
#undef AT

static bool good(const fac_dims *d, int n, int64_t least) {
    if (d->n && d->n != n) return false;
    for (int k = 0; k < d->n; k++)
        if (d->d[k] < least || d->d[k] > INT_MAX) return false;
    return true;
}

static fac_window window_of(const fac_lp_pool_opts *o, const fac_dims *x, int k) {
    const int spatial = x->n - 2;
    return (fac_window){ x->d[2 + k],
                         o->kernel.d[k],
                         o->stride.n ? o->stride.d[k] : 1,
                         o->dilation.n ? o->dilation.d[k] : 1,
                         o->pad.n ? o->pad.d[k] : 0,
                         o->pad.n ? o->pad.d[spatial + k] : 0,
                         0 };
}

static bool infer(fac_node *n) {
    static const char *const names[] = { "depth", "height", "width" };
    const fac_lp_pool_opts *o = n->attrs;
    fac_type y = n->in[0]->type;
    const int spatial = y.dims.n - 2;
    if (spatial < 1 || spatial > 3)
        return fac_fail(n, FAC_E_SHAPE, "x has %d dims, not 3 to 5", y.dims.n);
    if (o->kernel.n != spatial || !good(&o->kernel, spatial, 1) || !good(&o->stride, spatial, 1) ||
        !good(&o->dilation, spatial, 1) || !good(&o->pad, 2 * spatial, 0))
        return fac_fail(n, FAC_E_ARGUMENT,
                        "kernel, stride, dilation and pad do not fit %d spatial dims", spatial);
    if (!(o->p > 0)) return fac_fail(n, FAC_E_ARGUMENT, "p is %g", o->p);
    for (int k = 0; k < spatial; k++) {
        fac_window w = window_of(o, &n->in[0]->type.dims, k);
        if (!fac_window_infer(n, names[3 - spatial + k], &w, o->auto_pad, o->ceil_mode))
            return false;
        y.dims.d[2 + k] = w.out;
    }
    n->out[0]->type = y;
    return true;
}

/* |x|^p and its inverse. */
static fac_value *power(fac_value *x, double p) {
    if (p == 1) return fac_abs(x);
    if (p == 2) return fac_mul(x, x);
    return fac_pow(fac_abs(x), fac_grad_number(x, p));
}
static fac_value *root(fac_value *x, double p) {
    if (p == 1) return x;
    return p == 2 ? fac_sqrt(x) : fac_pow(x, fac_grad_number(x, 1 / p));
}

/* Sums of windows: a convolution of each plane with ones. */
static fac_value *sums(fac_value *x, const fac_window *v, int spatial) {
    fac_dims ones = { .n = 2 + spatial, .d = { 1, 1 } };
    for (int k = 0; k < spatial; k++) ones.d[2 + k] = v[k].kernel;
    fac_value *w = fac_full(fac_ints(x->graph, ones), x->type.dtype, 1);
    if (spatial == 1)
        return fac_conv1d(
            x, w, NULL, &(fac_conv1d_opts){ v->stride, { v->pad, v->pad_end }, v->dilation, 0, 0 });
    if (spatial == 2)
        return fac_conv2d(x, w, NULL,
                          &(fac_conv2d_opts){ { v[0].stride, v[1].stride },
                                              { v[0].pad, v[1].pad, v[0].pad_end, v[1].pad_end },
                                              { v[0].dilation, v[1].dilation },
                                              0,
                                              0 });
    return fac_conv3d(x, w, NULL,
                      &(fac_conv3d_opts){ { v[0].stride, v[1].stride, v[2].stride },
                                          { v[0].pad, v[1].pad, v[2].pad, v[0].pad_end,
                                            v[1].pad_end, v[2].pad_end },
                                          { v[0].dilation, v[1].dilation, v[2].dilation },
                                          0,
                                          0 });
}

static int64_t expands(const fac_node *n) {
    return fac_dims_known(&n->in[0]->type.dims, 0) ? 12 : 0;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_lp_pool_opts *o = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims;
    const fac_dtype dtype = n->in[0]->type.dtype;
    fac_window w[3];
    if (!fac_dims_count(&n->out[0]->type.dims)) {
        out[0] = fac_full(fac_ints(n->graph, n->out[0]->type.dims), dtype, 0);
        return;
    }
    fac_dims planes = *x;
    planes.d[0] = x->d[0] * x->d[1];
    planes.d[1] = 1;
    for (int k = 0; k < x->n - 2; k++) {
        w[k] = window_of(o, x, k);
        const char *wrong = fac_window_settle(&w[k], o->auto_pad, o->ceil_mode);
        if (wrong) {
            out[0] = fac_fail_graph(n->graph, FAC_E_SHAPE, "lp_pool: %s", wrong);
            return;
        }
        /* A last window may reach over the end. */
        const int64_t reach = (w[k].out - 1) * w[k].stride + (w[k].kernel - 1) * w[k].dilation + 1;
        const int64_t over = reach - w[k].in - w[k].pad - w[k].pad_end;
        if (over > 0) w[k].pad_end += over;
    }
    fac_value *v = power(fac_grad_as(fac_shaped(n->in[0], planes), fac_grad_wide(dtype)), o->p);
    out[0] = fac_grad_as(fac_shaped(root(sums(v, w, x->n - 2), o->p), n->out[0]->type.dims), dtype);
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_dims *kernel = &((const fac_lp_pool_opts *)n->attrs)->kernel;
    fac_cost_bytes(n, c);
    c->macs = 0;
    c->other =
        fac_cost_count(n->in[0]) + fac_cost_count(n->out[0]) * (double)fac_dims_count(kernel);
}

/* ---- ONNX ---- */

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const int spatial = x[0]->type.dims.n - 2;
    fac_window_onnx v;
    fac_lp_pool_opts o = { .p = n->opset < 2 ? fac_onnx_real(n, "p", 2)
                                             : (double)fac_onnx_int(n, "p", 2),
                           .ceil_mode = fac_onnx_int(n, "ceil_mode", 0) != 0 };
    if (spatial < 1 || spatial > 3) {
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "LpPool of %d dims, expected 3, 4 or 5",
                              spatial + 2);
        return;
    }
    if ((y[0] = fac_window_load(n, g, spatial, &v))) return;
    o.auto_pad = v.auto_pad;
    o.kernel.n = o.stride.n = o.dilation.n = spatial;
    o.pad.n = 2 * spatial;
    for (int k = 0; k < spatial; k++) {
        o.kernel.d[k] = v.kernel[k];
        o.stride.d[k] = v.stride[k];
        o.dilation.d[k] = v.dilation[k];
    }
    for (int k = 0; k < 2 * spatial; k++) o.pad.d[k] = v.pad[k];
    y[0] = fac_lp_pool(x[0], &o);
}
static const fac_onnx_attr names[] = {
    { "kernel_shape", NULL }, { "strides", NULL },   { "pads", NULL }, { "auto_pad", NULL },
    { "dilations", NULL },    { "ceil_mode", NULL }, { "p", NULL },    { 0 }
};
static const fac_onnx onnx[] = { { "", "LpPool", 1, 0, names, load, 0 }, { 0 } };

static void put(const fac_onnx_writer *w, const char *name, const fac_dims *d) {
    if (d->n) fac_onnx_put_ints(w, name, d->n, d->d);
}

/* Dilation and ceil_mode came with opset 18. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    static const char *const pads[] = { "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID" };
    const fac_lp_pool_opts *o = n->attrs;
    bool plain = !o->ceil_mode;
    for (int k = 0; k < o->dilation.n; k++) plain = plain && o->dilation.d[k] == 1;
    if (w->opset < 2 || o->p != floor(o->p) || (!plain && w->opset < 18)) return false;
    const char *x = fac_onnx_name(w, n->in[0]);
    fac_onnx_put(w, "LpPool", 1, &x, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "p", (int64_t)o->p);
    put(w, "kernel_shape", &o->kernel);
    put(w, "strides", &o->stride);
    if (o->auto_pad)
        fac_onnx_put_text(w, "auto_pad", pads[o->auto_pad]);
    else
        put(w, "pads", &o->pad);
    if (plain) return true;
    put(w, "dilations", &o->dilation);
    fac_onnx_put_int(w, "ceil_mode", o->ceil_mode);
    return true;
}

static const fac_case cases[] = {
    { "lp_pool(f32[1,3,8,7]) kernel=2,3 stride=2,1", 0.5, 2, 1e-5 },
    { "lp_pool(f32[2,2,9]) kernel=3 stride=2 pad=1,1 p=1", 0.5, 2, 1e-5 },
    { "lp_pool(f32[1,2,6,7]) kernel=3,2 stride=2,2 dilation=2,1 pad=1,0,1,1 p=3 ceil_mode", 0.5, 2,
      1e-5 },
    { "lp_pool(f32[1,2,3,4,5]) kernel=2,2,2 auto_pad=same_upper", 0.5, 2, 1e-5 },
    { "lp_pool(f16[1,2,6,6]) kernel=2,2", 0.5, 2, 4e-3 },
    { "lp_pool(f32[0,2,6,6]) kernel=2,2", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_lp_pool = {
    .name = "lp_pool",
    .doc = "norms of windows",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_lp_pool_opts),
    .infer = infer,
    .expand = expand,
    .expands = expands,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_lp_pool(fac_value *x, const fac_lp_pool_opts *opts) {
    return fac_emit(&fac_op_lp_pool, opts, 1, &x);
}
