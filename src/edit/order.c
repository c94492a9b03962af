/* The nodes of a model in an order that needs less memory. */
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "graph/build.h"
#include "report/cost/report.h"

/* Emits a node after all that it needs: nodes that are no layers stand where the first layer needs
 * them.  of: the node of `to` for each node of the analysis, by id. */
typedef struct queue {
    fac_graph *to;
    fac_node **of;
    bool *done;
} queue;

static void emit(queue *q, const fac_node *n) {
    if (q->done[n->id]) return;
    q->done[n->id] = true;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && n->in[i]->node) emit(q, n->in[i]->node);
    fac_node *last = q->to->last, *own = q->of[n->id];
    if (own && last != own) fac_node_move(own, last);
}

static int inputs_open(const fac_graph *g) {
    int open = 0;
    for (size_t i = 0; i < g->ninputs; i++)
        for (int k = 0; k < g->inputs[i]->type.dims.n; k++)
            open += g->inputs[i]->type.dims.d[k] < 0;
    return open;
}

/* The analysis has numbers for open sizes, and bodies that it could write out; the model keeps
 * both. What is left of each without dead nodes is in the same order. */
static fac_status pair(queue *q, const fac_graph *g, const fac_graph *sized, fac_error *err) {
    q->to = fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL);
    if (q->to && !q->to->error.status && q->to->nodes != sized->nodes && !inputs_open(g)) {
        fac_graph_free(q->to);
        q->to = fac_graph_rebuild(sized, &(fac_rebuild){ .keep_dead = true }, NULL);
    }
    FAC_TRY(q->to ? fac_graph_check(q->to, err) : fac_raise_memory(err, "a graph"));
    if (q->to->nodes != sized->nodes)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "an order of nodes with bodies is found for given sizes only");
    fac_node *own = q->to->first;
    for (const fac_node *n = sized->first; n; n = n->next, own = own->next) q->of[n->id] = own;
    return FAC_OK;
}

fac_status fac_graph_reordered(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err) {
    fac_analysis *a = NULL;
    double peak;
    FAC_TRY(fac_analyze(g, batch, &a, err));
    int *order = fac_alloc((size_t)a->totals.layers + 1, sizeof *order);
    const size_t ids = (size_t)a->graph->ids + 1;
    queue q = { .of = fac_alloc(ids, sizeof *q.of), .done = fac_alloc(ids, sizeof *q.done) };
    fac_status status = order && q.done && q.of ? fac_analysis_order(a, order, &peak, NULL, err)
                                                : fac_raise_memory(err, "an order");
    if (!status) status = pair(&q, g, a->graph, err);
    for (int i = 0; i < a->totals.layers && !status; i++) emit(&q, a->nodes[order[i]]);
    for (const fac_node *n = a->graph->first; n && !status; n = n->next) emit(&q, n);
    fac_release(order);
    fac_release(q.of);
    fac_release(q.done);
    fac_analysis_free(a);
    if (status) fac_graph_free(q.to);
    return status ? status : fac_edit_give(q.to, out, err);
}
