/* Binary cross entropy of logits.  -t log s(x) - (1 - t) log(1 - s(x)) = log(1 + e^x) - t x, as log
 * s(x) = x - log(1 + e^x). */
#include "nn/loss/loss_internal.h"

fac_value *fac_bce_with_logits(fac_value *x, fac_value *target, fac_reduction reduction) {
    return fac_loss_reduce(fac_sub(fac_softplus(x), fac_mul(target, x)), reduction);
}
