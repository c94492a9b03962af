/* The training form of a graph: bases of quantizers are learned (see basis_form.c), and its batch
 * norms take the statistics of the batch, and update their running ones as torch does:
 *   running <- 0.9 running + 0.1 of the batch, the variance of the batch being the unbiased one,
 *       divided by count - 1.
 * The op's own outputs are biased, so that part of the update is scaled by count / (count - 1). */
#include "facula/ops.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "ops/batch_norm.h"
#include "train/train_internal.h"

static const double keep = 0.9; /* torch calls 0.1 the momentum */
enum { MEAN = 3, VAR = 4, INPUTS = 5 };

static bool is_batch_norm(const fac_node *n) { return FAC_IS(n, batch_norm); }

/* An importer takes running statistics for parameters that train; they are states. */
static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    (void)self;
    if (v->leaf != FAC_PARAM) return NULL;
    for (const fac_use *u = v->uses; u; u = u->next)
        if (is_batch_norm(u->node) && u->input >= MEAN) return fac_state(to, v->name, v->tensor);
    return NULL;
}

/* The update of the variance: running + (biased update - keep running) count / (count - 1) with its
 * own share. */
static fac_value *unbiased(fac_value *x, fac_value *old, fac_value *biased) {
    fac_graph *g = x->graph;
    fac_dtype dtype = old->type.dtype;
    fac_value *one = fac_number(g, FAC_F64, 1);
    fac_value *count =
        fac_div(fac_cast(fac_size_of(x), FAC_F64), fac_cast(fac_size_of(old), FAC_F64));
    fac_value *scale = fac_cast(fac_div(count, fac_max(fac_sub(count, one), one)), dtype);
    fac_value *kept = fac_mul(old, fac_number(g, dtype, keep));
    return fac_add(kept, fac_mul(fac_sub(biased, kept), scale));
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    if (fac_train_basis(to, n, in, out)) return true;
    if (!is_batch_norm(n) || n->nin != INPUTS || in[MEAN]->leaf != FAC_STATE ||
        in[VAR]->leaf != FAC_STATE)
        return false;
    fac_batch_norm_attrs how = *(const fac_batch_norm_attrs *)n->attrs;
    if (how.training) return false;
    how.training = true;
    how.momentum = keep;
    fac_value *y = fac_emit(n->op, &how, INPUTS, in);
    out[0] = y;
    if (to->error.status) return true;
    fac_update(in[MEAN], fac_value_other(y, 1));
    fac_update(in[VAR], unbiased(in[0], in[VAR], fac_value_other(y, 2)));
    return true;
}

fac_graph *fac_graph_training(const fac_graph *model) {
    return fac_graph_rebuild(
        model, &(fac_rebuild){ .visit = visit, .blind = true, .leaf = leaf, .keep_dead = true },
        NULL);
}
