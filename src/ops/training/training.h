/* ai.onnx.preview.training: one step of an optimizer as ordinary ops.  Inputs are the rate R, the
 * step's number T, and then all parameters X, all their gradients G, and for each moment all of its
 * tensors; outputs the new X and moments. */
#ifndef FACULA_OPS_TRAINING_H
#define FACULA_OPS_TRAINING_H
#include "facula/op.h"
#include "facula/ops.h"

#define FAC_TRAINING "ai.onnx.preview.training"

/* One parameter's x, gradient and moments. */
typedef struct fac_step_of {
    fac_value *rate, *step, *x, *g, *m[2];
} fac_step_of;
/* Gives the new x and moments: to[0], to[1].. */
typedef void fac_step_rule(const fac_onnx_node *n, const fac_step_of *s, fac_value *to[3]);

/* Calls the rule for each parameter; the gradient it gets has norm_coefficient x added. */
void fac_training_load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                       fac_value *out[], int moments, fac_step_rule *rule);
static inline fac_value *fac_step_number(const fac_step_of *s, double x) {
    return fac_number(fac_value_graph(s->x), s->x->type.dtype, x);
}
#endif
