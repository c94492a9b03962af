/* In mixed precision a step of training begins with its weights in the narrow type: as many small
 * steps as there are weights, each a launch on a device.  They read nothing but parameters, so they
 * become one `group` at the first place that needs one. */
#include <stdio.h>
#include "base/memory.h"
#include "facula/ops.h"
#include "graph/build.h"
#include "op_list.h"
#include "graph/attr.h"
#include "passes/passes.h"

enum { MOST = 1024 };

typedef struct weights {
    const fac_graph *from;
    fac_accept *accept;
    void *self;
    bool tried;
    fac_node *group; /* NULL: no kernel takes it */
} weights;

/* The cast of a parameter that changes from run to run. */
static bool is_cast(const fac_node *n) {
    return FAC_IS(n, cast) && n->in[0]->leaf == FAC_PARAM && n->out[0]->time == FAC_RUN &&
           (n->out[0]->uses || n->out[0]->roots);
}

/* All of them in one node of `to`, in their order. */
static void emit_group(weights *w, fac_graph *to) {
    fac_graph *body = fac_graph_new();
    fac_value *outer[MOST];
    int n = 0;
    w->tried = true;
    for (const fac_node *m = w->from->first; body && m && n < MOST; m = m->next) {
        if (!is_cast(m)) continue;
        char name[24];
        snprintf(name, sizeof name, "x%d", n);
        fac_value *x = fac_input(body, name, m->in[0]->type.dtype, m->in[0]->type.dims);
        snprintf(name, sizeof name, "y%d", n);
        fac_output(body, name, fac_cast(x, m->out[0]->type.dtype));
        outer[n++] = fac_graph_find(to, m->in[0]->name);
    }
    if (n < 2 || body->error.status) {
        fac_graph_free(body);
        return;
    }
    fac_node *group = fac_emit_body(to, &fac_op_group, NULL, n, n, outer, body, NULL)->node;
    if (!group || !w->accept(w->self, group)) return; /* what nothing reads is swept away */
    group->name = "weights";
    w->group = group;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    weights *w = self;
    (void)in;
    if (!is_cast(n)) return false;
    if (!w->tried) emit_group(w, to);
    if (!w->group) return false;
    int k = 0;
    for (const fac_node *m = w->from->first; m != n; m = m->next) k += is_cast(m);
    if (k >= w->group->nout) return false;
    out[0] = w->group->out[k];
    return true;
}

fac_graph *fac_pass_weight_casts(const fac_graph *g, fac_accept *accept, void *self) {
    weights w = { .from = g, .accept = accept, .self = self };
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .self = &w, .visit = visit }, NULL);
    if (to && !to->error.status) fac_graph_sweep(to);
    return to;
}
