/* Pairs the nodes of two graphs, surest evidence first:
 *   1  the same cone of ops above, down from the inputs, then the same cone below, up from the
 *       outputs
 *   2  an op of one kind that reads the same parameter
 *   3  names that a person gave, then the module and what it is there; numbered names ("Relu_12")
 *      shift with every insertion and come last
 *   4  neighbours of pairs: what makes the same input of both, what reads the same output of both
 * Each step gives every open node a key (match_keys.c); equal keys are found by sorting, so all of
 * it takes n log n. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/diff/match.h"
#include "report/cost/report.h"

/* ---- equal keys ---- */

typedef struct keyed {
    fac_hash key;
    int at;
} keyed;

static int by_key(const void *p, const void *q) {
    const keyed *x = p, *y = q;
    if (x->key.a != y->key.a) return x->key.a < y->key.a ? -1 : 1;
    if (x->key.b != y->key.b) return x->key.b < y->key.b ? -1 : 1;
    return x->at - y->at;
}

static int run_of(const keyed *k, int n) {
    int i = 1;
    while (i < n && fac_hash_equal(k[i].key, k[0].key)) i++;
    return i;
}

/* Calls pair(self, a, b) for the first of equal keys, the second and so on; if strict only where
 * both sides have as many. */
static void pair_equal(keyed *a, int na, keyed *b, int nb, bool strict,
                       void (*pair)(void *self, int a, int b), void *self) {
    qsort(a, (size_t)na, sizeof *a, by_key);
    qsort(b, (size_t)nb, sizeof *b, by_key);
    for (int i = 0, j = 0; i < na && j < nb;) {
        const int ra = run_of(a + i, na - i), rb = run_of(b + j, nb - j);
        if (fac_hash_equal(a[i].key, b[j].key)) {
            for (int k = 0; k < ra && k < rb && (ra == rb || !strict); k++)
                pair(self, a[i + k].at, b[j + k].at);
            i += ra;
            j += rb;
        } else if (by_key(&(keyed){ a[i].key, 0 }, &(keyed){ b[j].key, 0 }) < 0) {
            i += ra;
        } else {
            j += rb;
        }
    }
}

/* ---- leaves ---- */

static void pair_leaves(fac_match *m, fac_value *x, fac_value *y) {
    m->a.leaf[x->id] = y;
    m->b.leaf[y->id] = x;
}

static void pair_params(void *self, int i, int j) {
    fac_match *m = self;
    pair_leaves(m, m->a.g->params[i], m->b.g->params[j]);
}

static fac_value *leaf_called(const fac_graph *g, const char *name, bool input) {
    fac_value *v = fac_table_get(&g->names, name);
    return v && v->leaf != FAC_NOT_LEAF && v->leaf != FAC_CONST && (v->leaf == FAC_INPUT) == input
               ? v
               : NULL;
}

static void match_inputs(fac_match *m) {
    const fac_graph *a = m->a.g, *b = m->b.g;
    for (size_t i = 0; i < a->ninputs; i++) {
        fac_value *y = leaf_called(b, a->inputs[i]->name, true);
        if (y) pair_leaves(m, a->inputs[i], y);
    }
    for (size_t i = 0; i < a->ninputs && i < b->ninputs; i++) { /* the others by their place */
        fac_value *x = a->inputs[i], *y = b->inputs[i];
        if (!m->a.leaf[x->id] && !m->b.leaf[y->id] && x->type.dtype == y->type.dtype)
            pair_leaves(m, x, y);
    }
}

static int open_params(const fac_diff_side *s, keyed *to) {
    int n = 0;
    for (size_t i = 0; i < s->g->nparams; i++)
        if (!s->leaf[s->g->params[i]->id])
            to[n++] = (keyed){ fac_contents_hash(fac_hash_start(3), s->g->params[i]), (int)i };
    return n;
}

