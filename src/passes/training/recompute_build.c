/* Recomputing: what the forward part of a graph is, and the graph in which parts of it are made
 * again.  See recompute.h. */
#include <string.h>
#include "base/memory.h"
#include "op_list.h"
#include "ops/families.h"
#include "passes/training/recompute.h"

/* ---- what is forward ---- */

static bool runs(const fac_node *n) { return n->out[0]->time == FAC_RUN; }

/* Unknown sizes count as 1; more than fits in memory is no size either. */
static size_t bytes_of(const fac_type *t) {
    fac_type known = *t;
    for (int k = 0; k < known.dims.n; k++)
        if (known.dims.d[k] < 0) known.dims.d[k] = 1;
    size_t bytes = fac_type_bytes(&known);
    return bytes == SIZE_MAX ? 0 : bytes;
}

bool fac_forward_heavy(const fac_node *n, double *macs) {
    static const fac_op *const products[] = { &fac_op_matmul, &fac_op_linear, &fac_op_gemm,
                                              &fac_op_attention, NULL };
    fac_cost c = { 0 };
    if (n->op->cost) n->op->cost(n, &c);
    *macs = c.macs;
    return c.macs > 0 || fac_op_convolves(n->op) ||
           fac_op_is_one_of(n->op, products); /* with sizes still unknown */
}

static const fac_value *base_of(const fac_value *const *base, const fac_node *n,
                                const fac_value *out) {
    return n->op->view && !n->body[0] && n->nin && n->in[0] && n->in[0]->node ? base[n->in[0]->id]
                                                                              : out;
}

/* by id of a node: outputs need it */
static void find_forward(const fac_graph *g, bool *needed) {
    for (size_t i = 0; i < g->noutputs; i++)
        if (g->outputs[i].value->node) needed[g->outputs[i].value->node->id] = true;
    for (const fac_node *n = g->last; n; n = n->prev)
        for (int i = 0; i < n->nin && needed[n->id]; i++)
            if (n->in[i] && n->in[i]->node) needed[n->in[i]->node->id] = true;
}

bool fac_forward_new(const fac_graph *g, fac_forward *f) {
    const size_t ids = (size_t)g->ids + 1;
    bool *needed = fac_alloc(ids, sizeof *needed);
    *f = (fac_forward){ .g = g };
    f->nodes = fac_alloc((size_t)g->nodes + 1, sizeof *f->nodes);
    f->place = fac_alloc(ids, sizeof *f->place);
    f->base = fac_alloc(ids, sizeof *f->base);
    f->bytes = fac_alloc(ids, sizeof *f->bytes);
    f->reader = fac_alloc(ids, sizeof *f->reader);
    f->saved = fac_alloc(ids, sizeof *f->saved);
    bool ok = needed && f->nodes && f->place && f->base && f->bytes && f->reader && f->saved;
    if (ok) find_forward(g, needed);
    for (const fac_node *n = g->first; n && ok; n = n->next) {
        const bool forward = needed[n->id] && runs(n) &&
                             !(n->op->is & (FAC_OP_BARRIER | FAC_OP_DYNAMIC)) && !n->stage;
        if (forward) {
            f->nodes[f->n] = n;
            f->place[n->id] = ++f->n;
        }
        for (int k = 0; k < n->nout; k++) {
            const fac_value *v = n->out[k], *b = f->base[v->id] = base_of(f->base, n, v);
            f->reader[v->id] = -1;
            if (b == v && (k == 0 || v->uses || v->roots)) f->bytes[v->id] = bytes_of(&v->type);
            if (v->roots) f->saved[b->id] = true; /* an output: there is nothing to drop */
        }
        for (int i = 0; i < n->nin; i++) {
            if (!n->in[i] || !n->in[i]->node || (fac_port_flags(n, i) & FAC_SHAPE_ONLY)) continue;
            const fac_value *b = f->base[n->in[i]->id];
            if (forward)
                f->reader[b->id] = f->place[n->id] - 1;
            else if (runs(n))
                f->saved[b->id] = true;
        }
    }
    fac_release(needed);
    return ok;
}

void fac_forward_free(fac_forward *f) {
    fac_release(f->nodes);
    fac_release(f->place);
    fac_release(f->base);
    fac_release(f->bytes);
    fac_release(f->reader);
    fac_release(f->saved);
}

/* ---- making it again ---- */

typedef struct again {
    const fac_forward *f;
    const bool *keep;
    fac_value **now,
        **late; /* by id of a value of the old graph: in the new one, and its copy there */
    const fac_node **stack; /* nodes that wait for their inputs */
    fac_value **in, **out;  /* of the node at hand */
    fac_recompute_stat stat;
} again;

static bool dropped(const again *a, const fac_value *v) {
    return fac_forward_makes(a->f, v) && !v->roots && !a->keep[a->f->base[v->id]->id];
}

/* Copies of what makes v, as far as they are not there.  A node is done when all that it needs is.
 */
