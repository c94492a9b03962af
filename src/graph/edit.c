/* Changing a graph in place: uses moved from one value to another, what nothing needs dropped.
 *
 * The list of nodes stays a topological order.  When uses of `old` move to `with`, the nodes that
 * make `with` and come after the first of these uses are moved before it (the affected region of
 * Pearce and Kelly, A dynamic topological sort algorithm, JEA 2006).  They are mostly the nodes
 * just appended, so the cost is that of the edit and not of the graph. */
#include <stdlib.h>
#include "base/memory.h"
#include "graph/build.h"

/* Nodes that `with` is made from, no earlier than the first use of `old`. */
typedef struct region {
    fac_node **n;
    size_t count, room;
} region;

static int by_order(const void *a, const void *b) {
    const uint64_t x = (*(fac_node *const *)a)->order, y = (*(fac_node *const *)b)->order;
    return (x > y) - (x < y);
}

/* Marked nodes have bit 63 of their order set: no memory, and orders never get that high. */
static const uint64_t MARK = (uint64_t)1 << 63;
static bool marked(const fac_node *n) { return n->order & MARK; }

static bool add(region *r, fac_node *n, uint64_t first) {
    if (!n || marked(n) || n->order < first) return true;
    if (!fac_reserve(&r->n, &r->room, r->count + 1, sizeof *r->n)) return false;
    n->order |= MARK;
    r->n[r->count++] = n;
    return true;
}

/* The list itself is the queue of what is still to be looked at. */
static bool ancestors(region *r, fac_value *with, uint64_t first) {
    if (!add(r, with->node, first)) return false;
    for (size_t k = 0; k < r->count; k++)
        for (int i = 0; i < r->n[k]->nin; i++)
            if (r->n[k]->in[i] && !add(r, r->n[k]->in[i]->node, first)) return false;
    return true;
}

static void unlink_node(fac_graph *g, fac_node *n) {
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
}

static void number(fac_graph *g) {
    uint64_t order = 0;
    for (fac_node *n = g->first; n; n = n->next) n->order = order += FAC_ORDER_STEP;
}

/* Moves what of the region comes after `here` to before it, in its order. */
static void move_before(fac_graph *g, fac_node *here, region *r) {
    qsort(r->n, r->count, sizeof *r->n, by_order);
    size_t begin = 0;
    while (begin < r->count && r->n[begin]->order < here->order) begin++;
    for (size_t k = begin; k < r->count; k++) unlink_node(g, r->n[k]);
    const uint64_t low = here->prev ? here->prev->order : 0,
                   gap = (here->order - low) / (r->count - begin + 1);
    for (size_t k = begin; k < r->count; k++) {
        fac_node *n = r->n[k];
        n->prev = here->prev;
        n->next = here;
        *(here->prev ? &here->prev->next : &g->first) = n;
        here->prev = n;
        n->order = low + gap * (k - begin + 1);
    }
    if (!gap) number(g);
}

static void move_uses(fac_value *old, fac_value *with) {
    fac_use **at = &old->uses;
    while (*at) {
        fac_use *u = *at;
        if (marked(u->node)) {
            at = &u->next;
            continue;
        }
        *at = u->next;
        u->node->in[u->input] = with;
        u->next = with->uses;
        with->uses = u;
        for (int k = 0; k < u->node->nout; k++) fac_time_raise(u->node->out[k], with->time);
    }
    fac_graph *g = old->graph;
    for (size_t i = 0; i < g->noutputs && old->roots; i++)
        if (g->outputs[i].value == old) {
            g->outputs[i].value = with;
            old->roots--;
            with->roots++;
        }
    for (size_t i = 0; i < g->nparams && old->roots; i++)
        if (g->params[i]->next == old) {
            g->params[i]->next = with;
            old->roots--;
            with->roots++;
        }
}

void fac_node_move(fac_node *n, fac_node *after) {
    fac_graph *g = n->graph;
    if (n == after || after->next == n) return;
    unlink_node(g, n);
    n->prev = after;
    n->next = after->next;
    *(n->next ? &n->next->prev : &g->last) = n;
    after->next = n;
    const uint64_t gap = n->next ? (n->next->order - after->order) / 2 : FAC_ORDER_STEP;
    n->order = after->order + gap;
    if (!gap) number(g);
}

