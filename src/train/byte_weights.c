/* Weights that a scheme leaves as floats, as bytes: see facula/quantize.h.  What fac_packed_save
 * makes bits of is recognized as it recognizes it. */
#include "base/error.h"
#include "op_list.h"
#include "quantize/quantize.h"
#include "train/train_internal.h"

typedef struct work {
    int changed;
    fac_error wrong;
} work;

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    work *k = self;
    if (to->error.status || k->wrong.status || n->nin > 3) return false;
    if (!fac_is_weighted(n) || !n->in[1]->tensor) return false; /* or a quantizer's */
    if (!fac_used_once(n->in[1])) return false;
    const char *name = n->in[1]->name ? n->in[1]->name : "weight";
    fac_value *w = fac_byte_weight(n, to, name, NULL, &k->wrong);
    if (!w) return false;
    fac_value *with[3] = { in[0], w, n->nin > 2 ? in[2] : NULL };
    fac_node_copy(to, n, with, out);
    k->changed++;
    return true;
}

fac_status fac_graph_byte_weights(const fac_graph *model, int *changed, fac_graph **out,
                                  fac_error *err) {
    work k = { 0 };
    FAC_TRY(fac_graph_usable(model, "fac_graph_byte_weights", err));
    fac_graph *quiet = fac_graph_inference(model), *known = NULL;
    if (!quiet) return fac_raise_memory(err, "a copy of the model");
    const fac_status recognized = fac_train_recognize(quiet, &known, err);
    fac_graph_free(quiet);
    if (recognized) return recognized;
    fac_graph *g = fac_graph_rebuild(known, &(fac_rebuild){ .self = &k, .visit = visit }, NULL);
    fac_graph_free(known);
    fac_status status = g ? fac_graph_check(g, err) : fac_raise_memory(err, "a copy of the model");
    if (!status && k.wrong.status) status = fac_raise(err, k.wrong.status, "%s", k.wrong.text);
    if (status) {
        fac_graph_free(g);
        return status;
    }
    fac_graph_sweep(g);
    if (changed) *changed = k.changed;
    *out = g;
    return FAC_OK;
}
