/* AdamW (Loshchilov & Hutter 2019, https://arxiv.org/abs/1711.05101), as torch.optim.AdamW: weight
 * decay leaves the moments alone.
 *   p <- p (1 - lr weight_decay), then Adam's step with the plain gradient */
#include "optim/optim_internal.h"

static fac_value *rule(const fac_step_of *s) {
    double decay = fac_optim_or(s->weight_decay, 0.01);
    if (decay < 0) return fac_adam_step(s, s->p, s->g);
    fac_value *keep = fac_sub(fac_optim_f64(s, 1), fac_mul(s->lr, fac_optim_f64(s, decay)));
    return fac_adam_step(s, fac_mul(s->p, fac_optim_as(s, keep)), s->g);
}

void fac_adamw(fac_value *loss, fac_value *lr, const fac_optim_opts *opts) {
    fac_optim_each(loss, lr, opts, rule);
}
