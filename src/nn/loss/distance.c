/* Losses of a difference: squared, absolute, and Girshick's mix of both (2015,
 * https://arxiv.org/abs/1504.08083). */
#include "nn/loss/loss_internal.h"

fac_value *fac_mse_loss(fac_value *x, fac_value *target, fac_reduction reduction) {
    fac_value *d = fac_sub(x, target);
    return fac_loss_reduce(fac_mul(d, d), reduction);
}

fac_value *fac_l1_loss(fac_value *x, fac_value *target, fac_reduction reduction) {
    return fac_loss_reduce(fac_abs(fac_sub(x, target)), reduction);
}

fac_value *fac_smooth_l1_loss(fac_value *x, fac_value *target, double beta,
                              fac_reduction reduction) {
    if (!(beta > 0))
        return fac_fail_graph(x->graph, FAC_E_ARGUMENT,
                              "smooth L1 loss: beta is %g, it must be positive", beta);
    fac_value *d = fac_sub(x, target), *size = fac_abs(d);
    fac_value *square = fac_mul(fac_mul(d, d), fac_loss_number(d, 0.5 / beta));
    fac_value *line = fac_sub(size, fac_loss_number(d, beta / 2));
    return fac_loss_reduce(fac_where(fac_less(size, fac_loss_number(d, beta)), square, line),
                           reduction);
}
