/* Bases of quantizers in training (LQ-Nets): each step moves a basis that is a state towards the
 * best one for the numbers of that step, which are still quantized by the old one:
 *     mean <- 0.9 mean + 0.1 fit_basis(x, basis),  share <- 0.9 share + 0.1,  basis <- mean / share
 * so that the first values of a basis matter to the first step alone.  mean and share are states
 * of the step, as moments of optimizers are. */
#include "base/error.h"
#include "facula/ops.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "train/train_internal.h"

static const double keep = 0.9;

/* A state "<basis>.<name>" full of zeros. */
static fac_value *memory(fac_value *basis, const char *name, fac_dims dims) {
    fac_graph *g = basis->graph;
    fac_text full = { 0 };
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    fac_text_print(&full, "%s.%s", basis->name, name);
    fac_status status = full.failed ? fac_raise_memory(&err, "a name") : FAC_OK;
    if (!status) status = fac_tensor_new(NULL, basis->type.dtype, dims, &t, &err);
    fac_value *v = status ? fac_graph_raise(g, status, "%s: %s", basis->name, err.text)
                          : fac_state(g, full.s, t);
    fac_tensor_free(t);
    fac_text_free(&full);
    return v;
}

static fac_value *moved(fac_value *old, fac_value *towards) {
    fac_graph *g = old->graph;
    const fac_dtype t = old->type.dtype;
    return fac_add(fac_mul(old, fac_number(g, t, keep)),
                   fac_mul(towards, fac_number(g, t, 1 - keep)));
}

bool fac_train_basis(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    if (!FAC_IS(n, quantize_basis) || in[1]->leaf != FAC_STATE || in[1]->next || !in[1]->name)
        return false;
    fac_node_copy(to, n, in, out);
    if (to->error.status) return true;
    fac_value *mean = memory(in[1], "mean", in[1]->type.dims);
    fac_value *share = memory(in[1], "share", (fac_dims){ 0 });
    if (to->error.status) return true;
    fac_value *best = fac_fit_basis(fac_stop(in[0]), in[1], n->attrs);
    fac_value *next = moved(mean, best);
    fac_value *whole = moved(share, fac_number(to, share->type.dtype, 1));
    fac_update(mean, next);
    fac_update(share, whole);
    fac_update(in[1], fac_div(next, whole));
    return true;
}
