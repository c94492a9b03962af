/* What floats of a type can say. */
#ifndef FACULA_PASSES_RANGE_H
#define FACULA_PASSES_RANGE_H
#include "facula/tensor.h"

/* Its largest number, and its smallest that is not 0. */
typedef struct fac_range {
    double largest, smallest;
} fac_range;
fac_range fac_range_of(fac_dtype dtype);

/* What becomes of x in the type: too large a number is infinite, too small a one 0. */
static inline bool fac_range_over(fac_range r, double x, double rounded) {
    return x >= -1.7976931348623157e308 && x <= 1.7976931348623157e308 &&
           (rounded > r.largest || rounded < -r.largest);
}
static inline bool fac_range_under(double x, double rounded) { return x != 0 && rounded == 0; }

/* Every finite number of t stays finite in the type, and a single one that is not 0 is not 0
 * there: epsilons are single numbers, where tensors of weights may hold some that vanish.  false
 * also when memory is gone. */
bool fac_range_holds(fac_dtype dtype, const fac_tensor *t);

/* Every number of t is 0; false also when memory is gone. */
bool fac_range_is_zero(const fac_tensor *t);
#endif
