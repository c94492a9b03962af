/* Convolution with everything resolved: what the conv ops, their reference and the solvers of the backends agree on. */
#ifndef FACULA_OPS_CONV_H
#define FACULA_OPS_CONV_H
#include "ops/window.h"

/* y[n, k, o, p, q] = b[k] + sum over c, t, r, s of
 *     x[n, k / (K/groups) * (C/groups) + c,  o stride + t dilation - pad, ...] w[k, c, t, r, s],    c < C / groups
 * The three spatial dims are depth, height, width; one or two dimensional convolution has ones in front (stride and dilation
 * 1, pad 0), so dim 2 is always the one that is contiguous in memory. */
typedef struct fac_conv_geom {
    int     rank;                                                       /* 1, 2 or 3 spatial dims */
    int64_t N, C, K, groups;
    union { int64_t in[3];     struct { int64_t D, H, W; }; };          /* of x */
    union { int64_t kernel[3]; struct { int64_t T, R, S; }; };          /* of w */
    union { int64_t out[3];    struct { int64_t O, P, Q; }; };          /* of y */
    int64_t stride[3], dilation[3];
    int64_t pad[3], pad_end[3];                                         /* in front (top, left), behind (bottom, right) */
} fac_conv_geom;

/* Of a conv1d, conv2d or conv3d node whose sizes are all numbers; false when it is another op or a symbol is left. */
bool fac_conv_geometry(const fac_node *n, fac_conv_geom *g);
/* The same from the attributes of a convolution with `rank` spatial dims (1, 2, 3) and the dims of x and w. */
bool fac_conv_geometry_of(int rank, const void *attrs, const fac_dims *x, const fac_dims *w, fac_conv_geom *g);

/* One spatial dim of it as a window. */
static inline fac_window fac_conv_window(const fac_conv_geom *g, int k) {
    return (fac_window){ g->in[k], g->kernel[k], g->stride[k], g->dilation[k], g->pad[k], g->pad_end[k], g->out[k] };
}

/* Shared by conv1d, conv2d and conv3d. */
bool       fac_conv_infer(fac_node *n);
fac_status fac_conv2d_ref(const fac_ref *r, fac_error *err);
fac_status fac_conv3d_ref(const fac_ref *r, fac_error *err);
void       fac_conv_cost(const fac_node *n, fac_cost *cost);
void       fac_conv_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]);
extern const fac_port fac_conv_in[];
extern const fac_attr fac_conv2d_table[], fac_conv3d_table[];
#endif
