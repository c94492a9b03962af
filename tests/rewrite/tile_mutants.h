/* Mutants of tiled graphs: in one place of one of them a tile is wrong.  The places are those where
 * writing tiles by hand goes wrong: slices, joined tiles, weights of tiles, partial sums, biases,
 * tiles at the edge, iterations. */
#ifndef FACULA_TESTS_TILE_MUTANTS_H
#define FACULA_TESTS_TILE_MUTANTS_H
#include "tile_check.h"
#include "op_list.h"

/* What is wrong with a node; NULL: this one cannot be wrong so.  draw: which of several ways. */
typedef fac_value *spoiler(fac_graph *to, const fac_node *n, fac_value *const in[], uint64_t draw);

typedef struct mutation {
    int kind;       /* of mutant_kinds; -1: the first that a node takes       */
    int target, at; /* the node from which on a place is looked for; -1: done */
    uint64_t draw;
    const char *what;
    const fac_value *weights[2]; /* two tiles of weights that change places */
} mutation;

static inline fac_value *copied(fac_graph *to, const fac_node *n, fac_value *const in[]) {
    fac_value *out[1];
    fac_node_copy(to, n, in, out);
    return out[0];
}

static inline fac_value *with(fac_graph *to, const fac_node *n, fac_value *const in[], int which,
                              fac_value *other) {
    fac_value **own = calloc((size_t)n->nin, sizeof *own);
    memcpy(own, in, (size_t)n->nin * sizeof *in);
    own[which] = other;
    fac_value *made = copied(to, n, own);
    free(own);
    return made;
}

/* ---- one way to be wrong each ---- */

static inline fac_value *slice_off_by_one(fac_graph *to, const fac_node *n, fac_value *const in[],
                                          uint64_t draw) {
    fac_contents start, end, axis, step;
    (void)to, (void)draw;
    if (!FAC_IS(n, slice) || !fac_known_numbers(in[1], &start) || !fac_known_numbers(in[2], &end) ||
        !fac_known_numbers(in[3], &axis))
        return NULL;
    if (in[4] && (!fac_known_numbers(in[4], &step) || step.v[0] != 1)) return NULL;
    for (int k = 0; k < axis.n; k++) { /* the first of its axes that leaves room */
        const int64_t size = n->in[0]->type.dims.d[axis.v[k]];
        const int64_t by = end.v[k] < size ? 1 : -(start.v[k] > 0);
        if (!by) continue;
        start.v[k] += by;
        end.v[k] += by;
        return fac_slice_axes(in[0], axis.n, axis.v, start.v, end.v);
    }
    return NULL;
}

static inline fac_value *tiles_exchanged(fac_graph *to, const fac_node *n, fac_value *const in[],
                                         uint64_t draw) {
    if (!FAC_IS(n, concat) || n->nin < 2) return NULL;
    const int a = (int)(draw % (uint64_t)(n->nin - 1));
    const int b = a + 1 + (int)(draw / 97 % (uint64_t)(n->nin - 1 - a));
    if (in[a] == in[b] || !fac_dims_equal(&in[a]->type.dims, &in[b]->type.dims)) return NULL;
    fac_value **own = calloc((size_t)n->nin, sizeof *own);
    memcpy(own, in, (size_t)n->nin * sizeof *in);
    own[a] = in[b];
    own[b] = in[a];
    fac_value *made = copied(to, n, own);
    free(own);
    return made;
}

static inline fac_value *first_of_stack(fac_graph *to, const fac_node *n, fac_value *const in[],
                                        uint64_t draw) {
    (void)draw;
    if (!FAC_IS(n, gather) || in[1]->type.dtype != FAC_I64) return NULL;
    return with(to, n, in, 1, fac_mul(in[1], fac_number(to, FAC_I64, 0)));
}

/* An addition of two tiles of results, not one of the network. */
static inline bool adds_partial(const fac_node *n) {
    const fac_node *from = FAC_IS(n, add) ? n->in[1]->node : NULL;
    return from && FAC_IS(from, gemm) && fac_dims_equal(&n->in[0]->type.dims, &n->in[1]->type.dims);
}

static inline fac_value *addend_lost(fac_graph *to, const fac_node *n, fac_value *const in[],
                                     uint64_t draw) {
    (void)draw;
    if (adds_partial(n)) return in[0];
    return FAC_IS(n, gemm) && in[2] ? with(to, n, in, 2, NULL) : NULL;
}

static inline fac_value *addend_twice(fac_graph *to, const fac_node *n, fac_value *const in[],
                                      uint64_t draw) {
    const int at = adds_partial(n) ? 1 : 2;
    (void)draw;
    if (!adds_partial(n) && !(FAC_IS(n, gemm) && in[2])) return NULL;
    return with(to, n, in, at, fac_add(in[at], in[at]));
}

/* The last row of both operands is forgotten. */
static inline fac_value *tile_too_small(fac_graph *to, const fac_node *n, fac_value *const in[],
                                        uint64_t draw) {
    if (!FAC_IS(n, gemm)) return NULL;
    const int of_a = !fac_attr_flag(n, "trans_a"), of_b = fac_attr_flag(n, "trans_b");
    const int64_t most = in[0]->type.dims.d[of_a] - 1;
    fac_value *own[3] = { in[0], in[1], in[2] };
    (void)draw;
    if (most < 1) return NULL;
    own[0] = fac_slice(in[0], of_a, 0, most, 1);
    own[1] = fac_slice(in[1], of_b, 0, most, 1);
    return copied(to, n, own);
}

