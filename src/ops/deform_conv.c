/* ONNX's DeformConv: a convolution whose taps are moved by data (Zhu et al. 2019). */
#include <limits.h>
#include "ops/constant.h"
#include "ops/conv.h"
#include "ops/cost.h"
#include "ops/map_grad.h"
#include "ops/onnx_in.h"
#include "ops/sampling.h"
#include "base/memory.h"
#include "ops/shape.h"

#if FAC_INTERFACE
typedef struct fac_deform_conv_opts {
    int64_t stride[2];     /* 0 = 1 */
    int64_t pad[4];        /* top, left, bottom, right */
    int64_t dilation[2];   /* 0 = 1 */
    int64_t groups;        /* 0 = 1 */
    int64_t offset_groups; /* channels of x that are moved alike; 0 = 1 */
} fac_deform_conv_opts;
/* As fac_conv2d, but tap (r, s) of output (p, q) is read at its place plus offsets[n, g, r, s, 0 |
 * 1, p, q] (rows, columns), linearly between pixels, zeros outside, times mask[n, g, r, s, p, q].
 *   x N,C,H,W   w K,C/groups,R,S   offsets N,G R S 2,P,Q   b K or NULL   mask N,G R S,P,Q or NULL
 * y N,K,P,Q.   Floats. */
fac_value *fac_deform_conv(fac_value *x, fac_value *w, fac_value *offsets, fac_value *b,
                           fac_value *mask, const fac_deform_conv_opts *opts);
#endif

#define AT(field) offsetof(fac_deform_conv_opts, field)
static const fac_attr table[] = {
    { "stride", FAC_A_INT, AT(stride), 2, 1, 1, INT_MAX, NULL, "height, width" },
    { "pad", FAC_A_INT, AT(pad), 4, 0, 0, INT_MAX, NULL, "top, left, bottom, right" },
    { "dilation", FAC_A_INT, AT(dilation), 2, 1, 1, INT_MAX, NULL, "distance of kernel elements" },
    { "groups", FAC_A_INT, AT(groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "offset_groups", FAC_A_INT, AT(offset_groups), 0, 1, 1, INT_MAX, NULL,
      "channels moved apart" },
    { 0 }
};
#undef AT
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "w", FAC_FLOATS, 0 },
                               { "offsets", FAC_FLOATS, 0 },
                               { "b", FAC_FLOATS, FAC_OPTIONAL },
                               { "mask", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
enum { X, W, OFFSETS, B, MASK };

static fac_window window_of(const fac_deform_conv_opts *o, const fac_dims *x, const fac_dims *w,
                            int k) {
    return (fac_window){
        x->d[2 + k], w->d[2 + k], o->stride[k], o->dilation[k], o->pad[k], o->pad[2 + k], 0
    };
}

static bool has(fac_node *n, int port, const fac_dims *want) {
    const fac_dims *have = n->in[port] ? &n->in[port]->type.dims : want;
    bool same = have->n == want->n;
    for (int k = 0; same && k < want->n; k++)
        same = have->d[k] < 0 || want->d[k] < 0 || have->d[k] == want->d[k];
    if (same) return true;
    return fac_fail(n, FAC_E_SHAPE, "%s does not fit x, w and the options", in[port].name);
}

static bool infer(fac_node *n) {
    static const char *const names[] = { "height", "width" };
    const fac_deform_conv_opts *o = n->attrs;
    const fac_dims *x = &n->in[X]->type.dims, *w = &n->in[W]->type.dims;
    if (x->n != 4 || w->n != 4) return fac_fail(n, FAC_E_SHAPE, "x and w must have 4 dims");
    for (int k = W; k <= MASK; k++)
        if (n->in[k] && n->in[k]->type.dtype != n->in[X]->type.dtype)
            return fac_fail(n, FAC_E_DTYPE, "all operands must have one dtype");
    fac_graph *g = n->graph;
    const int64_t C = x->d[1], K = w->d[0];
    const int64_t taps =
        fac_size_product(g, fac_size_product(g, w->d[2], w->d[3]), o->offset_groups);
    if (fac_differ(fac_size_product(g, w->d[1], o->groups), C) || (K >= 0 && K % o->groups) ||
        (C >= 0 && C % o->offset_groups))
        return fac_fail(
            n, FAC_E_SHAPE,
            "%lld channels, %lld kernels of %lld: not in %lld groups and %lld offset groups",
            (long long)C, (long long)K, (long long)w->d[1], (long long)o->groups,
            (long long)o->offset_groups);
    fac_type y = { n->in[X]->type.dtype, fac_shape(x->d[0], K, 0, 0) };
    for (int k = 0; k < 2; k++) {
        fac_window v = window_of(o, x, w, k);
        y.dims.d[2 + k] = fac_symbol(g, NULL);
        if (v.kernel < 0) continue;
        if (!fac_window_infer(n, names[k], &v, FAC_AUTO_NONE, false)) return false;
        y.dims.d[2 + k] = v.out;
    }
    const fac_dims offsets =
                       fac_shape(x->d[0], fac_size_product(g, taps, 2), y.dims.d[2], y.dims.d[3]),
                   bias = fac_shape(K);
    const fac_dims mask = fac_shape(x->d[0], taps, y.dims.d[2], y.dims.d[3]);
    if (!has(n, OFFSETS, &offsets) || !has(n, B, &bias) || !has(n, MASK, &mask)) return false;
    n->out[0]->type = y;
    return true;
}

/* ---- meaning ---- */

static double read_at(const double *x, const fac_dims *d, double row, double column) {
    const fac_tap_list h = fac_tap_list_linear(row, d->d[2]),
                       w = fac_tap_list_linear(column, d->d[3]);
    double sum = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const double weight = h.weight[i] * w.weight[j];
            if (weight != 0) sum += weight * x[h.at[i] * d->d[3] + w.at[j]];
        }
    return sum;
}

