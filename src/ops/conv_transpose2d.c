/* Two-dimensional transposed convolution, and the ONNX spelling of all three. */
#include <limits.h>
#include <string.h>
#include "ops/conv_transpose.h"

#if FAC_INTERFACE
/* The transpose of conv2d as a linear map, plus a bias:
 *   y[n,k, i stride + r dilation - pad, ...] = b[k] + sum of all x[n,c,i,j] w[c,k',r,s] that meet
 *       there,  k' = k in c's group
 *   x N,C,H,W   w C,K/groups,R,S   b K or NULL   y N,K,P,Q
 *   P = (H - 1) stride + (R - 1) dilation + 1 + output_pad - top - bottom
 * f32 f64 f16 bf16.  FAC_E_SHAPE when channels and groups do not fit together or padding eats all
 * of y. */
typedef struct fac_conv_transpose2d_opts {
    int64_t stride[2];      /* 0 = 1 */
    int64_t pad[4];         /* top, left, bottom, right: cut off from y */
    int64_t dilation[2];    /* 0 = 1 */
    int64_t output_pad[2];  /* added after */
    int64_t output_size[2]; /* of y; 0: by the formula.  Given, it decides the padding, the odd one
                               in front */
    int64_t groups;         /* 0 = 1 */
    int auto_pad;           /* fac_auto_pad; SAME: y has in stride elements */
} fac_conv_transpose2d_opts;
fac_value *fac_conv_transpose2d(fac_value *x, fac_value *w, fac_value *b,
                                const fac_conv_transpose2d_opts *opts);
#endif

#define AT(field) offsetof(fac_conv_transpose2d_opts, field)
static const fac_attr table[] = {
    { "stride", FAC_A_INT, AT(stride), 2, 1, 1, INT_MAX, NULL, "height, width" },
    { "pad", FAC_A_INT, AT(pad), 4, 0, 0, INT_MAX, NULL, "top, left, bottom, right" },
    { "dilation", FAC_A_INT, AT(dilation), 2, 1, 1, INT_MAX, NULL, "distance of kernel elements" },
    { "output_pad", FAC_A_INT, AT(output_pad), 2, 0, 0, INT_MAX, NULL, "added at the end" },
    { "output_size", FAC_A_INT, AT(output_size), 2, 0, 0, INT_MAX, NULL,
      "of y; 0: by the formula" },
    { "groups", FAC_A_INT, AT(groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { 0 }
};
#undef AT

/* ONNX ConvTranspose has any number of spatial dims; w tells. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_value *x = in[0], *w = in[1], *b = n->nin > 2 ? in[2] : NULL;
    int rank = fac_value_type(w).dims.n - 2;
    if (rank < 1 || rank > 3) {
        out[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED,
                                "ConvTranspose: a weight of %d dims, expected 3, 4 or 5", rank + 2);
        return;
    }
    fac_window_onnx v;
    if ((out[0] = fac_window_load(n, g, rank, &v))) return;
    int64_t more[3] = { 0 }, size[5] = { 0 };
    int have = fac_onnx_ints_long(n, "output_padding", more, 3),
        sizes = fac_onnx_ints_long(n, "output_shape", size, 5);
    if (sizes == rank + 2)
        memmove(size, size + 2, (size_t)rank * sizeof *size); /* some files write N and C too */
    int64_t groups = fac_onnx_int(n, "group", 1);
    if ((have >= 0 && have != rank) || (sizes >= 0 && sizes != rank && sizes != rank + 2) ||
        groups < 1) {
        out[0] = fac_fail_graph(
            g, FAC_E_FORMAT,
            "ConvTranspose: output_padding or output_shape of a wrong length, or no group");
        return;
    }
    const int64_t *s = v.stride, *p = v.pad, *d = v.dilation, *m = more, *o = size;
    if (rank == 1) {
        fac_conv_transpose1d_opts a = {
            s[0], { p[0], p[1] }, d[0], m[0], o[0], groups, v.auto_pad
        };
        out[0] = fac_conv_transpose1d(x, w, b, &a);
    } else if (rank == 2) {
        fac_conv_transpose2d_opts a = { { s[0], s[1] }, { p[0], p[1], p[2], p[3] },
                                        { d[0], d[1] }, { m[0], m[1] },
                                        { o[0], o[1] }, groups,
                                        v.auto_pad };
        out[0] = fac_conv_transpose2d(x, w, b, &a);
    } else {
        fac_conv_transpose3d_opts a = { { s[0], s[1], s[2] },
                                        { p[0], p[1], p[2], p[3], p[4], p[5] },
                                        { d[0], d[1], d[2] },
                                        { m[0], m[1], m[2] },
                                        { o[0], o[1], o[2] },
                                        groups,
                                        v.auto_pad };
        out[0] = fac_conv_transpose3d(x, w, b, &a);
    }
}

static const fac_onnx_attr spellings[] = { { "kernel_shape", NULL },
                                           { "strides", "stride" },
                                           { "pads", "pad" },
                                           { "dilations", "dilation" },
                                           { "group", "groups" },
                                           { "output_padding", "output_pad" },
                                           { "output_shape", "output_size" },
                                           { 0 } };
static const fac_onnx onnx[] = { { "", "ConvTranspose", 1, 0, spellings, load, 0 }, { 0 } };
bool fac_conv_transpose_save(const fac_onnx_writer *w, const fac_node *n) {
    const char *in[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]),
                         fac_onnx_name(w, n->in[2]) };
    const fac_dims *d = &n->in[1]->type.dims;
    fac_onnx_put(w, "ConvTranspose", 3, in, fac_onnx_name(w, n->out[0]));
    if (fac_dims_count(d) >= 0) fac_onnx_put_ints(w, "kernel_shape", d->n - 2, d->d + 2);
    fac_window_save(w, n);
    return true;
}

