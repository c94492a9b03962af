/* One step of gradient descent with momentum, standard or Nesterov's. */
#include <string.h>
#include "ops/training/training.h"

static void rule(const fac_onnx_node *n, const fac_step_of *s, fac_value *to[3]) {
    const double alpha = fac_onnx_real(n, "alpha", 0), beta = fac_onnx_real(n, "beta", 0);
    const char *mode = fac_onnx_text(n, "mode", "standard");
    const bool nesterov = !strcmp(mode, "nesterov");
    fac_value *first = fac_greater(s->step, fac_step_number(s, 0)),
              *keep = fac_step_number(s, alpha);
    fac_value *take = fac_where(first, fac_step_number(s, beta), fac_step_number(s, 1));
    if (!nesterov && strcmp(mode, "standard"))
        fac_fail_graph(fac_value_graph(s->x), FAC_E_FORMAT, "Momentum's mode is \"%s\"", mode);
    to[1] = fac_add(fac_mul(s->m[0], keep), fac_mul(s->g, take));
    fac_value *step = nesterov ? fac_add(s->g, fac_mul(to[1], keep)) : to[1];
    to[0] = fac_sub(s->x, fac_mul(s->rate, step));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_training_load(n, g, in, out, 1, rule);
}

const fac_onnx fac_reads_momentum[] = { { FAC_TRAINING, "Momentum", 1, 0, NULL, load, 2 }, { 0 } };