/* A tile of results whose last column is its first one again. */
static inline fac_value *wrong_column(fac_graph *to, const fac_node *n, fac_value *const in[],
                                      uint64_t draw) {
    const int64_t cols = FAC_IS(n, gemm) ? n->out[0]->type.dims.d[1] : 0;
    (void)draw;
    if (cols < 2) return NULL;
    fac_value *y = copied(to, n, in);
    fac_value *parts[2] = { fac_slice(y, 1, 0, cols - 1, 1), fac_slice(y, 1, 0, 1, 1) };
    return fac_concat(parts, 2, 1);
}

static inline fac_value *iteration_too_few(fac_graph *to, const fac_node *n, fac_value *const in[],
                                           uint64_t draw) {
    fac_value *own[8], *out[1];
    fac_contents trips;
    (void)draw;
    if (!FAC_IS(n, loop) || !fac_attr_int(n, "carried", 0) || n->nin > 8 ||
        !fac_known_numbers(in[0], &trips))
        return NULL;
    memcpy(own, in, (size_t)n->nin * sizeof *in);
    own[0] = fac_number(to, FAC_I64, (double)(trips.v[0] - 1));
    fac_node_copy(to, n, own, out);
    return out[0];
}

static const struct {
    const char *what;
    spoiler *spoil; /* NULL: of weights */
} mutant_kinds[] = {
    { "a slice off by one", slice_off_by_one },
    { "two tiles exchanged", tiles_exchanged },
    { "always the first tile of a stack", first_of_stack },
    { "a partial product or bias lost", addend_lost },
    { "a partial product or bias added twice", addend_twice },
    { "a tile too small by one", tile_too_small },
    { "another column at the end of a tile", wrong_column },
    { "an iteration too few", iteration_too_few },
    { "two tiles of weights exchanged", NULL },
};
enum { MUTANT_KINDS = sizeof mutant_kinds / sizeof *mutant_kinds };

/* ---- in a graph ---- */

static inline fac_value *spoiled(mutation *m, fac_graph *to, const fac_node *n,
                                 fac_value *const in[]) {
    for (int k = 0; k < MUTANT_KINDS; k++) {
        if ((m->kind >= 0 && m->kind != k) || !mutant_kinds[k].spoil) continue;
        m->what = mutant_kinds[k].what;
        fac_value *made = mutant_kinds[k].spoil(to, n, in, m->draw);
        if (made) return made;
    }
    return NULL;
}

static inline bool visit_mutant(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                                fac_value *out[]) {
    mutation *m = self;
    if (m->target < 0) return false;
    if (m->at++ >= m->target && (out[0] = spoiled(m, to, n, in))) {
        m->target = -1;
        return true;
    }
    if (!n->body[0]) return false;
    const fac_rebuild how = { .self = m, .visit = visit_mutant };
    fac_graph *body = fac_graph_rebuild(n->body[0], &how, NULL);
    if (m->target >= 0) {
        fac_graph_free(body);
        return false;
    }
    OK(fac_graph_check(body, &err));
    out[0] = fac_emit_body(to, n->op, n->attrs, n->nin, n->nports, in, body, NULL);
    return true;
}

static inline fac_value *leaf_of_mutant(void *self, fac_graph *to, const fac_value *v) {
    const mutation *m = self;
    for (int k = 0; k < 2; k++)
        if (v == m->weights[k]) return fac_param(to, v->name, m->weights[!k]->tensor);
    return NULL;
}

/* Tiles of one matrix are called alike up to this. */
static inline size_t matrix_name(const fac_value *v) {
    const char *end = strstr(v->name, ".tile_");
    return end ? (size_t)(end - v->name) : 0;
}

static inline bool exchangeable(const fac_value *v, const fac_value *w) {
    const size_t n = matrix_name(v);
    return n && n == matrix_name(w) && !memcmp(v->name, w->name, n) &&
           fac_dims_equal(&v->type.dims, &w->type.dims);
}

/* Two tiles of one matrix, from a parameter on that the draw says. */
static inline bool find_weights(const fac_graph *g, mutation *m) {
    for (size_t k = 0; k < g->nparams; k++) {
        const size_t at = (k + m->draw) % g->nparams, next = at + 1 + m->draw / 97 % 3;
        if (next >= g->nparams || !exchangeable(g->params[at], g->params[next])) continue;
        m->weights[0] = g->params[at];
        m->weights[1] = g->params[next];
        m->target = -1;
        return true;
    }
    return false;
}

static inline int nodes_of(const fac_graph *g) {
    int count = 0;
    for (const fac_node *n = g->first; n; n = n->next)
        count += 1 + (n->body[0] ? nodes_of(n->body[0]) : 0);
    return count;
}

/* The graph with the wrong place, which m then names; NULL: from m->target on there is none. */
static inline fac_graph *tile_mutant(const fac_graph *g, mutation *m) {
    const bool of_weights = m->kind >= 0 && !mutant_kinds[m->kind].spoil;
    m->what = of_weights ? mutant_kinds[m->kind].what : "";
    if (of_weights && !find_weights(g, m)) return NULL;
    const fac_rebuild how = { .self = m, .visit = visit_mutant, .leaf = leaf_of_mutant };
    fac_graph *bad = fac_graph_rebuild(g, &how, NULL);
    OK(fac_graph_check(bad, &err));
    if (m->target < 0) return bad;
    fac_graph_free(bad);
    return NULL;
}
#endif
