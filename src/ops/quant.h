/* Integers that stand for numbers: x = (q - zero) scale.  What the quantized ops share.
 *
 * Formulas are those of ONNX, in the arithmetic of ONNX Runtime: sums in i32, factors and results
 * in f32, rounding half to even. */
#ifndef FACULA_OPS_QUANT_H
#define FACULA_OPS_QUANT_H
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"

/* ---- which scale belongs to an element ---- */

/* One scale for all of x, one for each index of an axis, or one for each `block` of them. */
typedef struct fac_grid {
    int64_t size, inner;   /* of the axis, and elements after it   */
    int64_t block, blocks; /* 0: one for all                        */
    bool apart;            /* blocks differ outside of the axis too */
} fac_grid;

static inline int64_t fac_grid_at(const fac_grid *g, int64_t e) {
    if (!g->block) return 0;
    const int64_t k = e / g->inner % g->size / g->block;
    if (!g->apart) return k;
    return (e / (g->inner * g->size) * g->blocks + k) * g->inner + e % g->inner;
}

/* x and scale have known dims that fit together. */
fac_grid fac_grid_of(const fac_dims *x, const fac_dims *scale, int64_t axis, int64_t block);
/* Whether scale (and zero, if it is there) fits to x; false after fac_fail. */
bool fac_grid_fits(fac_node *n, const fac_dims *x, const fac_value *scale, const fac_value *zero,
                   int64_t axis, int64_t block);
/* scale or zero so that it broadcasts against x, in graph ops. */
fac_value *fac_grid_spread(fac_value *v, fac_value *x, int64_t axis, int64_t block);

/* ---- ONNX ---- */

/* The opset that brought integers of 2 and 16 bits, blocks and small floats to these ops. */
static inline int fac_quant_since(fac_dtype t) {
    if (fac_dtype_get(t)->bits == 2) return 25;
    return t == FAC_F4E2M1 ? 23 : 21;
}

/* ---- numbers ---- */

/* The least and the largest integer of a dtype. */
void fac_quant_range(fac_dtype dtype, double *least, double *most);
/* x rounded to a dtype of floats. */
double fac_quant_round(fac_dtype dtype, double x);
/* f32(x) to the nearest integer, plus zero, within the range. */
static inline double fac_quant_put(float x, double zero, double least, double most) {
    const double y = nearbyint((double)x) + zero;
    if (y < least) return least;
    if (y > most) return most;
    return y == y ? y : 0;
}
static inline double fac_quant_get(const fac_array *a, int64_t k) {
    if (a->f) return a->f[k];
    return a->i ? (double)a->i[k] : 0;
}
static inline bool fac_quant_is_here(const fac_array *a) { return a->f || a->i; }

/* ---- in graphs ---- */

/* Sums in i32 as numbers of `zero`'s dtype: sat(rne(f32(acc) factor) + zero). */
fac_value *fac_requantize(fac_value *acc, fac_value *factor, fac_value *zero);
/* The zero point, or 0 of this dtype. */
fac_value *fac_zero_or(fac_graph *g, fac_value *zero, fac_dtype dtype);
/* v for each of K channels as K,1,1: it broadcasts against N,K,P,Q.  A scalar stays. */
fac_value *fac_quant_channels(fac_value *v);

/* Ports of 8 bits have one of these two. */
static inline bool fac_is_byte(fac_dtype t) { return t == FAC_I8 || t == FAC_U8; }
bool fac_quant_bytes(fac_node *n, int input, const char *name);
bool fac_quant_scalar(fac_node *n, int input, const char *name);
/* One, or one for each of `count`. */
bool fac_quant_each(fac_node *n, int input, int64_t count, const char *name);

/* ---- quant_conv.c ---- */

enum { FAC_QCONV_X, FAC_QCONV_W, FAC_QCONV_B };
bool fac_quant_conv_infer(fac_node *n, fac_dtype y);
/* Of qlinear_conv, and of what has more ports after its own. */
bool fac_qlinear_conv_infer(fac_node *n);
/* What conv_integer gives, as doubles; the ports of the zero points, which may be absent. */
fac_status fac_quant_conv_sums(const fac_ref *r, int x_zero, int w_zero, double *y, fac_error *err);
/* 1 to 3 spatial dims to ops of two, or to products in f64: for ONNX's ConvInteger, QLinearConv. */
typedef fac_value *fac_quant_conv(fac_value *const in[], const fac_conv2d_opts *o);

extern const char *const fac_quant_none[];
#endif
