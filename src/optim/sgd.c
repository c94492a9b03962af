/* Stochastic gradient descent with momentum (Polyak 1964) and Nesterov's variant (Sutskever et al.
 * 2013), as torch.optim.SGD:
 *   g <- g + weight_decay p;   b <- momentum b + (1 - dampening) g, but b <- g in the first step
 *   p <- p - lr b,             nesterov:  p <- p - lr (g + momentum b) */
#include "optim/optim_internal.h"

static fac_value *rule(const fac_step_of *s) {
    const fac_optim_opts *o = &s->walk->opts;
    fac_value *g = fac_optim_decayed(s);
    if (o->momentum != 0) {
        fac_value *buffer = fac_optim_state(s, "momentum_buffer", 0), *part = g;
        if (o->dampening != 0) {
            fac_value *first = fac_equal(s->walk->done, fac_optim_f64(s, 0));
            fac_value *share =
                fac_where(first, fac_optim_f64(s, 1), fac_optim_f64(s, 1 - o->dampening));
            part = fac_mul(g, fac_optim_as(s, share));
        }
        fac_value *b = fac_add(fac_optim_scale(s, buffer, o->momentum), part);
        fac_update(buffer, b);
        g = o->nesterov ? fac_add(g, fac_optim_scale(s, b, o->momentum)) : b;
    }
    return fac_sub(s->p, fac_mul(g, fac_optim_as(s, s->lr)));
}

void fac_sgd(fac_value *loss, fac_value *lr, const fac_optim_opts *opts) {
    fac_optim_each(loss, lr, opts, rule);
}
