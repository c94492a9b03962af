/* Two-dimensional convolution, and the ONNX spelling of all three. */
#include <limits.h>
#include "ops/fusions.h"
#include "ops/conv.h"

#if FAC_INTERFACE
/* y[n,k,p,q] = b[k] + sum over c,r,s of x[n, c', p stride + r dilation - pad, ...] w[k,c,r,s],  c'
 * = c in k's group
 *   x N,C,H,W   w K,C/groups,R,S   b K or NULL   y N,K,P,Q   P = floor((H + top + bottom - (R-1)
 *               dilation - 1) / stride) + 1
 * f32 f64 f16 bf16.  FAC_E_SHAPE when channels and groups do not fit together or the kernel exceeds
 * the padded input. */
typedef struct fac_conv2d_opts {
    int64_t stride[2];   /* 0 = 1 */
    int64_t pad[4];      /* top, left, bottom, right */
    int64_t dilation[2]; /* 0 = 1 */
    int64_t groups;      /* 0 = 1 */
    int auto_pad;        /* fac_auto_pad; pad is ignored unless it is FAC_AUTO_NONE */
} fac_conv2d_opts;
fac_value *fac_conv2d(fac_value *x, fac_value *w, fac_value *b, const fac_conv2d_opts *opts);
#endif

#define AT(field) offsetof(fac_conv2d_opts, field)
const fac_attr fac_conv2d_table[] = {
    { "stride", FAC_A_INT, AT(stride), 2, 1, 1, INT_MAX, NULL, "height, width" },
    { "pad", FAC_A_INT, AT(pad), 4, 0, 0, INT_MAX, NULL, "top, left, bottom, right" },
    { "dilation", FAC_A_INT, AT(dilation), 2, 1, 1, INT_MAX, NULL, "distance of kernel elements" },
    { "groups", FAC_A_INT, AT(groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { 0 }
};
#undef AT

/* ONNX Conv has any number of spatial dims; w tells.  kernel_shape may repeat what w says, not
 * contradict it. */
void fac_conv_load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_value *x = in[0], *w = in[1], *b = n->nin > 2 ? in[2] : NULL;
    fac_dims d = fac_value_type(w).dims;
    int rank = d.n - 2;
    if (rank < 1 || rank > 3) {
        out[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED,
                                "Conv: a weight of %d dims, expected 3, 4 or 5", d.n);
        return;
    }
    fac_window_onnx v;
    if ((out[0] = fac_window_load(n, g, rank, &v))) return;
    for (int k = 0; k < rank; k++)
        if (v.kernel[0] && v.kernel[k] != d.d[2 + k] && d.d[2 + k] >= 0) {
            out[0] = fac_fail_graph(g, FAC_E_FORMAT, "Conv: kernel_shape[%d] is %lld, w has %lld",
                                    k, (long long)v.kernel[k], (long long)d.d[2 + k]);
            return;
        }
    int64_t groups = fac_onnx_int(n, "group", 1);
    if (groups < 1) {
        out[0] = fac_fail_graph(g, FAC_E_FORMAT, "Conv: group is %lld", (long long)groups);
        return;
    }
    const int64_t *s = v.stride, *p = v.pad, *e = v.dilation;
    if (rank == 1)
        out[0] = fac_conv1d(x, w, b,
                            &(fac_conv1d_opts){ s[0], { p[0], p[1] }, e[0], groups, v.auto_pad });
    else if (rank == 2)
        out[0] = fac_conv2d(
            x, w, b,
            &(fac_conv2d_opts){
                { s[0], s[1] }, { p[0], p[1], p[2], p[3] }, { e[0], e[1] }, groups, v.auto_pad });
    else
        out[0] = fac_conv3d(x, w, b,
                            &(fac_conv3d_opts){ { s[0], s[1], s[2] },
                                                { p[0], p[1], p[2], p[3], p[4], p[5] },
                                                { e[0], e[1], e[2] },
                                                groups,
                                                v.auto_pad });
}

static const fac_onnx_attr spellings[] = { { "kernel_shape", NULL }, { "strides", "stride" },
                                           { "pads", "pad" },        { "dilations", "dilation" },
                                           { "group", "groups" },    { 0 } };
static const fac_onnx onnx[] = {
    { "", "Conv", 1, 0, spellings, fac_conv_load, 0 },
    { "com.microsoft", "FusedConv", 1, 0, fac_names_fused_conv, fac_load_fused_conv, 0 },
    { "com.microsoft.nchwc", "Conv", 1, 0, fac_names_fused_conv, fac_load_nchwc_conv, 0 },
    { 0 }
};
bool fac_conv_save(const fac_onnx_writer *w, const fac_node *n) {
    const char *in[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]),
                         fac_onnx_name(w, n->in[2]) };
    const fac_dims *d = &n->in[1]->type.dims;
    fac_onnx_put(w, "Conv", 3, in, fac_onnx_name(w, n->out[0]));
    if (fac_dims_count(d) >= 0) fac_onnx_put_ints(w, "kernel_shape", d->n - 2, d->d + 2);
    fac_window_save(w, n);
    return true;
}