static fac_status match_params(fac_match *m, fac_error *err) {
    for (size_t i = 0; i < m->a.g->nparams; i++) {
        fac_value *y = leaf_called(m->b.g, m->a.g->params[i]->name, false);
        if (y) pair_leaves(m, m->a.g->params[i], y);
    }
    if (m->structure) return FAC_OK;
    keyed *a = fac_alloc(m->a.g->nparams + 1, sizeof *a),
          *b = fac_alloc(m->b.g->nparams + 1, sizeof *b);
    if (a && b) {
        const int na = open_params(&m->a, a), nb = na ? open_params(&m->b, b) : 0;
        pair_equal(a, na, b, nb, false, pair_params, m);
    }
    const bool room = a && b;
    fac_release(a);
    fac_release(b);
    return room ? FAC_OK : fac_raise_memory(err, "a comparison of two models");
}

/* ---- pairing nodes ---- */

static void pair_nodes(void *self, int x, int y) {
    fac_match *m = self;
    m->a.mate[x] = y;
    m->b.mate[y] = x;
}

/* Of nodes that have no mate yet; a key of zeros is none. */
static int open_nodes(const fac_diff_side *s, const fac_hash *keys, keyed *to) {
    int n = 0;
    for (int p = 0; p < s->n; p++)
        if (s->mate[p] < 0 && (keys[p].a || keys[p].b)) to[n++] = (keyed){ keys[p], p };
    return n;
}

/* A neighbour pair is one op in both. */
static bool may_pair(const fac_match *m, const fac_node *x, const fac_node *y) {
    return x && y && x->op == y->op && m->a.mate[m->a.place[x->id]] < 0 &&
           m->b.mate[m->b.place[y->id]] < 0;
}

/* The only open reader of v of this op, or NULL. */
static const fac_node *one_reader(const fac_diff_side *s, const fac_value *v, const fac_op *op) {
    const fac_node *found = NULL;
    int looked = 0;
    enum { MANY = 8 }; /* a value that all read tells nothing */
    for (const fac_use *u = v->uses; u; u = u->next) {
        if (++looked > MANY) return NULL;
        if (u->node->op != op || s->mate[s->place[u->node->id]] >= 0 || u->node == found) continue;
        if (found) return NULL;
        found = u->node;
    }
    return found;
}

static void add_pair(fac_match *m, const fac_node *x, const fac_node *y, int *work, int *n) {
    pair_nodes(m, m->a.place[x->id], m->b.place[y->id]);
    work[(*n)++] = m->a.place[x->id];
}

static void pair_makers(fac_match *m, const fac_node *x, const fac_node *y, int *work, int *n) {
    for (int i = 0; i < x->nin && i < y->nin; i++) {
        const fac_value *u = x->in[i], *v = y->in[i];
        if (u && v && u->index == v->index && may_pair(m, u->node, v->node))
            add_pair(m, u->node, v->node, work, n);
    }
}

static void pair_readers(fac_match *m, const fac_node *x, const fac_node *y, int *work, int *n) {
    enum { MANY = 8 };
    for (int k = 0; k < x->nout && k < y->nout; k++) {
        int looked = 0;
        for (const fac_use *u = x->out[k]->uses; u && looked < MANY; u = u->next, looked++) {
            if (one_reader(&m->a, x->out[k], u->node->op) != u->node) continue;
            const fac_node *v = one_reader(&m->b, y->out[k], u->node->op);
            if (may_pair(m, u->node, v)) add_pair(m, u->node, v, work, n);
        }
    }
}

/* From pair to pair, until no neighbours are left; each node is put into work at most once. */
static void spread(fac_match *m, int *work) {
    int n = 0;
    for (int p = 0; p < m->a.n; p++)
        if (m->a.mate[p] >= 0) work[n++] = p;
    for (int k = 0; k < n; k++) {
        const fac_node *x = m->a.nodes[work[k]], *y = m->b.nodes[m->a.mate[work[k]]];
        pair_makers(m, x, y, work, &n);
        pair_readers(m, x, y, work, &n);
    }
}

typedef struct desk {
    fac_hash *ha, *hb;
    keyed *ka, *kb;
    int *work;
} desk; /* for keys of both sides */

static void pair_up(fac_match *m, const desk *r, bool strict) {
    const int na = open_nodes(&m->a, r->ha, r->ka), nb = open_nodes(&m->b, r->hb, r->kb);
    pair_equal(r->ka, na, r->kb, nb, strict, pair_nodes, m);
}

