/* What becomes of the parameters, in few steps.
 *
 * The tail of a graph is every elementwise node whose results serve nothing but updates and other
 * nodes of the tail: the rules of an optimizer, its scalars, clipping, the choice between new and
 * old contents.
 *   Parts      Nodes of the tail of one shape that pass a value of that shape on to each other, or
 *              read the same parameter or state of that shape, become one `fused` node with several
 *              results: Adam reads p, g, m, v and writes p, m, v in one pass over memory.
 *   Products   A large gradient that is a matrix product, and which only its part reads, becomes
 *              the beginning of the part, one `fused_matmul` node: it is used up tile by tile and
 *              never stored.
 *   Groups     Other independent parts become one `group`: all parameters are updated in one
 *              parallel region.
 * Values only ever grow along elementwise nodes, so parts of one shape never feed each other
 * through another shape, and the parts have levels: those of the scalars come before those that
 * read them.
 *   Places     A group stands where all that it reads is there and all other readers of the
 *              parameters that it changes have run: then it may write over them, and gradients go
 *              away early.  So that they do, a group is no larger than BYTES.
 * Bits are preserved: every element is computed by the same operations. */
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "op_list.h"
#include "graph/build.h"
#include "passes/common/single.h"
#include "passes/training/updates.h"

/* ---- which nodes ---- */

static bool elementwise(const fac_node *n) {
    return n->nout == 1 && !n->body[0] && n->out[0]->time == FAC_RUN &&
           (n->op->map || n->op == &fac_op_cast);
}

static void find_tail(fac_tail *t) {
    memset(t->by_id, 0, t->g->ids * sizeof *t->by_id);
    for (fac_node *n = t->g->last; n; n = n->prev) {
        if (!elementwise(n) || t->excluded[n->id]) continue;
        const fac_value *y = n->out[0];
        bool serves = y->roots == t->updates[y->id] && (y->roots || y->uses);
        for (const fac_use *u = y->uses; u && serves; u = u->next) serves = fac_in_tail(t, u->node);
        if (serves) t->by_id[n->id] = n;
    }
}

/* ---- parts ---- */

static int root_of(fac_tail *t, int i) {
    while (t->leader[i] != i) i = t->leader[i] = t->leader[t->leader[i]];
    return i;
}

/* n belongs together with the others that read or make v.  first: by value id, one such node. */
static void join(fac_tail *t, const fac_node *n, const fac_value *v, int *first) {
    const bool own = fac_in_tail(t, v->node) || v->leaf == FAC_PARAM || v->leaf == FAC_STATE;
    if (!own || !fac_dims_equal(&v->type.dims, &n->out[0]->type.dims)) return;
    if (!first[v->id])
        first[v->id] = (int)n->id;
    else
        t->leader[root_of(t, (int)n->id)] = root_of(t, first[v->id]);
}

static bool find_parts(fac_tail *t) {
    int *first = fac_alloc(t->g->ids, sizeof *first); /* no node has id 0: that is a leaf's */
    if (!first) return false;
    for (uint32_t i = 0; i < t->g->ids; i++) {
        t->leader[i] = (int)i;
        t->part_of[i] = 0;
    }
    for (const fac_node *n = t->g->first; n; n = n->next) {
        if (!fac_in_tail(t, n)) continue;
        join(t, n, n->out[0], first);
        for (int i = 0; i < n->nin; i++)
            if (n->in[i]) join(t, n, n->in[i], first);
    }
    fac_release(first);
    t->nparts = 0;
    for (const fac_node *n = t->g->first; n; n = n->next) {
        if (!fac_in_tail(t, n)) continue;
        int root = root_of(t, (int)n->id);
        if (!t->part_of[root]) t->part_of[root] = ++t->nparts;
        t->part_of[n->id] = t->part_of[root];
    }
    t->parts = fac_alloc((size_t)t->nparts + 1, sizeof *t->parts);
    return t->parts != NULL;
}

static void free_parts(fac_tail *t) {
    for (int i = 0; t->parts && i < t->nparts; i++) fac_graph_free(t->parts[i].body);
    fac_release(t->parts);
    t->parts = NULL;
}

/* What stands for v inside the body of p. */
static fac_value *inside(fac_tail *t, fac_tail_part *p, fac_value *v) {
    if (!v || p->refused) return NULL;
    if (p->body->error.status)
        return p->body->poison; /* an input that could not be made is none to find */
    if (fac_tail_part_with(t, v) == p) return v->mark;
    if (p->body->error.status) { /* no memory: an input that could not be made is none to find */
        p->refused = true;
        return NULL;
    }
    if (fac_is_number(v)) return fac_const(p->body, v->tensor);
    for (int i = 0; i < p->nin; i++)
        if (p->in[i] == v) return p->body->inputs[i];
    if (p->nin == FAC_TAIL_INPUTS) {
        p->refused = true;
        return NULL;
    }
    char name[16];
    snprintf(name, sizeof name, "x%d", p->nin);
    p->in[p->nin++] = v;
    return fac_input(p->body, name, v->type.dtype, v->type.dims);
}

