/* Both models cut at all pairs: what reads a value that is known in both reads an input instead. */
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "report/verify/local.h"

typedef fac_local_end end;
typedef fac_local local;

typedef struct cutter {
    const local *l;
    bool second;
    int *pair_of;
    fac_value **real;
} cutter;

static fac_value *of(const end *e, bool second) { return second ? e->of.b : e->of.a; }

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    cutter *c = self;
    bool any = false;
    for (int k = 0; k < n->nout; k++) any |= c->pair_of[n->out[k]->id] >= 0;
    if (!any) return false;
    fac_node_copy(to, n, in, out);
    for (int k = 0; k < n->nout && !to->error.status; k++) {
        char name[64];
        const int pair = c->pair_of[n->out[k]->id];
        if (pair < 0) continue;
        c->real[pair] = out[k];
        snprintf(name, sizeof name, "%s%d", FAC_LOCAL_CUT, pair);
        fac_value *given =
            fac_input(to, name, c->l->ends[pair].of.a->type.dtype, out[k]->type.dims);
        out[k] =
            out[k]->type.dtype == given->type.dtype ? given : fac_cast(given, out[k]->type.dtype);
    }
    return true;
}

/* The graph cut at all pairs; output k is what ends there. */
static fac_graph *cut_graph(const local *l, bool second) {
    const fac_graph *g = second ? l->t->b.graph : l->t->a.graph;
    cutter c = { l, second, fac_alloc((size_t)g->ids + 1, sizeof *c.pair_of),
                 fac_alloc(l->n + 1, sizeof *c.real) };
    fac_value **map = NULL;
    fac_graph *to = NULL;
    if (c.pair_of && c.real) {
        for (uint32_t k = 0; k <= g->ids; k++) c.pair_of[k] = -1;
        for (size_t k = 0; k < l->n; k++)
            if (l->ends[k].cut) c.pair_of[of(&l->ends[k], second)->id] = (int)k;
        to = fac_graph_rebuild(g, &(fac_rebuild){ .self = &c, .visit = visit, .keep_dead = true },
                               &map);
    }
    if (to) fac_forget_outputs(to);
    for (size_t k = 0; to && k < l->n && !to->error.status; k++) {
        char name[32];
        const int pair = c.pair_of[of(&l->ends[k], second)->id];
        snprintf(name, sizeof name, "end.%zu", k);
        fac_output(to, name, pair >= 0 ? c.real[pair] : map[of(&l->ends[k], second)->id]);
    }
    fac_release(c.pair_of);
    fac_release(c.real);
    return to;
}

fac_status fac_local_cut(local *l) {
    for (int i = 0; i < 2; i++) {
        l->cut[i] = cut_graph(l, i == 1);
        if (!l->cut[i]) return fac_raise_memory(l->t->err, "segments");
        FAC_TRY(fac_graph_check(l->cut[i], l->t->err));
        l->end_of[i] = fac_alloc(l->n + 1, sizeof *l->end_of[i]);
        if (!l->end_of[i]) return fac_raise_memory(l->t->err, "segments");
        for (size_t k = 0; k < l->n; k++) l->end_of[i][k] = l->cut[i]->outputs[k].value;
    }
    return FAC_OK;
}

/* A copy of what ends first..last need, and of nothing else. */
fac_graph *fac_local_part(local *l, size_t first, size_t last, bool second) {
    fac_graph *g = l->cut[second];
    fac_forget_outputs(g);
    for (size_t k = first; k < last; k++) {
        char name[32];
        snprintf(name, sizeof name, "end.%zu", k);
        fac_output(g, name, l->end_of[second][k]);
    }
    return g->error.status ? NULL : fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL);
}
