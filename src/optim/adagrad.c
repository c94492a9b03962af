/* Adagrad (Duchi et al. 2011), as torch.optim.Adagrad; t counts steps from 1:
 *   g <- g + weight_decay p;   h <- h + g^2;   p <- p - lr / (1 + (t - 1) lr_decay)  g / (sqrt(h) +
 *       eps) */
#include "optim/optim_internal.h"

static fac_value *rule(const fac_step_of *s) {
    const fac_optim_opts *o = &s->walk->opts;
    fac_value *g = fac_optim_decayed(s), *sum = fac_optim_state(s, "sum", o->initial);
    fac_value *h = fac_add(sum, fac_mul(g, g));
    fac_update(sum, h);
    fac_value *slower =
        fac_add(fac_optim_f64(s, 1), fac_mul(s->walk->done, fac_optim_f64(s, o->lr_decay)));
    fac_value *rate = fac_optim_as(s, fac_div(s->lr, slower));
    fac_value *scale = fac_add(fac_sqrt(h), fac_optim_number(s, fac_optim_or(o->eps, 1e-10)));
    return fac_sub(s->p, fac_mul(rate, fac_div(g, scale)));
}

void fac_adagrad(fac_value *loss, fac_value *lr, const fac_optim_opts *opts) {
    fac_optim_each(loss, lr, opts, rule);
}