static const fac_case cases[] = {
    { "conv2d(f32[1,1,5,5], f32[1,1,3,3])", -1, 1, 1e-6 },
    { "conv2d(f32[2,3,9,8], f32[5,3,3,2], f32[5]) stride=2,1 pad=1,0,2,1", -1, 1, 1e-5 },
    { "conv2d(f32[1,6,7,7], f32[4,3,3,3], f32[4]) pad=1,1,1,1 groups=2", -1, 1, 1e-5 },
    { "conv2d(f32[1,7,11,13], f32[7,1,3,3], f32[7]) stride=2,2 pad=1,1,1,1 groups=7", -1, 1, 1e-5 },
    { "conv2d(f32[2,8,9,7], f32[8,1,3,3], f32[8]) pad=1,1,1,1 groups=8", -1, 1, 1e-5 },
    { "conv2d(f32[1,4,17,15], f32[3,4,3,5]) pad=4,2,4,2 dilation=4,1", -1, 1, 1e-5 },
    { "conv2d(f32[2,16,14,14], f32[24,16,1,1], f32[24])", -1, 1, 1e-5 },
    { "conv2d(f32[2,16,9,10], f32[24,16,3,3], f32[24]) pad=1,1,1,1", -1, 1, 4e-5 },
    { "conv2d(f32[1,3,23,23], f32[8,3,7,7]) stride=2,2 auto_pad=same_upper", -1, 1, 2e-5 },
    { "conv2d(f32[1,2,10,6], f32[3,2,4,4]) stride=3,3 auto_pad=same_lower", -1, 1, 1e-5 },
    { "conv2d(f32[1,2,10,6], f32[3,2,4,4]) pad=7,7,7,7 auto_pad=valid", -1, 1, 1e-5 },
    { "conv2d(f32[0,3,8,8], f32[4,3,3,3])", 0, 0, 0 },
    { "conv2d(f16[1,3,6,6], f16[4,3,3,3], f16[4])", -1, 1, 4e-3 },
    { "conv2d(f64[1,3,6,6], f64[4,3,3,3], f64[4])", -1, 1, 1e-13 },
    { 0 }
};

extern const fac_op fac_op_conv2d;
const fac_op fac_op_conv2d = {
    .name = "conv2d",
    .doc = "two-dimensional convolution (cross-correlation) with zero padding",
    .in = fac_conv_in,
    .out = fac_ports_y,
    .attrs = fac_conv2d_table,
    .attrs_size = sizeof(fac_conv2d_opts),
    .infer = fac_conv_infer,
    .ref = fac_conv2d_ref,
    .grad = fac_conv_grad,
    .cost = fac_conv_cost,
    .onnx = onnx,
    .save = fac_conv_save,
    .cases = cases,
    .is = FAC_OP_RING,
    .layer = FAC_CLASS_CONV,
    .torch = "Conv2d",
    .mixed = FAC_MIXED_PRODUCT,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_PRODUCT },
};
fac_value *fac_conv2d(fac_value *x, fac_value *w, fac_value *b, const fac_conv2d_opts *opts) {
    return fac_emit(&fac_op_conv2d, opts, 3, (fac_value *[]){ x, w, b });
}