/* Somebody outside of p reads it, or a parameter becomes it. */
static bool leaves(const fac_tail *t, const fac_tail_part *p, const fac_value *v) {
    bool out = v->roots > 0;
    for (const fac_use *u = v->uses; u && !out; u = u->next)
        out = fac_tail_part_with(t, u->node->out[0]) != p;
    return out;
}

static void fill_part(fac_tail *t, fac_node *n) {
    fac_tail_part *p = fac_tail_part_with(t, n->out[0]);
    fac_value *args[4], *made[1];
    if (p->refused) return;
    if (!p->body && !(p->body = fac_graph_new())) p->refused = true;
    if (p->nodes++ == FAC_TAIL_NODES || n->nin > (int)(sizeof args / sizeof *args))
        p->refused = true;
    for (int i = 0; i < n->nin && !p->refused; i++) args[i] = inside(t, p, n->in[i]);
    if (p->refused) return;
    fac_node_copy(p->body, n, args, made);
    n->out[0]->mark = made[0];
    if (!leaves(t, p, n->out[0])) return;
    if (p->nout == FAC_TAIL_OUTPUTS) {
        p->refused = true;
        return;
    }
    char name[16];
    snprintf(name, sizeof name, "y%d", p->nout);
    p->out[p->nout++] = n->out[0];
    fac_output(p->body, name, made[0]);
}

/* One step after whatever it reads; false when the parts are not ordered, which broadcasting rules
 * out. */
static bool level_parts(fac_tail *t) {
    bool changed = true;
    for (int round = 0; changed; round++) {
        if (round > t->nparts) return false;
        changed = false;
        for (int i = 0; i < t->nparts; i++)
            for (int k = 0; k < t->parts[i].nin; k++) {
                const fac_tail_part *from = fac_tail_part_with(t, t->parts[i].in[k]);
                if (!from || from->level < t->parts[i].level) continue;
                t->parts[i].level = from->level + 1;
                changed = true;
            }
    }
    return true;
}

/* ---- the pass ---- */

/* Parts that no kernel takes leave the tail, and with them what only they read. */
static bool settle(fac_tail *t) {
    for (bool again = true; again;) {
        free_parts(t);
        find_tail(t);
        if (!find_parts(t)) return false;
        for (fac_node *n = t->g->first; n; n = n->next)
            if (fac_in_tail(t, n)) fill_part(t, n);
        again = false;
        for (int i = 0; i < t->nparts; i++) {
            fac_tail_part *p = &t->parts[i];
            p->number = i;
            p->refused = p->refused || p->body->error.status || !fac_tail_accepts(t, p);
            again |= p->refused;
        }
        for (uint32_t i = 0; again && i < t->g->ids; i++)
            if (t->by_id[i] && t->parts[t->part_of[i] - 1].refused) t->excluded[i] = 1;
    }
    return level_parts(t);
}

fac_graph *fac_pass_updates(const fac_graph *g, fac_accept *accept, void *self) {
    fac_tail t = { .g = fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL),
                   .accept = accept,
                   .self = self };
    if (!t.g || t.g->error.status) return t.g;
    const size_t ids = t.ids = t.g->ids;
    t.excluded = fac_alloc(ids, 1);
    t.part_of = fac_alloc(ids, sizeof *t.part_of);
    t.leader = fac_alloc(ids, sizeof *t.leader);
    t.updates = fac_alloc(ids, sizeof *t.updates);
    t.owner = fac_alloc(ids, sizeof *t.owner);
    t.became = fac_alloc(ids, sizeof *t.became);
    t.by_id = fac_alloc(ids, sizeof *t.by_id);
    bool ok = t.excluded && t.part_of && t.leader && t.updates && t.owner && t.became && t.by_id;
    for (size_t i = 0; ok && i < t.g->nparams; i++) {
        fac_value *p = t.g->params[i];
        if (!p->next) continue;
        t.updates[p->next->id]++;
        t.owner[p->next->id] = p;
    }
    if (ok) ok = settle(&t) && fac_tail_emit(&t);
    if (ok) fac_tail_relink(&t);
    free_parts(&t);
    fac_release(t.excluded);
    fac_release(t.part_of);
    fac_release(t.leader);
    fac_release(t.updates);
    fac_release(t.owner);
    fac_release(t.became);
    fac_release(t.by_id);
    if (!ok)
        fac_graph_raise(t.g, FAC_E_NOMEM, "no memory to fuse updates");
    else
        fac_graph_sweep(t.g);
    return t.g;
}
