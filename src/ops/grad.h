/* What gradients of ops are written with.  All of it works with sizes that are still symbols. */
#ifndef FACULA_OPS_GRAD_H
#define FACULA_OPS_GRAD_H
#include "facula/op.h"
#include "facula/ops.h"

/* v as this dtype; v itself when it has it. */
fac_value *fac_grad_as(fac_value *v, fac_dtype dtype);
/* What sums over values of this dtype are made in: f64 of f64, else f32. */
static inline fac_dtype fac_grad_wide(fac_dtype dtype) {
    return dtype == FAC_F64 ? FAC_F64 : FAC_F32;
}
/* v broadcast to the shape of `like`. */
fac_value *fac_grad_spread(fac_value *v, fac_value *like);
/* v, a number for each channel (dim 1, or all of x of one dim), as x's dtype and so that it
 * broadcasts to x. */
fac_value *fac_grad_of_channels(fac_value *v, const fac_value *x);
/* v / how many elements of x there are for each one of y, in no less than f32: f16 counts to 65504.
 */
fac_value *fac_grad_share(fac_value *v, fac_value *x, fac_value *y);
/* The last two dims in the other order. */
fac_value *fac_grad_swap(fac_value *v);
fac_value *fac_grad_times(fac_value *v, double number);
/* a + b, where NULL is nothing. */
fac_value *fac_grad_plus(fac_value *a, fac_value *b);

/* For reductions: v, shaped as the result of node n, with ones in place of the reduced dims so that
 * it broadcasts to x.  The poison value after an error when the axes are not known. */
fac_value *fac_grad_unreduce(const fac_node *n, fac_value *v);

/* Standardizing over axes (which stay, as 1):  hat = (x - mean x) / sqrt(var x + epsilon). */
typedef struct fac_standard {
    fac_dims axes;
    fac_value *mean, *inverse, *hat;
} fac_standard;
fac_standard fac_grad_standard(fac_value *x, fac_dims axes, double epsilon);
/* d x from d hat:  (dhat - mean dhat - hat mean(dhat hat)) / sqrt(var x + epsilon). */
fac_value *fac_grad_unstandard(const fac_standard *s, fac_value *dhat);
#endif
