/* One step of Adam.  Source: Kingma, Ba, arXiv 1412.6980, in ONNX's form: the rate is corrected,
 * not the moments, and only after the first step. */
#include "ops/training/training.h"

static fac_value *corrected(const fac_step_of *s, double alpha, double beta) {
    fac_value *one = fac_step_number(s, 1);
    fac_value *up = fac_sqrt(fac_sub(one, fac_pow(fac_step_number(s, beta), s->step)));
    fac_value *rate =
        fac_div(fac_mul(s->rate, up), fac_sub(one, fac_pow(fac_step_number(s, alpha), s->step)));
    return fac_where(fac_greater(s->step, fac_step_number(s, 0)), rate, s->rate);
}

static fac_value *average(const fac_step_of *s, fac_value *old, fac_value *x, double keep) {
    return fac_add(fac_mul(old, fac_step_number(s, keep)),
                   fac_mul(x, fac_step_number(s, 1 - keep)));
}

static void rule(const fac_onnx_node *n, const fac_step_of *s, fac_value *to[3]) {
    const double alpha = fac_onnx_real(n, "alpha", 0.9), beta = fac_onnx_real(n, "beta", 0.999);
    const double epsilon = fac_onnx_real(n, "epsilon", 1e-6),
                 after = fac_onnx_real(n, "norm_coefficient_post", 0);
    to[1] = average(s, s->m[0], s->g, alpha);
    to[2] = average(s, s->m[1], fac_mul(s->g, s->g), beta);
    fac_value *step = fac_div(fac_mul(corrected(s, alpha, beta), to[1]),
                              fac_add(fac_sqrt(to[2]), fac_step_number(s, epsilon)));
    to[0] = fac_mul(fac_sub(s->x, step), fac_step_number(s, 1 - after));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_training_load(n, g, in, out, 2, rule);
}

const fac_onnx fac_reads_adam[] = { { FAC_TRAINING, "Adam", 1, 0, NULL, load, 2 }, { 0 } };
