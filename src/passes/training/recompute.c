/* Recomputing: which forward values are kept.  See facula/recompute.h; recompute_build.c makes the
 * graph that follows.
 *
 * Ways to choose, of which the cheapest that fits is taken:
 *   cheap       Results of products and convolutions are kept; what lies between them
 *               (normalization, activation, sums) is made again, unless that takes more than a few
 *               other dropped values.  Hardly any operations, about half of the memory.
 *   segments    The forward part is cut into k pieces of about equal bytes, where few bytes cross.
 *               What crosses is kept; a piece is made again as a whole when the backward part gets
 *               there.  k near the square root of the depth needs least.
 *   scopes      Pieces that the caller names.
 * The last piece is never dropped: the backward part begins there. */
#include <fnmatch.h>
#include <string.h>
#include "base/memory.h"
#include "passes/passes.h"
#include "passes/training/recompute.h"

enum {
    SMALL = 4096,
    DEPTH = 4
}; /* bytes that are never dropped; dropped values that one may need, in its own size */

typedef struct choice {
    const fac_forward *f;
    bool *keep;       /* by id of a base */
    size_t *need;     /* cheap: by id of a base, bytes to be made again for it     */
    size_t *crossing; /* segments: by place, bytes that are read after this node  */
    size_t *saved;    /* by place, bytes that are saved up to this node            */
} choice;

static const fac_value *base_of(const choice *c, const fac_value *v) { return c->f->base[v->id]; }

static void keep_all(choice *c, bool keep) {
    for (int i = 0; i < c->f->n; i++)
        for (int k = 0; k < c->f->nodes[i]->nout; k++) {
            const fac_value *b = base_of(c, c->f->nodes[i]->out[k]);
            c->keep[b->id] = keep || c->f->bytes[b->id] <= SMALL;
        }
}

/* ---- cheap ---- */

static void keep_heavy(choice *c) {
    const fac_forward *f = c->f;
    keep_all(c, false);
    for (int i = 0; i < f->n; i++) {
        const fac_node *n = f->nodes[i];
        size_t need = 0;
        double macs;
        const bool heavy = fac_forward_heavy(n, &macs);
        for (int k = 0; k < n->nin; k++)
            if (fac_forward_makes(f, n->in[k]) && !c->keep[base_of(c, n->in[k])->id])
                need += c->need[base_of(c, n->in[k])->id];
        for (int k = 0; k < n->nout; k++) {
            const fac_value *b = n->out[k];
            if (base_of(c, b) != b) continue;
            c->need[b->id] = need + f->bytes[b->id];
            c->keep[b->id] |= heavy || c->need[b->id] > DEPTH * f->bytes[b->id];
        }
    }
}

/* ---- segments ---- */

/* crossing[i]: made by node i or before and read by a forward node after it. */
static void measure(choice *c) {
    const fac_forward *f = c->f;
    size_t saved = 0, alive = 0;
    memset(c->crossing, 0, ((size_t)f->n + 1) * sizeof *c->crossing);
    for (int i = 0; i < f->n; i++) { /* first what ends with a node, then the sums */
        for (int k = 0; k < f->nodes[i]->nout; k++) {
            const fac_value *v = f->nodes[i]->out[k];
            if (base_of(c, v) == v && f->reader[v->id] > i)
                c->crossing[f->reader[v->id]] += f->bytes[v->id];
        }
    }
    for (int i = 0; i < f->n; i++) {
        alive -= c->crossing[i];
        for (int k = 0; k < f->nodes[i]->nout; k++) {
            const fac_value *v = f->nodes[i]->out[k];
            if (base_of(c, v) != v) continue;
            if (f->reader[v->id] > i) alive += f->bytes[v->id];
            if (f->saved[v->id]) saved += f->bytes[v->id];
        }
        c->crossing[i] = alive;
        c->saved[i] = saved;
    }
}

/* Whatever crosses from node `at` to the next is kept. */
static void cut(choice *c, int at) {
    const fac_forward *f = c->f;
    for (int i = 0; i <= at; i++)
        for (int k = 0; k < f->nodes[i]->nout; k++) {
            const fac_value *b = base_of(c, f->nodes[i]->out[k]);
            if (f->reader[b->id] > at) c->keep[b->id] = true;
        }
}

static void keep_from(choice *c, int first) {
    for (int i = first; i < c->f->n; i++)
        for (int k = 0; k < c->f->nodes[i]->nout; k++)
            c->keep[base_of(c, c->f->nodes[i]->out[k])->id] = true;
}

static void keep_cuts(choice *c, int pieces) {
    const fac_forward *f = c->f;
    const size_t total = f->n ? c->saved[f->n - 1] : 0, window = total / (size_t)pieces / 2;
    int from = 0, last = -1;
    keep_all(c, false);
    for (int j = 1; j < pieces; j++) {
        const size_t wanted = total / (size_t)pieces * (size_t)j;
        int best = -1;
        while (from < f->n && c->saved[from] + window < wanted) from++;
        for (int i = from; i < f->n - 1 && c->saved[i] <= wanted + window; i++)
            if (i > last && (best < 0 || c->crossing[i] < c->crossing[best])) best = i;
        if (best < 0) continue;
        cut(c, best);
        last = best;
    }
    keep_from(c, last + 1);
}

