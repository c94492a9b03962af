/* From a model to a graph that gives the loss and the number of right answers. */
#include "facula/nn/loss.h"
#include "graph/graph_internal.h"
#include "optim/optim_internal.h"
#include "train/train_internal.h"

/* How many samples have their best score where their label has its largest part. */
static fac_value *soft_hits(fac_value *logits, fac_value *labels) {
    fac_value *right = fac_equal(fac_arg_max(logits, 1, false), fac_arg_max(labels, 1, false));
    return fac_sum(fac_cast(right, FAC_F32), (fac_dims){ 0 }, false);
}

static void drop_outputs(fac_graph *g) {
    for (size_t i = 0; i < g->noutputs; i++) g->outputs[i].value->roots--;
    g->noutputs = 0;
}

/* Labels as an input, of the shape that fits these logits. */
static fac_value *add_labels(fac_graph *g, const fac_value *logits, const fac_label_form *form) {
    const fac_type *y = &logits->type;
    if (form->soft) return fac_input(g, "labels", y->dtype, y->dims);
    if (form->sequences)
        return fac_input(g, "labels", FAC_I64, fac_shape(y->dims.d[0], y->dims.d[1]));
    return fac_input(g, "labels", FAC_I64, fac_shape(y->dims.d[0]));
}

fac_value *fac_train_loss(fac_graph *g, const fac_label_form *form) {
    if (g->error.status) return g->poison;
    if (g->ninputs != 1 || !g->noutputs || !g->outputs[0].value->type.dims.n)
        return fac_fail_graph(
            g, FAC_E_ARGUMENT,
            "a trainer needs a model with one input, samples, and logits as its first output");
    fac_value *logits = g->outputs[0].value;
    const int64_t classes = logits->type.dims.d[logits->type.dims.n - 1];
    if (form->sequences && (form->soft || logits->type.dims.n != 3 || classes < 1))
        return fac_fail_graph(
            g, FAC_E_ARGUMENT,
            "a trainer of sequences needs logits [N,L,classes], and labels that are classes");
    drop_outputs(g);
    fac_value *labels = add_labels(g, logits, form);
    if (form->sequences) {
        logits = fac_reshape(logits, fac_shape(-1, classes));
        labels = fac_reshape(labels, fac_shape(-1));
    }
    fac_value *loss = fac_cross_entropy(
        logits, labels, &(fac_cross_entropy_opts){ .label_smoothing = form->smoothing });
    fac_output(g, "loss", fac_cast(loss, FAC_F32));
    fac_output(g, "correct", form->soft ? soft_hits(logits, labels) : fac_value_other(loss, 2));
    return loss;
}

void fac_train_guard(fac_graph *g, fac_value *loss) {
    fac_value *fine = fac_equal(
        fac_sub(loss, loss), fac_number(g, loss->type.dtype, 0)); /* inf - inf and NaN are not 0 */
    for (size_t i = 0; i < g->nparams && !g->error.status; i++)
        fac_update_where(g->params[i], fine);
}