/* What tap t of channel c sees for one output. */
static double tap_of(const fac_ref *r, int64_t n, int64_t c, int64_t t, int64_t p, int64_t q) {
    const fac_deform_conv_opts *o = r->attrs;
    const fac_dims *x = &r->in[X].type.dims, *w = &r->in[W].type.dims, *y = &r->out[0].type.dims;
    const int64_t R = w->d[2], S = w->d[3], plane = y->d[2] * y->d[3],
                  taps = o->offset_groups * R * S;
    const int64_t which = c / (x->d[1] / o->offset_groups) * R * S + t, at = p * y->d[3] + q;
    const double *offset = r->in[OFFSETS].f + (n * 2 * taps + 2 * which) * plane + at;
    const double row = (double)(p * o->stride[0] + t / S * o->dilation[0] - o->pad[0]) + offset[0];
    const double column =
        (double)(q * o->stride[1] + t % S * o->dilation[1] - o->pad[1]) + offset[plane];
    const double v = read_at(r->in[X].f + (n * x->d[1] + c) * x->d[2] * x->d[3], x, row, column);
    return r->in[MASK].f ? v * r->in[MASK].f[(n * taps + which) * plane + at] : v;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_deform_conv_opts *o = r->attrs;
    const fac_dims *w = &r->in[W].type.dims, *y = &r->out[0].type.dims;
    const int64_t K = w->d[0], taps = w->d[2] * w->d[3], in_group = w->d[1];
    double *to = r->out[0].f;
    for (int64_t n = 0; n < y->d[0]; n++)
        for (int64_t k = 0; k < K; k++)
            for (int64_t p = 0; p < y->d[2]; p++)
                for (int64_t q = 0; q < y->d[3]; q++) {
                    double sum = r->in[B].f ? r->in[B].f[k] : 0;
                    for (int64_t c = 0; c < in_group; c++)
                        for (int64_t t = 0; t < taps; t++)
                            sum += r->in[W].f[(k * in_group + c) * taps + t] *
                                   tap_of(r, n, k / (K / o->groups) * in_group + c, t, p, q);
                    *to++ = sum;
                }
    return FAC_OK;
}

