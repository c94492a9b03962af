/* Lion (Chen et al. 2023, https://arxiv.org/abs/2302.06675, algorithm 2): the sign of a moving
 * average, one moment only.
 *   p <- p (1 - lr weight_decay) - lr sign(m + (1 - beta1) (g - m));   m <- m + (1 - beta2) (g - m)
 */
#include "optim/optim_internal.h"

static fac_value *rule(const fac_step_of *s) {
    const fac_optim_opts *o = &s->walk->opts;
    fac_value *avg = fac_optim_state(s, "exp_avg", 0), *p = s->p;
    if (s->weight_decay > 0)
        p = fac_mul(p, fac_optim_as(s, fac_sub(fac_optim_f64(s, 1),
                                               fac_mul(s->lr, fac_optim_f64(s, s->weight_decay)))));
    fac_value *way = fac_sign(fac_optim_lerp(s, avg, s->g, 1 - fac_optim_or(o->beta1, 0.9)));
    fac_update(avg, fac_optim_lerp(s, avg, s->g, 1 - fac_optim_or(o->beta2, 0.99)));
    return fac_sub(p, fac_mul(way, fac_optim_as(s, s->lr)));
}

void fac_lion(fac_value *loss, fac_value *lr, const fac_optim_opts *opts) {
    fac_optim_each(loss, lr, opts, rule);
}