static fac_status match_nodes(fac_match *m, const desk *r, fac_error *err) {
    fac_match_hash_down(&m->a, false, r->ha);
    fac_match_hash_down(&m->b, true, r->hb);
    pair_up(m, r, false);
    fac_match_hash_ends(&m->a, false, r->ha);
    fac_match_hash_ends(&m->b, true, r->hb);
    fac_match_hash_up(&m->a, false, r->ha);
    fac_match_hash_up(&m->b, true, r->hb);
    pair_up(m, r, true);
    fac_match_hash_params(&m->a, false, r->ha);
    fac_match_hash_params(&m->b, true, r->hb);
    pair_up(m, r, true);
    fac_arena memory = { 0 };
    bool room = true;
    for (int by = 0; by < FAC_MATCH_NAMINGS && room; by++) {
        room = fac_match_hash_names(&m->a, (fac_match_naming)by, &memory, r->ha) &&
               fac_match_hash_names(&m->b, (fac_match_naming)by, &memory, r->hb);
        if (room) pair_up(m, r, true);
        spread(m, r->work);
    }
    fac_arena_free(&memory);
    return room ? FAC_OK : fac_raise_memory(err, "a comparison of two models");
}

/* ---- the calls ---- */

static bool take_side(fac_diff_side *s, const fac_graph *g) {
    s->g = g;
    s->nodes = fac_alloc((size_t)g->nodes + 1, sizeof *s->nodes);
    s->mate = fac_alloc((size_t)g->nodes + 1, sizeof *s->mate);
    s->place = fac_alloc((size_t)g->ids + 1, sizeof *s->place);
    s->leaf = fac_alloc((size_t)g->ids + 1, sizeof *s->leaf);
    if (!s->nodes || !s->mate || !s->place || !s->leaf) return false;
    for (const fac_node *n = g->first; n; n = n->next) {
        s->place[n->id] = s->n;
        s->mate[s->n] = -1;
        s->nodes[s->n++] = n;
    }
    return true;
}

fac_status fac_match_graphs(const fac_graph *a, const fac_graph *b, bool structure, fac_match *out,
                            fac_error *err) {
    *out = (fac_match){ .structure = structure };
    if (!take_side(&out->a, a) || !take_side(&out->b, b))
        return fac_raise_memory(err, "a comparison of two models");
    const size_t na = (size_t)out->a.n + 1, nb = (size_t)out->b.n + 1;
    const desk r = { fac_alloc(na, sizeof *r.ha), fac_alloc(nb, sizeof *r.hb),
                     fac_alloc(na, sizeof *r.ka), fac_alloc(nb, sizeof *r.kb),
                     fac_alloc(na, sizeof *r.work) };
    const bool there = r.ha && r.hb && r.ka && r.kb && r.work;
    match_inputs(out);
    fac_status status =
        there ? match_params(out, err) : fac_raise_memory(err, "a comparison of two models");
    if (!status) status = match_nodes(out, &r, err);
    fac_release(r.ha);
    fac_release(r.hb);
    fac_release(r.ka);
    fac_release(r.kb);
    fac_release(r.work);
    return status;
}

static void drop_side(fac_diff_side *s) {
    fac_release(s->nodes);
    fac_release(s->mate);
    fac_release(s->place);
    fac_release(s->leaf);
}

void fac_match_free(fac_match *m) {
    drop_side(&m->a);
    drop_side(&m->b);
}

bool fac_match_same(const fac_match *m, const fac_value *x, const fac_value *y) {
    if (!x || !y || !x->node != !y->node) return x == y;
    if (x->node)
        return x->index == y->index &&
               m->a.mate[m->a.place[x->node->id]] == m->b.place[y->node->id];
    if (x->leaf != FAC_CONST || y->leaf != FAC_CONST)
        return x->leaf == y->leaf && m->a.leaf[x->id] == y;
    if (x->tensor && y->tensor) return fac_diff_same_contents(x->tensor, y->tensor);
    return !x->tensor == !y->tensor && fac_hash_equal(fac_const_hash(fac_hash_start(1), x),
                                                      fac_const_hash(fac_hash_start(1), y));
}