/* ---- as ops: columns of moved taps, and a product ---- */

/* Where taps lie without offsets: [1, R S, P Q] of one axis. */
static fac_value *origin(const fac_node *n, int axis, fac_dtype dtype) {
    const fac_deform_conv_opts *o = n->attrs;
    const fac_dims *w = &n->in[W]->type.dims, *y = &n->out[0]->type.dims;
    const int64_t taps = w->d[2] * w->d[3], plane = y->d[2] * y->d[3];
    double *to = fac_alloc((size_t)(taps * plane) + 1, sizeof *to);
    if (!to) return fac_fail_graph(n->graph, FAC_E_NOMEM, "deform_conv: no memory for its places");
    for (int64_t t = 0; t < taps; t++)
        for (int64_t e = 0; e < plane; e++) {
            const int64_t tap = axis ? t % w->d[3] : t / w->d[3],
                          at = axis ? e % y->d[3] : e / y->d[3];
            to[t * plane + e] =
                (double)(at * o->stride[axis] + tap * o->dilation[axis] - o->pad[axis]);
        }
    fac_value *v = fac_constant(n->graph, dtype, fac_shape(1, taps, plane), to);
    fac_release(to);
    return v;
}

static int64_t expands(const fac_node *n) {
    const bool known = fac_dims_known(&n->in[X]->type.dims, 0) &&
                       fac_dims_known(&n->in[W]->type.dims, 0) &&
                       fac_dims_known(&n->out[0]->type.dims, 0);
    return known ? 60 : 0;
}

/* [N G, C/G, R S, P Q] */
static fac_value *columns(const fac_node *n, fac_dtype wide) {
    const fac_deform_conv_opts *o = n->attrs;
    const fac_dims *x = &n->in[X]->type.dims, *w = &n->in[W]->type.dims, *y = &n->out[0]->type.dims;
    const int64_t G = o->offset_groups, taps = w->d[2] * w->d[3], plane = y->d[2] * y->d[3],
                  NG = x->d[0] * G;
    fac_value *offsets =
                  fac_shaped(fac_grad_as(n->in[OFFSETS], wide), fac_shape(NG, taps, 2, plane)),
              *place[2];
    for (int k = 0; k < 2; k++) {
        fac_value *moved = fac_squeeze(fac_slice(offsets, 2, k, k + 1, 1), fac_shape(2));
        place[k] = fac_add(moved, origin(n, k, wide));
    }
    const fac_taps rows = fac_taps_linear(place[0], x->d[2]),
                   across = fac_taps_linear(place[1], x->d[3]);
    fac_value *images =
        fac_shaped(fac_grad_as(n->in[X], wide), fac_shape(NG, x->d[1] / G, x->d[2], x->d[3]));
    fac_value *read = fac_sum(fac_taps_read(images, NULL, fac_taps_join(rows, across, x->d[3])),
                              fac_shape(2), false);
    if (n->in[MASK])
        read = fac_mul(read,
                       fac_shaped(fac_grad_as(n->in[MASK], wide), fac_shape(NG, taps * plane, 1)));
    return fac_shaped(fac_transpose(read, fac_shape(0, 2, 1)),
                      fac_shape(NG, x->d[1] / G, taps, plane));
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_deform_conv_opts *o = n->attrs;
    const fac_dims *x = &n->in[X]->type.dims, *w = &n->in[W]->type.dims, *y = &n->out[0]->type.dims;
    const fac_dtype dtype = n->in[X]->type.dtype, wide = fac_grad_wide(dtype);
    const int64_t terms = w->d[1] * w->d[2] * w->d[3], plane = y->d[2] * y->d[3], g = o->groups;
    fac_value *taps = fac_shaped(columns(n, wide), fac_shape(x->d[0], g, terms, plane));
    fac_value *weights =
        fac_shaped(fac_grad_as(n->in[W], wide), fac_shape(1, g, w->d[0] / g, terms));
    fac_value *sum = fac_shaped(fac_matmul(weights, taps), *y);
    if (n->in[B]) sum = fac_add(sum, fac_unsqueeze(fac_grad_as(n->in[B], wide), fac_shape(1, 2)));
    out[0] = fac_grad_as(sum, dtype);
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_dims *w = &n->in[W]->type.dims;
    fac_cost_bytes(n, c);
    c->macs = fac_dims_known(w, 0) ? fac_cost_count(n->out[0]) * (double)fac_dims_part(w, 1, 4) : 0;
    c->other = 0;
}

