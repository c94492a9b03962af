/* Adam (Kingma & Ba 2015, https://arxiv.org/abs/1412.6980), as torch.optim.Adam; t counts steps
 * from 1:
 *   g <- g + weight_decay p
 *   m <- m + (1 - beta1) (g - m);   v <- beta2 v + (1 - beta2) g^2
 *   p <- p - lr / (1 - beta1^t)  m / (sqrt(v) / sqrt(1 - beta2^t) + eps) */
#include "optim/optim_internal.h"

/* 1 - beta^t, an f64 scalar */
static fac_value *correction(const fac_step_of *s, double beta) {
    return fac_sub(fac_optim_f64(s, 1), fac_pow(fac_optim_f64(s, beta), s->walk->step));
}

fac_value *fac_adam_step(const fac_step_of *s, fac_value *p, fac_value *g) {
    const fac_optim_opts *o = &s->walk->opts;
    double beta1 = fac_optim_or(o->beta1, 0.9), beta2 = fac_optim_or(o->beta2, 0.999);
    fac_value *avg = fac_optim_state(s, "exp_avg", 0),
              *avg_sq = fac_optim_state(s, "exp_avg_sq", 0);
    fac_value *m = fac_optim_lerp(s, avg, g, 1 - beta1);
    fac_value *v =
        fac_add(fac_optim_scale(s, avg_sq, beta2), fac_optim_scale(s, fac_mul(g, g), 1 - beta2));
    fac_update(avg, m);
    fac_update(avg_sq, v);
    fac_value *rate = fac_optim_as(s, fac_div(s->lr, correction(s, beta1)));
    /* a product for each element instead of a second division */
    fac_value *inverse =
        fac_optim_as(s, fac_div(fac_optim_f64(s, 1), fac_sqrt(correction(s, beta2))));
    fac_value *scale =
        fac_add(fac_mul(fac_sqrt(v), inverse), fac_optim_number(s, fac_optim_or(o->eps, 1e-8)));
    return fac_sub(p, fac_mul(rate, fac_div(m, scale)));
}

static fac_value *rule(const fac_step_of *s) {
    return fac_adam_step(s, s->p, fac_optim_decayed(s));
}

void fac_adam(fac_value *loss, fac_value *lr, const fac_optim_opts *opts) {
    fac_optim_each(loss, lr, opts, rule);
}
