/* RMSprop (Hinton 2012, lecture 6e; centered: Graves 2013, https://arxiv.org/abs/1308.0850), as
 * torch.optim.RMSprop:
 *   g <- g + weight_decay p;   v <- alpha v + (1 - alpha) g^2;   centered:  a <- a + (1 - alpha) (g
 *       - a), v' = v - a^2
 *   d = g / (sqrt(v') + eps);  with momentum:  b <- momentum b + d, d = b;    p <- p - lr d */
#include "optim/optim_internal.h"

static fac_value *rule(const fac_step_of *s) {
    const fac_optim_opts *o = &s->walk->opts;
    double alpha = fac_optim_or(o->alpha, 0.99);
    fac_value *g = fac_optim_decayed(s), *square_avg = fac_optim_state(s, "square_avg", 0);
    fac_value *v = fac_add(fac_optim_scale(s, square_avg, alpha),
                           fac_optim_scale(s, fac_mul(g, g), 1 - alpha));
    fac_update(square_avg, v);
    if (o->centered) {
        fac_value *grad_avg = fac_optim_state(s, "grad_avg", 0);
        fac_value *a = fac_optim_lerp(s, grad_avg, g, 1 - alpha);
        fac_update(grad_avg, a);
        v = fac_sub(v, fac_mul(a, a));
    }
    fac_value *d =
        fac_div(g, fac_add(fac_sqrt(v), fac_optim_number(s, fac_optim_or(o->eps, 1e-8))));
    if (o->momentum != 0) {
        fac_value *buffer = fac_optim_state(s, "momentum_buffer", 0);
        d = fac_add(fac_optim_scale(s, buffer, o->momentum), d);
        fac_update(buffer, d);
    }
    return fac_sub(s->p, fac_mul(d, fac_optim_as(s, s->lr)));
}

void fac_rmsprop(fac_value *loss, fac_value *lr, const fac_optim_opts *opts) {
    fac_optim_each(loss, lr, opts, rule);
}
