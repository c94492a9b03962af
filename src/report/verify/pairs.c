/* Which values of one model are which values of another, found by running both once and comparing a
 * few numbers of each value (see probe.c).  What lies between, how it is written and what it is
 * called does not matter.  The pairs are the longest list whose members follow each other in both
 * graphs (Hunt and Szymanski 1977), so that a pair never depends on a later one. */
#include <stdlib.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/verify/verify.h"

enum { MOST = 2048, NEAR = 32 }; /* values that are looked at; partners of one that are tried */

/* One model's values, and their numbers: those of v[k] begin at[k]. */
typedef struct values {
    fac_value **v;
    size_t n;
    int64_t *at;
    double *x;
} values;

static uint64_t dims_key(const fac_value *v) {
    return fac_hash_bytes(fac_hash_start((uint64_t)v->type.dims.n), v->type.dims.d,
                          (size_t)v->type.dims.n * sizeof(int64_t))
        .a;
}

static int by_key(const void *x, const void *y) {
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static bool is_candidate(const fac_value *v) {
    return v->time == FAC_RUN && fac_is_float(v) && fac_dims_count(&v->type.dims) > 0 &&
           (v->uses || v->roots);
}

/* The dims of all candidates, sorted. */
static uint64_t *all_keys(const fac_graph *g, size_t *n) {
    uint64_t *keys = NULL;
    size_t room = 0;
    *n = 0;
    for (const fac_node *m = g->first; m; m = m->next)
        for (int k = 0; k < m->nout; k++) {
            if (!is_candidate(m->out[k])) continue;
            if (!fac_reserve(&keys, &room, *n + 1, sizeof *keys)) return fac_release(keys), NULL;
            keys[(*n)++] = dims_key(m->out[k]);
        }
    if (!keys) return fac_alloc(1, sizeof *keys);
    qsort(keys, *n, sizeof *keys, by_key);
    return keys;
}

/* Candidates of g whose dims the other one has too; evenly thinned where there are too many. */
static fac_status take_values(const fac_graph *g, const fac_graph *other, values *to,
                              fac_error *err) {
    size_t nkeys = 0, room = 0;
    uint64_t *keys = all_keys(other, &nkeys);
    bool good = keys != NULL;
    for (const fac_node *m = g->first; m && good; m = m->next)
        for (int k = 0; k < m->nout && good; k++) {
            const uint64_t key = dims_key(m->out[k]);
            if (!is_candidate(m->out[k]) || !bsearch(&key, keys, nkeys, sizeof key, by_key))
                continue;
            if ((good = fac_reserve(&to->v, &room, to->n + 1, sizeof *to->v)))
                to->v[to->n++] = m->out[k];
        }
    fac_release(keys);
    const size_t step = (to->n + MOST - 1) / MOST;
    if (step > 1) {
        size_t kept = 0;
        for (size_t k = step - 1; k < to->n; k += step) to->v[kept++] = to->v[k];
        to->n = kept;
    }
    return good ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "no memory to look for pairs");
}

static fac_status probe(const fac_trial *t, const fac_graph *g, values *s) {
    int64_t count = 0;
    fac_tensor *out[1] = { NULL };
    s->at = fac_alloc(s->n + 1, sizeof *s->at);
    for (size_t k = 0; s->at && k < s->n; k++) s->at[k + 1] = s->at[k] + fac_probe_size(s->v[k]);
    fac_graph *g2 = s->at ? fac_probe(g, s->v, s->n, &count) : NULL;
    s->x = fac_alloc((size_t)count + 1, sizeof *s->x);
    fac_status status = g2 && s->x ? fac_graph_check(g2, t->err)
                                   : fac_raise(t->err, FAC_E_NOMEM, "no memory to look for pairs");
    if (!status && count) status = fac_trial_once(t, g2, out);
    if (!status && count) fac_tensor_doubles(out[0], 0, count, s->x);
    fac_drop_tensors(out, 1);
    fac_graph_free(g2);
    return status;
}

static bool equal(const values *a, size_t i, const values *b, size_t j, double room) {
    return fac_dims_equal(&a->v[i]->type.dims, &b->v[j]->type.dims) &&
           fac_probe_equal(a->x + a->at[i], b->x + b->at[j], a->v[i]->type.dims.n, room);
}

/* ---- the longest list ---- */

/* A pair that ends a list, and the one before it. */
typedef struct link {
    size_t i, j;
    int before;
} link;
typedef struct chain {
    link *links;
    int *best;
    size_t nlinks, room;
    int longest;
} chain;

/* Puts pair (i, j) after the longest list that ends before i; best[l]: the link that ends a list
 * of l + 1 at the least i. */
static bool extend(chain *c, size_t i, size_t j) {
    int low = 0, high = c->longest;
    while (low < high) {
        const int mid = (low + high) / 2;
        if (c->links[c->best[mid]].i < i)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < c->longest && c->links[c->best[low]].i == i) return true;
    if (!fac_reserve(&c->links, &c->room, c->nlinks + 1, sizeof *c->links)) return false;
    c->links[c->nlinks] = (link){ i, j, low ? c->best[low - 1] : -1 };
    c->best[low] = (int)c->nlinks++;
    if (low == c->longest) c->longest++;
    return true;
}

static bool longest_list(const values *a, const values *b, double room, chain *c) {
    c->best = fac_alloc(a->n + 1, sizeof *c->best);
    bool good = c->best != NULL;
    for (size_t j = 0; j < b->n && good; j++) {
        size_t near[NEAR];
        int n = 0;
        for (size_t i = 0; i < a->n && n < NEAR; i++)
            if (equal(a, i, b, j, room)) near[n++] = i;
        while (n > 0 && good)
            good = extend(c, near[--n], j); /* the last first: no two of one j follow each other */
    }
    return good;
}

static void free_values(values *s) {
    fac_release(s->v);
    fac_release(s->at);
    fac_release(s->x);
}

fac_status fac_find_pairs(fac_trial *t, const fac_graph *a, const fac_graph *b, double room,
                          fac_pair **out, size_t *n) {
    values va = { 0 }, vb = { 0 };
    chain c = { 0 };
    fac_pair *pairs = NULL;
    fac_status status = take_values(a, b, &va, t->err);
    if (!status) status = take_values(b, a, &vb, t->err);
    if (!status) status = probe(t, a, &va);
    if (!status) status = probe(t, b, &vb);
    if (!status && (!longest_list(&va, &vb, room, &c) ||
                    !(pairs = fac_alloc((size_t)c.longest + 1, sizeof *pairs))))
        status = fac_raise(t->err, FAC_E_NOMEM, "no memory to look for pairs");
    for (int at = !status && c.longest ? c.best[c.longest - 1] : -1, k = c.longest; at >= 0;
         at = c.links[at].before)
        pairs[--k] = (fac_pair){ va.v[c.links[at].i], vb.v[c.links[at].j] };
    free_values(&va);
    free_values(&vb);
    fac_release(c.links);
    fac_release(c.best);
    if (status) return status;
    *out = pairs;
    *n = (size_t)c.longest;
    return FAC_OK;
}