static const fac_case cases[] = {
    { "conv_transpose2d(f32[1,1,3,3], f32[1,2,3,3])", -1, 1, 1e-5 },
    { "conv_transpose2d(f32[2,4,5,4], f32[4,3,3,2], f32[3]) stride=2,3 pad=1,0,2,1 output_pad=1,2",
      -1, 1, 1e-5 },
    { "conv_transpose2d(f32[1,4,4,5], f32[4,2,3,3], f32[4]) stride=2,2 pad=1,1,1,1 groups=2", -1, 1,
      1e-5 },
    { "conv_transpose2d(f32[1,2,4,5], f32[2,2,3,3]) dilation=2,3", -1, 1, 1e-5 },
    { "conv_transpose2d(f32[1,2,4,5], f32[2,2,4,3]) stride=2,2 auto_pad=same_upper", -1, 1, 1e-5 },
    { "conv_transpose2d(f32[1,2,4,5], f32[2,2,2,2]) stride=3,3 output_size=13,15", -1, 1, 1e-5 },
    { "conv_transpose2d(f32[0,2,4,5], f32[2,2,2,2])", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_conv_transpose2d;
const fac_op fac_op_conv_transpose2d = {
    .name = "conv_transpose2d",
    .doc = "two-dimensional transposed convolution",
    .in = fac_conv_in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_conv_transpose2d_opts),
    .infer = fac_conv_transpose_infer,
    .ref = fac_conv_transpose2d_ref,
    .expand = fac_conv_transpose_expand,
    .expands = fac_conv_transpose_expands,
    .grad = fac_conv_transpose_grad,
    .cost = fac_conv_transpose_cost,
    .onnx = onnx,
    .save = fac_conv_transpose_save,
    .cases = cases,
    .is = FAC_OP_RING,
    .layer = FAC_CLASS_CONV_TRANSPOSE,
    .torch = "ConvTranspose2d",
    .mixed = FAC_MIXED_PRODUCT,
    .rounding = { .rule = FAC_ROUND_PRODUCT },
};
fac_value *fac_conv_transpose2d(fac_value *x, fac_value *w, fac_value *b,
                                const fac_conv_transpose2d_opts *opts) {
    return fac_emit(&fac_op_conv_transpose2d, opts, 3, (fac_value *[]){ x, w, b });
}
