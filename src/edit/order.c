/* The nodes of a model in an order that needs less memory. */
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "graph/build.h"
#include "report/report.h"

/* Emits a node behind all that it needs: nodes that are no layers stand where the first layer needs them. */
typedef struct queue { fac_graph *to; fac_value **map; bool *done; } queue;

static void emit(queue *q, const fac_node *n) {
    if (q->done[n->id]) return;
    q->done[n->id] = true;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && n->in[i]->node) emit(q, n->in[i]->node);
    fac_node *last = q->to->last, *own = q->map[n->out[0]->id] ? q->map[n->out[0]->id]->node : NULL;
    if (own && last != own) fac_node_move(own, last);
}

fac_status fac_graph_reordered(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err) {
    fac_analysis *a = NULL;
    double peak;
    FAC_TRY(fac_analyze(g, batch, &a, err));
    int *order = fac_alloc((size_t)a->totals.layers + 1, sizeof *order);
    queue q = { .done = fac_alloc((size_t)a->graph->ids + 1, sizeof *q.done) };
    fac_status status = order && q.done ? fac_analysis_order(a, order, &peak, NULL, err)
                                        : fac_raise(err, FAC_E_NOMEM, "no memory for an order");
    if (!status) q.to = fac_graph_rebuild(a->graph, &(fac_rebuild){ .keep_dead = true }, &q.map);
    if (!status && !q.to) status = fac_raise(err, FAC_E_NOMEM, "no memory for a graph");
    for (int i = 0; i < a->totals.layers && !status; i++) emit(&q, a->nodes[order[i]]);
    for (const fac_node *n = a->graph->first; n && !status; n = n->next) emit(&q, n);
    fac_release(order);
    fac_release(q.done);
    fac_analysis_free(a);
    return status ? status : fac_edit_give(q.to, out, err);
}