void fac_replace(fac_value *old, fac_value *with) {
    if (!old || !with || old == with) {
        if (old != with)
            fac_graph_raise((old ? old : with)->graph, FAC_E_ARGUMENT,
                            "fac_replace: a value is missing");
        return;
    }
    fac_graph *g = old->graph;
    if (with->graph != g) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "fac_replace: the values belong to different graphs");
        fac_graph_raise(with->graph, FAC_E_ARGUMENT,
                        "fac_replace: the values belong to different graphs");
        return;
    }
    if (g->error.status) return;
    if (old->leaf == FAC_POISON || with->leaf == FAC_POISON) {
        fac_graph_raise(g, FAC_E_ARGUMENT,
                        "fac_replace: a value was dropped from the graph before");
        return;
    }
    if (!fac_type_fits(&old->type, &with->type)) {
        fac_text t = { 0 };
        fac_type_print(g, &old->type, &t);
        fac_text_add(&t, " by ");
        fac_type_print(g, &with->type, &t);
        fac_graph_raise(g, FAC_E_SHAPE, "fac_replace: %s", t.failed ? "the types differ" : t.s);
        fac_text_free(&t);
        return;
    }
    uint64_t first = UINT64_MAX;
    for (fac_use *u = old->uses; u; u = u->next)
        if (u->node->order < first) first = u->node->order;
    region r = { 0 };
    const bool ok = first == UINT64_MAX || ancestors(&r, with, first);
    if (ok)
        move_uses(old, with);
    else
        fac_graph_raise(g, FAC_E_NOMEM, "no memory to replace a value");
    for (size_t k = 0; k < r.count; k++) r.n[k]->order &= ~MARK;
    if (ok && r.count) {
        fac_node *here = NULL; /* the first node that now reads with */
        for (fac_use *u = with->uses; u; u = u->next)
            if (!here || u->node->order < here->order) here = u->node;
        if (here) move_before(g, here, &r);
    }
    fac_release(r.n);
}

/* ---- dropping what nothing needs ---- */

static void forget(fac_graph *g, fac_value *v) {
    if (v->name && fac_table_get(&g->names, v->name) == v) fac_table_put(&g->names, v->name, NULL);
    fac_tensor_free(v->tensor);
    v->tensor = NULL;
    v->uses = NULL;
    v->node = NULL;
    v->leaf = FAC_POISON; /* so that a later use of it is an error and not a broken graph */
}

static void drop_node(fac_graph *g, fac_node *n) {
    unlink_node(g, n);
    for (int k = 0; k < n->nout; k++) forget(g, n->out[k]);
    for (int k = 0; k < 2; k++) {
        fac_graph_free(n->body[k]);
        n->body[k] = NULL;
    }
    g->nodes--;
}

static size_t drop_leaves(fac_graph *g, fac_value **list, size_t n, const unsigned char *live) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (live[list[i]->id])
            list[kept++] = list[i];
        else
            forget(g, list[i]);
    return kept;
}

/* Use lists and times from nothing, which is simpler than to mend them. */
static void renew_uses(fac_graph *g) {
    for (size_t i = 0; i < g->ninputs; i++) g->inputs[i]->uses = NULL;
    for (size_t i = 0; i < g->nconsts; i++) g->consts[i]->uses = NULL;
    for (size_t i = 0; i < g->nparams; i++) {
        g->params[i]->uses = NULL;
        g->params[i]->time = g->params[i]->next ? FAC_RUN : FAC_PREPARE;
    }
    for (fac_node *n = g->first; n; n = n->next) {
        fac_time time = FAC_COMPILE;
        fac_use *uses = fac_node_uses(n);
        for (int i = 0; i < n->nin; i++) {
            fac_value *v = n->in[i];
            if (!v) continue;
            uses[i].next = v->uses;
            v->uses = &uses[i];
            if (v->time > time) time = v->time;
        }
        for (int k = 0; k < n->nout; k++) {
            n->out[k]->uses = NULL;
            n->out[k]->time = time;
        }
    }
}

void fac_graph_sweep(fac_graph *g) {
    if (g->error.status) return;
    unsigned char *live = fac_alloc(g->ids, 1);
    if (!live) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory to sweep a graph");
        return;
    }
    for (size_t i = 0; i < g->noutputs; i++) live[g->outputs[i].value->id] = 1;
    for (size_t i = 0; i < g->nparams; i++)
        if (g->params[i]->next) live[g->params[i]->id] = live[g->params[i]->next->id] = 1;
    for (fac_node *n = g->last, *before; n; n = before) {
        bool needed = false;
        before = n->prev;
        for (int k = 0; k < n->nout; k++) needed = needed || live[n->out[k]->id];
        for (int i = 0; i < n->nin && needed; i++)
            if (n->in[i]) live[n->in[i]->id] = 1;
        if (!needed) drop_node(g, n);
    }
    g->nparams = drop_leaves(g, g->params, g->nparams, live);
    g->nconsts = drop_leaves(g, g->consts, g->nconsts, live);
    fac_release(live);
    number(g);
    renew_uses(g);
}