/* ---- scopes ---- */

/* The length of the shortest prefix of a scope that one of the patterns fits; 0: none. */
static size_t fits(const char *scope, const char *patterns) {
    char prefix[256], pattern[256];
    if (!scope || strlen(scope) >= sizeof prefix) return 0;
    for (size_t n = 1; n <= strlen(scope); n++) {
        if (scope[n] && scope[n] != '.') continue;
        memcpy(prefix, scope, n);
        prefix[n] = 0;
        for (const char *p = patterns; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
            size_t length = strcspn(p, ",");
            if (length >= sizeof pattern) continue;
            memcpy(pattern, p, length);
            pattern[length] = 0;
            if (!fnmatch(pattern, prefix, 0)) return n;
        }
    }
    return 0;
}

static bool same_piece(const fac_node *a, const fac_node *b, const char *patterns) {
    const size_t n = fits(a->scope, patterns);
    return n && n == fits(b->scope, patterns) && !strncmp(a->scope, b->scope, n);
}

static void keep_outside(choice *c, const char *patterns) {
    const fac_forward *f = c->f;
    keep_all(c, false);
    for (int i = 0; i < f->n; i++) {
        const fac_node *n = f->nodes[i];
        const bool inside = fits(n->scope, patterns) > 0;
        for (int k = 0; k < n->nout; k++) c->keep[base_of(c, n->out[k])->id] |= !inside;
        for (int k = 0; k < n->nin; k++)
            if (fac_forward_makes(f, n->in[k]) && !same_piece(n->in[k]->node, n, patterns))
                c->keep[base_of(c, n->in[k])->id] = true;
    }
}

/* ---- the best ---- */

typedef struct best {
    fac_graph *graph;
    fac_recompute_stat stat;
    size_t limit; /* bytes */
} best;

static bool better(const best *b, const fac_recompute_stat *s) {
    const bool fits_now = s->after <= b->limit, fitted = b->stat.after <= b->limit;
    if (!b->graph || fits_now != fitted) return !b->graph || fits_now;
    if (!fits_now) return s->after < b->stat.after;
    return s->macs != b->stat.macs ? s->macs < b->stat.macs : s->nodes < b->stat.nodes;
}

/* The graph that follows from c->keep, if it is better; false when memory is gone. */
static bool consider(choice *c, best *b) {
    fac_recompute_stat s = b->stat;
    fac_graph *g = fac_recompute_build(c->f, c->keep, &s);
    if (!g) return false;
    s.after = g->error.status ? SIZE_MAX : fac_recompute_peak(g);
    const bool ok = !g->error.status && s.after != SIZE_MAX;
    if (ok && better(b, &s)) {
        fac_graph *old = b->graph;
        b->graph = g;
        b->stat = s;
        g = old;
    }
    fac_graph_free(g);
    return ok;
}

static bool consider_all(choice *c, const fac_recompute_opts *o, best *b) {
    if (o->scopes) {
        keep_outside(c, o->scopes);
        return consider(c, b);
    }
    keep_all(c, true);
    b->limit = SIZE_MAX;
    if (!consider(c, b)) return false;
    const fac_recompute_stat none = b->stat;
    const size_t share = (size_t)(o->share * (double)none.after);
    b->limit = o->share > 0 && (!o->bytes || share < o->bytes) ? share : o->bytes;
    if (b->limit && none.after <= b->limit) return true;
    keep_heavy(c);
    if (!consider(c, b)) return false;
    measure(c);
    for (int pieces = 2; pieces <= c->f->n / 2 && pieces <= 128;
         pieces += pieces < 8 ? 1 : pieces / 3) {
        keep_cuts(c, pieces);
        if (!consider(c, b)) return false;
    }
    return true;
}

fac_graph *fac_graph_recompute(const fac_graph *g, const fac_recompute_opts *o,
                               fac_recompute_stat *stat) {
    fac_forward f;
    choice c = { .f = &f };
    best b = { .graph = NULL };
    bool ok = fac_forward_new(g, &f) && !g->error.status;
    if (ok) {
        c.keep = fac_alloc((size_t)g->ids + 1, sizeof *c.keep);
        c.need = fac_alloc((size_t)g->ids + 1, sizeof *c.need);
        c.crossing = fac_alloc((size_t)f.n + 1, sizeof *c.crossing);
        c.saved = fac_alloc((size_t)f.n + 1, sizeof *c.saved);
        b.stat.before = fac_recompute_peak(g);
        ok = c.keep && c.need && c.crossing && c.saved && b.stat.before != SIZE_MAX;
    }
    for (int i = 0; i < f.n && ok; i++) {
        double macs;
        fac_forward_heavy(f.nodes[i], &macs);
        b.stat.forward += macs;
    }
    ok = ok && consider_all(&c, o, &b);
    fac_forward_free(&f);
    fac_release(c.keep);
    fac_release(c.need);
    fac_release(c.crossing);
    fac_release(c.saved);
    if (!ok) {
        fac_graph_free(b.graph);
        b.graph = g->error.status ? fac_graph_clone(g) : NULL;
    }
    if (stat && b.graph) *stat = b.stat;
    return b.graph;
}
