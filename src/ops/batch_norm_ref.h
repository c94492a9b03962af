/* The reference of batch normalization's gradient, with and without the mask of an activation. */
#ifndef FACULA_OPS_BATCH_NORM_REF_H
#define FACULA_OPS_BATCH_NORM_REF_H
#include <math.h>
#include "facula/op.h"

/* What an activation whose result is y stops: its gradient is 0 where y is at or below lo, or at or
 * above hi.  Infinite: no limit, which is said by NaN, since nothing compares with that. */
static inline double fac_norm_limit(double x) { return isinf(x) ? NAN : x; }
static inline bool fac_norm_stops(double y, double lo, double hi) {
    return y <= fac_norm_limit(lo) || y >= fac_norm_limit(hi);
}
/* Inputs 0, 1, 2 of r are x, dy, scale; y (NULL: no mask) says where dy counts. */
void fac_batch_norm_grad_ref(const fac_ref *r, double epsilon, const double *y, double lo,
                             double hi);
#endif
