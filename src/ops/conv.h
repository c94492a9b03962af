/* Convolution with everything resolved: what the conv ops, their reference and the solvers of the
 * backends agree on. */
#ifndef FACULA_OPS_CONV_H
#define FACULA_OPS_CONV_H
#include "ops/window.h"

/* y[n, k, o, p, q] = b[k] + sum over c, t, r, s of
 *     x[n, k / (K/groups) * (C/groups) + c,  o stride + t dilation - pad, ...] w[k, c, t, r, s],
 *         c < C / groups
 * The three spatial dims are depth, height, width; one or two dimensional convolution has ones in
 * front (stride and dilation 1, pad 0), so dim 2 is always the one that is contiguous in memory. */
typedef struct fac_conv_geom {
    int rank; /* 1, 2 or 3 spatial dims */
    int64_t N, C, K, groups;
    union {
        int64_t in[3];
        struct {
            int64_t D, H, W;
        };
    }; /* of x */
    union {
        int64_t kernel[3];
        struct {
            int64_t T, R, S;
        };
    }; /* of w */
    union {
        int64_t out[3];
        struct {
            int64_t O, P, Q;
        };
    }; /* of y */
    int64_t stride[3], dilation[3];
    int64_t pad[3], pad_end[3]; /* in front (top, left), after (bottom, right) */
} fac_conv_geom;

/* Of a conv1d, conv2d or conv3d node whose sizes are all numbers; false when it is another op or a
 * symbol is left. */
bool fac_conv_geometry(const fac_node *n, fac_conv_geom *g);
/* The same from the attributes of a convolution with `rank` spatial dims (1, 2, 3) and the dims of
 * x and w. */
bool fac_conv_geometry_of(int rank, const void *attrs, const fac_dims *x, const fac_dims *w,
                          fac_conv_geom *g);

enum { FAC_FEW_PLANES = 4 }; /* channels of an image as it was loaded, at most */

/* One spatial dim of it as a window. */
static inline fac_window fac_conv_window(const fac_conv_geom *g, int k) {
    return (fac_window){ g->in[k],  g->kernel[k],  g->stride[k], g->dilation[k],
                         g->pad[k], g->pad_end[k], g->out[k] };
}

/* Adds to one plane of y, of x or to one kernel (`to`) what the other two give, over all taps that
 * lie inside:
 *   Y: y[o, p, q] += w[t, r, s] x[z, i, j]     X: x[z, i, j] += w[t, r, s] y[o, p, q]     W: w[t,
 *       r, s] += x[z, i, j] y[o, p, q]
 * with z = o stride + t dilation - pad and so on.  The operand that `to` stands for is not read and
 * may be NULL. */
typedef enum fac_conv_part { FAC_CONV_Y, FAC_CONV_X, FAC_CONV_W } fac_conv_part;
void fac_conv_planes(const fac_conv_geom *g, fac_conv_part part, const double *x, const double *w,
                     const double *y, double *to);

/* How the geometry is filled in: the window of each dim, ones in front of it. */
static inline void fac_conv_window_put(fac_conv_geom *g, int k, const fac_window *v) {
    g->in[k] = v->in;
    g->kernel[k] = v->kernel;
    g->out[k] = v->out;
    g->stride[k] = v->stride;
    g->dilation[k] = v->dilation;
    g->pad[k] = v->pad;
    g->pad_end[k] = v->pad_end;
}

/* x and w have rank + 2 dims, x, w and b one dtype. */
bool fac_conv_operands(fac_node *n, int rank);
/* b (may be absent) has one number for each of K channels. */
bool fac_conv_bias(fac_node *n, int64_t K);
/* outputs: how many elements each see one multiply-add for each weight of a row of w. */
void fac_conv_macs(const fac_node *n, const fac_value *seen, fac_cost *cost);

/* Shared by conv1d, conv2d and conv3d. */
bool fac_conv_infer(fac_node *n);
fac_status fac_conv2d_ref(const fac_ref *r, fac_error *err);
fac_status fac_conv3d_ref(const fac_ref *r, fac_error *err);
bool fac_conv_save(const fac_onnx_writer *w, const fac_node *n);
void fac_conv_cost(const fac_node *n, fac_cost *cost);
void fac_conv_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]);
extern const fac_port fac_conv_in[];
extern const fac_attr fac_conv2d_table[], fac_conv3d_table[];
#endif