static void make(again *a, fac_graph *to, const fac_value *v) {
    int n = 0;
    if (a->late[v->id]) return;
    a->stack[n++] = v->node;
    while (n && !to->error.status) {
        const fac_node *m = a->stack[n - 1];
        const int before = n;
        for (int i = 0; i < m->nin && n == before; i++)
            if (dropped(a, m->in[i]) && !a->late[m->in[i]->id]) a->stack[n++] = m->in[i]->node;
        if (n > before) continue;
        n--;
        if (a->late[m->out[0]->id]) continue;
        fac_node copy = *m;
        double macs;
        copy.stage = FAC_STAGE_AGAIN;
        for (int i = 0; i < m->nin; i++)
            a->in[i] = !m->in[i]              ? NULL
                       : dropped(a, m->in[i]) ? a->late[m->in[i]->id]
                                              : a->now[m->in[i]->id];
        fac_node_copy(to, &copy, a->in, a->out);
        for (int k = 0; k < m->nout; k++) a->late[m->out[k]->id] = a->out[k];
        fac_forward_heavy(m, &macs);
        a->stat.macs += macs;
        a->stat.nodes++;
    }
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    again *a = self;
    const bool forward = a->f->place[n->id] != 0;
    bool any = false;
    for (int i = 0; i < n->nin; i++) {
        if (n->in[i]) a->now[n->in[i]->id] = in[i];
        any |=
            !forward && runs(n) && dropped(a, n->in[i]) && !(fac_port_flags(n, i) & FAC_SHAPE_ONLY);
    }
    if (!any) return false;
    for (int i = 0; i < n->nin; i++)
        if (dropped(a, n->in[i]) && !(fac_port_flags(n, i) & FAC_SHAPE_ONLY)) make(a, to, n->in[i]);
    for (int i = 0; i < n->nin; i++)
        a->in[i] = dropped(a, n->in[i]) && !(fac_port_flags(n, i) & FAC_SHAPE_ONLY)
                       ? a->late[n->in[i]->id]
                       : in[i];
    to->stage = n->stage;
    fac_node_copy(to, n, a->in, out);
    return true;
}

fac_graph *fac_recompute_build(const fac_forward *f, const bool *keep, fac_recompute_stat *stat) {
    const fac_graph *g = f->g;
    size_t most = 1;
    for (const fac_node *n = g->first; n; n = n->next) {
        if ((size_t)n->nin > most) most = (size_t)n->nin;
        if ((size_t)n->nout > most) most = (size_t)n->nout;
    }
    again a = { .f = f, .keep = keep };
    a.now = fac_alloc((size_t)g->ids + 1, sizeof *a.now);
    a.late = fac_alloc((size_t)g->ids + 1, sizeof *a.late);
    a.stack = fac_alloc((size_t)g->nodes + 1, sizeof *a.stack);
    a.in = fac_alloc(2 * most, sizeof *a.in);
    a.out = a.in + most;
    fac_graph *to = NULL;
    if (a.now && a.late && a.stack && a.in)
        to = fac_graph_rebuild(g, &(fac_rebuild){ .self = &a, .visit = visit }, NULL);
    fac_release(a.now);
    fac_release(a.late);
    fac_release(a.stack);
    fac_release(a.in);
    if (to) {
        stat->macs = a.stat.macs;
        stat->nodes = a.stat.nodes;
    }
    return to;
}

/* ---- what is alive ---- */

size_t fac_recompute_peak(const fac_graph *g) {
    fac_forward f;
    size_t peak = SIZE_MAX;
    int *from = NULL, *last = NULL; /* by id of a base: numbers of nodes */
    int64_t *change = NULL;         /* by number of a node, of the bytes that are alive */
    if (fac_forward_new(g, &f)) {
        from = fac_alloc((size_t)g->ids + 1, sizeof *from);
        last = fac_alloc((size_t)g->ids + 1, sizeof *last);
        change = fac_alloc((size_t)g->nodes + 2, sizeof *change);
    }
    if (from && last && change) {
        int at = 0;
        for (const fac_node *n = g->first; n; n = n->next, at++) {
            for (int k = 0; k < n->nout; k++)
                if (f.base[n->out[k]->id] == n->out[k])
                    from[n->out[k]->id] = last[n->out[k]->id] = at;
            for (int i = 0; i < n->nin; i++)
                if (n->in[i] && n->in[i]->node && !(fac_port_flags(n, i) & FAC_SHAPE_ONLY))
                    last[f.base[n->in[i]->id]->id] = at;
        }
        for (const fac_node *n = g->first; n; n = n->next)
            for (int k = 0; k < n->nout; k++) {
                const fac_value *v = n->out[k];
                if (f.base[v->id] != v || !runs(n) || !(f.place[n->id] || n->stage)) continue;
                change[from[v->id]] += (int64_t)f.bytes[v->id];
                change[last[v->id] + 1] -= (int64_t)f.bytes[v->id];
            }
        int64_t alive = 0, most = 0;
        for (int i = 0; i < at; i++)
            if ((alive += change[i]) > most) most = alive;
        peak = (size_t)most;
    }
    fac_forward_free(&f);
    fac_release(from);
    fac_release(last);
    fac_release(change);
    return peak;
}
