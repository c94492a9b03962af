/* Weights that a scheme leaves as floats, as bytes: see facula/quantize.h.  What fac_packed_save
 * makes bits of is recognized as it recognizes it. */
#include "base/error.h"
#include "op_list.h"
#include "quantize/leveled.h"
#include "quantize/quantize.h"
#include "train/train_internal.h"

typedef struct work {
    int changed;
    fac_error wrong;
} work;

static bool weighs(const fac_use *u, const fac_value *v) {
    const fac_node *n = u->node;
    return u->input == 1 && n->nin <= 3 && n->in[1] == v && fac_is_weighted(n);
}

/* Planes of bits are made of the numbers that a quantizer reads, and not of bytes for them. */
static bool is_quantizer(const fac_node *n) {
    fac_leveled of;
    return FAC_IS(n, quantize_basis) || FAC_IS(n, binarize) || fac_leveled_of(n, &of);
}

/* A weight of layers.  What else reads it reads its bytes as well, as an embedding does that the
 * last layer shares. */
static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    work *k = self;
    const fac_node *layer = NULL;
    int layers = 0;
    if (to->error.status || k->wrong.status || !v->tensor) return NULL;
    for (const fac_use *u = v->uses; u; u = u->next) {
        if (is_quantizer(u->node)) return NULL;
        if (!weighs(u, v)) continue;
        layer = u->node; /* the first one: uses are newest first */
        layers++;
    }
    if (!layers) return NULL;
    fac_value *w = fac_byte_weight(layer, to, v->name ? v->name : "weight", NULL, &k->wrong);
    if (w) k->changed += layers;
    return w;
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
    fac_graph *g = fac_graph_rebuild(known, &(fac_rebuild){ .self = &k, .leaf = leaf }, NULL);
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
