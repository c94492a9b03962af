/* fac_nn_dropout, fac_nn_mask_spectrum: what is drawn anew in each step, and the counter that all
 * of it in a graph shares. */
#include "base/rng.h"
#include "nn/nn_internal.h"

static const char name[] = "dropout.counter";

/* It goes up by one in each step.  Different seeds begin far apart, so that their trainings never
 * meet. */
static fac_value *new_counter(fac_graph *g) {
    const int64_t first =
        (int64_t)(fac_random_bits(g->seed, fac_hash_text(fac_hash_start(0), name).a, 0) >> 2);
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    if (fac_tensor_new(NULL, FAC_I64, (fac_dims){ 0 }, &t, &err) ||
        fac_tensor_write(t, &first, sizeof first, &err)) {
        fac_tensor_free(t);
        return fac_graph_raise(g, err.status, "%s: %s", name, err.text);
    }
    fac_value *counter = fac_state(g, name, t);
    fac_tensor_free(t);
    fac_update(counter, fac_add(counter, fac_number(g, FAC_I64, 1)));
    return counter;
}

static fac_value *counter_of(fac_graph *g) {
    fac_value *counter = fac_graph_find(g, name);
    return counter ? counter : new_counter(g);
}

fac_value *fac_nn_dropout(fac_value *x, double ratio) {
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    if (!(ratio >= 0 && ratio < 1))
        return fac_fail_graph(g, FAC_E_ARGUMENT, "dropout of %g; it must be in 0..1", ratio);
    if (ratio == 0) return x;
    return fac_dropout_train(x, ratio, counter_of(g));
}

fac_value *fac_nn_mask_spectrum(fac_value *x, double time, double bands) {
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    if (time == 0 && bands == 0) return x;
    return fac_mask_spectrum_train(x, time, bands, counter_of(g));
}
