/* Kullback-Leibler divergence. */
#include "nn/loss/loss_internal.h"

/* t log t has the limit 0 at t = 0: the logarithm is taken of 1 there, so that neither it nor its
 * gradient is infinite. */
fac_value *fac_kl_div(fac_value *log_probs, fac_value *target, fac_reduction reduction) {
    fac_value *some = fac_greater(target, fac_loss_number(target, 0));
    fac_value *logs = fac_log(fac_where(some, target, fac_loss_number(target, 1)));
    return fac_loss_reduce(fac_mul(target, fac_sub(logs, log_probs)), reduction);
}
