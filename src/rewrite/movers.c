/* Movers after movers of the same kind become one: transposes (or none, where they cancel), slices
 * along different axes, concats, casts of which the first loses nothing.  Preserves every bit. */
#include "facula/ops.h"
#include "op_list.h"
#include "ops/shape.h"
#include "graph/attr.h"
#include "passes/common/casts.h"
#include "passes/common/frozen.h"
#include "passes/passes.h"
#include "passes/common/single.h"

/* ---- transposes ---- */

static int source(const fac_node *n, int rank, int k) {
    const fac_dims *perm =
        (const fac_dims *)(const void *)((const char *)n->attrs + fac_attr_find(n->op, "perm")->at);
    if (!perm->n) return rank - 1 - k;
    return (int)perm->d[k] + (perm->d[k] < 0 ? rank : 0);
}

static fac_value *transposed(const fac_node *n, fac_value *const in[]) {
    const fac_node *first = in[0]->node;
    const int rank = in[0]->type.dims.n;
    fac_dims both = { .n = rank };
    bool moves = false;
    if (!FAC_IS(n, transpose)) return NULL;
    if (!FAC_IS(first, transpose)) first = NULL;
    for (int k = 0; k < rank; k++) {
        both.d[k] = first ? source(first, rank, source(n, rank, k)) : source(n, rank, k);
        moves |= both.d[k] != k;
    }
    fac_value *x = first ? first->in[0] : in[0];
    if (!moves) return x;
    return first ? fac_transpose(x, both) : NULL;
}

/* ---- slices ---- */

typedef struct cut {
    fac_contents start, end, axis, step;
} cut;

/* Its lists, with axes from 0 and steps, when all are numbers. */
static bool cut_of(const fac_node *n, cut *c) {
    if (!FAC_IS(n, slice)) return false;
    if (!fac_known_numbers(n->in[1], &c->start) || !fac_known_numbers(n->in[2], &c->end))
        return false;
    c->axis = c->step = (fac_contents){ .n = c->start.n };
    if (n->in[3] && !fac_known_numbers(n->in[3], &c->axis)) return false;
    if (n->in[4] && !fac_known_numbers(n->in[4], &c->step)) return false;
    for (int k = 0; k < c->start.n; k++) {
        c->axis.v[k] = n->in[3] ? fac_axis(c->axis.v[k], n->in[0]->type.dims.n) : k;
        if (!n->in[4]) c->step.v[k] = 1;
    }
    return c->end.n == c->start.n && c->axis.n == c->start.n && c->step.n == c->start.n;
}

static bool disjoint(const cut *a, const cut *b) {
    for (int i = 0; i < a->start.n; i++)
        for (int k = 0; k < b->start.n; k++)
            if (a->axis.v[i] == b->axis.v[k]) return false;
    return a->start.n + b->start.n <= FAC_DIMS;
}

/* Nothing but slices along other axes reads it: once they are joined with it, it is gone. */
static bool only_sliced(const fac_value *v, const cut *a) {
    cut b;
    if (v->roots) return false;
    for (const fac_use *u = v->uses; u; u = u->next)
        if (u->input || !cut_of(u->node, &b) || !disjoint(a, &b)) return false;
    return true;
}

static fac_value *joined(fac_graph *to, const fac_contents *a, const fac_contents *b) {
    fac_dims d = { .n = a->n + b->n };
    for (int k = 0; k < d.n; k++) d.d[k] = k < a->n ? a->v[k] : b->v[k - a->n];
    return fac_ints(to, d);
}

static fac_value *sliced(fac_graph *to, const fac_node *n, fac_value *const in[]) {
    cut a, b;
    fac_node now = *n;
    now.in = (fac_value **)(uintptr_t)in;
    if (!cut_of(&now, &b) || !in[0]->node || !cut_of(in[0]->node, &a)) return NULL;
    if (!disjoint(&a, &b) || !only_sliced(n->in[0], &a)) return NULL;
    fac_value *args[] = { in[0]->node->in[0], joined(to, &a.start, &b.start),
                          joined(to, &a.end, &b.end), joined(to, &a.axis, &b.axis),
                          joined(to, &a.step, &b.step) };
    return fac_emit(n->op, NULL, 5, args);
}

/* ---- concats ---- */

static fac_value *joined_once(const fac_node *n, fac_value *const in[]) {
    enum { MOST = 256 };
    fac_value *all[MOST];
    int count = 0, inner = 0;
    if (!FAC_IS(n, concat)) return NULL;
    const int axis = fac_axis(fac_attr_int(n, "axis", 0), n->out[0]->type.dims.n);
    for (int i = 0; i < n->nin; i++) {
        const fac_node *m = in[i]->node;
        const bool open = FAC_IS(m, concat) && fac_used_once(n->in[i]) &&
                          fac_axis(fac_attr_int(m, "axis", 0), in[i]->type.dims.n) == axis;
        const int pieces = open ? m->nin : 1;
        if (count + pieces > MOST) return NULL;
        for (int k = 0; k < pieces; k++) all[count++] = open ? m->in[k] : in[i];
        inner += open;
    }
    return inner ? fac_emit(n->op, n->attrs, count, all) : NULL;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    if (!n->nin || !in[0] || n->nout != 1) return false;
    fac_value *v = transposed(n, in);
    if (!v) v = fac_cast_once(n, in);
    if (!v) v = sliced(to, n, in);
    if (!v) v = joined_once(n, in);
    if (!v || v->leaf == FAC_POISON) return false;
    if (v->node && !v->node->name) fac_named_like(v, n);
    out[0] = v;
    return true;
}

fac_graph *fac_pass_movers(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
