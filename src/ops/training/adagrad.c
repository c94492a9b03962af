/* One step of AdaGrad.  Source: Duchi, Hazan, Singer, JMLR 12 (2011), with ONNX's decay of the
 * rate. */
#include "ops/training/training.h"

static void rule(const fac_onnx_node *n, const fac_step_of *s, fac_value *to[3]) {
    const double decay = fac_onnx_real(n, "decay_factor", 0),
                 epsilon = fac_onnx_real(n, "epsilon", 1e-6);
    fac_value *rate = fac_div(
        s->rate, fac_add(fac_mul(s->step, fac_step_number(s, decay)), fac_step_number(s, 1)));
    to[1] = fac_add(s->m[0], fac_mul(s->g, s->g));
    to[0] = fac_sub(
        s->x, fac_div(fac_mul(rate, s->g), fac_add(fac_sqrt(to[1]), fac_step_number(s, epsilon))));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_training_load(n, g, in, out, 1, rule);
}

const fac_onnx fac_reads_adagrad[] = { { FAC_TRAINING, "Adagrad", 1, 0, NULL, load, 2 }, { 0 } };
