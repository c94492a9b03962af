/* Whether numbers of a run outgrew their type: a node gave an infinite number, or none at all, of
 * finite ones, by adding, multiplying or growing (FAC_OP_RING, FAC_OP_GROWS).  Two ways of writing
 * one function overflow at other places: log(1 + exp(1000)) is infinite, softplus(1000) is 1000. So
 * what differs there is no difference of the functions.  Poles are none of these: 1 / 0 is infinite
 * in all ways.  Where no number can become so large (magnitude.c), nothing runs. */
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "report/verify/verify.h"

/* The nodes of g that are watched: number k is not 0 where what node k gave outgrew its type. */
typedef struct watch {
    const fac_graph *g;
    const fac_node **node;
    size_t n;
} watch;

static bool is_watched(const fac_node *n) {
    return n->op->is & (FAC_OP_RING | FAC_OP_GROWS) && fac_is_float(n->out[0]) &&
           n->out[0]->time == FAC_RUN && fac_dims_count(&n->out[0]->type.dims) != 0;
}

static bool find(watch *w) {
    w->node = fac_alloc((size_t)w->g->nodes + 1, sizeof *w->node);
    for (const fac_node *n = w->g->first; n && w->node; n = n->next)
        if (is_watched(n)) w->node[w->n++] = n;
    return w->node != NULL;
}

/* 0 where v is finite, else no number. */
static fac_value *nothing(fac_value *v) { return fac_sub(v, v); }

static fac_value *all_of(fac_value *v) { return fac_sum(v, (fac_dims){ 0 }, false); }

/* 1 where the result is not finite and its operands are, element by element where the op goes by
 * elements, else of the whole tensors. */
static fac_value *outgrew(const fac_node *n, fac_value *const map[]) {
    const bool each = n->op->map != NULL;
    fac_value *y = nothing(map[n->out[0]->id]), *x = NULL;
    if (!each) y = all_of(y);
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i] || !fac_is_float(n->in[i])) continue;
        fac_value *one = nothing(map[n->in[i]->id]);
        if (!each) one = all_of(one);
        x = x ? fac_add(x, one) : one;
    }
    fac_value *grown = fac_isnan(y);
    if (x) grown = fac_and(grown, fac_not(fac_isnan(x)));
    grown = fac_reduce_max(fac_cast(grown, FAC_F32), (fac_dims){ 0 }, false);
    return fac_reshape(grown, fac_shape(1));
}

/* A graph that gives these numbers alone. */
static fac_graph *watched(const watch *w) {
    fac_value **map = NULL;
    fac_value **parts = fac_alloc(w->n + 1, sizeof *parts);
    fac_graph *to = fac_graph_rebuild(w->g, &(fac_rebuild){ .keep_dead = true }, &map);
    if (to && !parts) fac_graph_raise(to, FAC_E_NOMEM, "no memory to look at numbers");
    for (size_t k = 0; to && k < w->n && !to->error.status; k++)
        parts[k] = outgrew(w->node[k], map);
    if (to && !to->error.status) {
        fac_forget_outputs(to);
        fac_output(to, "outgrown", fac_concat(parts, (int)w->n, 0));
        fac_graph_sweep(to);
    }
    fac_release(parts);
    return to;
}

static fac_status look(const fac_trial *t, const watch *w, char *what, size_t size) {
    fac_tensor *out[1] = { NULL };
    fac_graph *g = watched(w);
    double *x = fac_alloc(w->n + 1, sizeof *x);
    fac_status status = g && x ? fac_graph_check(g, t->err)
                               : fac_raise(t->err, FAC_E_NOMEM, "no memory to look at numbers");
    if (!status) status = fac_trial_once(t, g, out);
    if (!status) fac_tensor_doubles(out[0], 0, (int64_t)w->n, x);
    for (size_t k = 0; !status && k < w->n && !*what; k++)
        if (x[k] != 0) fac_node_label(w->node[k], what, size);
    fac_drop_tensors(out, 1);
    fac_graph_free(g);
    fac_release(x);
    return status;
}

fac_status fac_find_overflow(const fac_trial *t, const fac_graph *g, char *what, size_t size) {
    watch w = { .g = g };
    bool finite = false;
    *what = 0;
    FAC_TRY(fac_stays_finite(t, g, &finite));
    if (finite) return FAC_OK;
    fac_status status = !find(&w) ? fac_raise(t->err, FAC_E_NOMEM, "no memory to look at numbers")
                        : w.n     ? look(t, &w, what, size)
                                  : FAC_OK;
    fac_release(w.node);
    return status;
}