/* ---- ONNX ---- */

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_window_onnx v;
    if (x[0]->type.dims.n != 4) {
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "DeformConv of %d dims, expected 4",
                              x[0]->type.dims.n);
        return;
    }
    if ((y[0] = fac_window_load(n, g, 2, &v))) return;
    const fac_deform_conv_opts o = { { v.stride[0], v.stride[1] },
                                     { v.pad[0], v.pad[1], v.pad[2], v.pad[3] },
                                     { v.dilation[0], v.dilation[1] },
                                     fac_onnx_int(n, "group", 1),
                                     fac_onnx_int(n, "offset_group", 1) };
    y[0] = fac_deform_conv(x[0], x[1], x[2], fac_onnx_in(n, x, 3), fac_onnx_in(n, x, 4), &o);
}
static const fac_onnx_attr names[] = { { "kernel_shape", NULL },
                                       { "strides", NULL },
                                       { "pads", NULL },
                                       { "dilations", NULL },
                                       { "group", NULL },
                                       { "offset_group", NULL },
                                       { 0 } };
static const fac_onnx onnx[] = { { "", "DeformConv", 19, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_deform_conv_opts *o = n->attrs;
    const char *ins[5];
    if (w->opset < 19) return false;
    for (int k = 0; k < 5; k++) ins[k] = fac_onnx_name(w, n->in[k]);
    fac_onnx_put(w, "DeformConv", 5, ins, fac_onnx_name(w, n->out[0]));
    if (fac_dims_known(&n->in[W]->type.dims, 2))
        fac_onnx_put_ints(w, "kernel_shape", 2, n->in[W]->type.dims.d + 2);
    fac_onnx_put_ints(w, "strides", 2, o->stride);
    fac_onnx_put_ints(w, "pads", 4, o->pad);
    fac_onnx_put_ints(w, "dilations", 2, o->dilation);
    fac_onnx_put_int(w, "group", o->groups);
    fac_onnx_put_int(w, "offset_group", o->offset_groups);
    return true;
}

static const fac_case cases[] = {
    { "deform_conv(f32[1,2,5,4], f32[3,2,2,2], f32[1,8,4,3], -, -)", -1, 1, 1e-5 },
    { "deform_conv(f32[2,4,5,6], f32[2,2,3,2], f32[2,24,3,3], f32[2], f32[2,12,3,3]) stride=2,2 "
      "pad=1,0,1,0 groups=2 "
      "offset_groups=2",
      -1, 1, 1e-5 },
    { "deform_conv(f32[1,1,6,6], f32[1,1,2,2], f32[1,8,2,4], -, f32[1,4,2,4]) dilation=4,2", -1, 1,
      1e-5 },
    { "deform_conv(f16[1,2,4,4], f16[1,2,2,2], f16[1,8,3,3], -, -)", -1, 1, 8e-3 },
    { "deform_conv(f32[0,2,4,4], f32[1,2,2,2], f32[0,8,3,3], -, -)", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_deform_conv = {
    .name = "deform_conv",
    .doc = "a convolution whose taps are moved by data",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_deform_conv_opts),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .expands = expands,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_deform_conv(fac_value *x, fac_value *w, fac_value *offsets, fac_value *b,
                           fac_value *mask, const fac_deform_conv_opts *opts) {
    return fac_emit(&fac_op_deform_conv, opts, 5, (fac_value *[]){ x, w, offsets, b, mask });
}
