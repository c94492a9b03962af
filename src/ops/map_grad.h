/* What gradients of elementwise ops are written with: numbers beside tensors, selections,
 * broadcasting undone.  Such gradients read the result instead of the operand where that is cheaper
 * (sigmoid, tanh, exp, sqrt), as torch does, and stay short chains of elementwise ops, which become
 * one pass over memory. */
#ifndef FACULA_OPS_MAP_GRAD_H
#define FACULA_OPS_MAP_GRAD_H
#include "ops/grad.h"

/* A scalar of v's dtype. */
fac_value *fac_grad_number(const fac_value *v, double number);
fac_value *fac_grad_shifted(fac_value *v, double number); /* v + number */
fac_value *fac_grad_rest(fac_value *v);                   /* 1 - v      */

/* bool */
fac_value *fac_grad_above(fac_value *v, double bound); /* v > bound  */
fac_value *fac_grad_below(fac_value *v, double bound); /* v < bound  */
/* v where the condition holds, else 0: no 0 * inf as a product with a mask would have. */
fac_value *fac_grad_where(fac_value *condition, fac_value *v);
/* v, but 0 where y is at or below (at or above) the bound; where y is NaN, v stays, as in torch. */
fac_value *fac_grad_past(fac_value *y, double bound, fac_value *v);
fac_value *fac_grad_short_of(fac_value *y, double bound, fac_value *v);
fac_value *fac_grad_sign(fac_value *v); /* -1, 0 or 1; 0 of NaN, too */
/* An op whose result stays as it is between jumps: zeros, whatever comes in. */
void fac_grad_flat(const fac_node *n, fac_value *const dy[], fac_value *dx[]);

/* v, shaped as the result of n, summed over the dims along which input i was broadcast. */
fac_value *fac_grad_unbroadcast(const fac_node *n, int i, fac_value *v);
/* Both, for an op of two operands; a product is made only where it is needed:  dx_i = dy w_i  (w_i
 * NULL: 1). */
void fac_grad_weighted(const fac_node *n, int i, fac_value *dy, fac_value *w, fac_value *dx[]);
/* The larger (or smaller) of two: where they are equal each gets half, as in torch. */
void fac_grad_extreme(const fac_node *n, fac_value *dy, bool larger, fac_value *dx[]);
/* The remainder x - q y, where q is an integer that changes by jumps only:  dx = dy,  dy = -q dy.
 * q is x / y rounded towards 0, or down.  Where there is no remainder q is x / y itself, and NaN
 * rounded down of an infinite x, as in torch. */
void fac_grad_remainder(const fac_node *n, fac_value *dy, bool down, fac_value *dx[]);
#endif
