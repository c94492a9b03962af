/* From a model to a graph that gives the loss and the number of right answers. */
#include "facula/loss.h"
#include "graph/graph_internal.h"
#include "optim/optim_internal.h"
#include "train/train_internal.h"

/* How many samples have their best score where their label has its largest part. */
static fac_value *soft_hits(fac_value *logits, fac_value *labels) {
    fac_value *right = fac_equal(fac_arg_max(logits, 1, false), fac_arg_max(labels, 1, false));
    return fac_sum(fac_cast(right, FAC_F32), (fac_dims){ 0 }, false);
}

fac_value *fac_train_loss(fac_graph *g, double smoothing, bool soft) {
    if (g->error.status) return g->poison;
    if (g->ninputs != 1 || !g->noutputs || !g->outputs[0].value->type.dims.n)
        return fac_fail_graph(g, FAC_E_ARGUMENT,
                              "a trainer needs a model with one input, samples, and logits as its first output");
    fac_value *logits = g->outputs[0].value;
    for (size_t i = 0; i < g->noutputs; i++) g->outputs[i].value->roots--;
    g->noutputs = 0;
    const fac_type type = soft ? logits->type : (fac_type){ FAC_I64, fac_shape(logits->type.dims.d[0]) };
    fac_value *labels = fac_input(g, "labels", type.dtype, type.dims);
    fac_value *loss = fac_cross_entropy(logits, labels, &(fac_cross_entropy_opts){ .label_smoothing = smoothing });
    fac_output(g, "loss", fac_cast(loss, FAC_F32));
    fac_output(g, "correct", soft ? soft_hits(logits, labels) : fac_value_other(loss, 2));
    return loss;
}

void fac_train_guard(fac_graph *g, fac_value *loss) {
    fac_value *fine = fac_equal(fac_sub(loss, loss), fac_number(g, loss->type.dtype, 0));      /* inf - inf and NaN are not 0 */
    for (size_t i = 0; i < g->nparams && !g->error.status; i++) fac_update_where(g->params[i], fine);
}
