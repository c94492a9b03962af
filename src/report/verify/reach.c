/* Which sides of the corners and jumps of its functions a model's inputs came to.  The smallest and
 * the largest number before each such function become one more output; numbers on both sides of a
 * corner show that both branches were taken. */
#include <math.h>
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "report/verify/verify.h"

enum { MOST = 512 };

typedef struct watch {
    const fac_node *node;
    double at[FAC_STEPS], low, high;
    int count;
} watch;
struct fac_reach {
    watch *w;
    size_t n;
};

/* Computed from inputs, with something to see. */
static bool is_watched(const fac_node *n) {
    return n->op->steps && n->in[0]->time == FAC_RUN && fac_dims_count(&n->in[0]->type.dims) > 0 &&
           fac_dtype_get(n->in[0]->type.dtype)->kind != 't';
}

static fac_status find(fac_reach *r, const fac_graph *g, fac_error *err) {
    r->w = fac_alloc(MOST, sizeof *r->w);
    if (!r->w) return fac_raise(err, FAC_E_NOMEM, "no memory to look at functions");
    for (const fac_node *n = g->first; n && r->n < MOST; n = n->next) {
        watch w = { .node = n, .low = INFINITY, .high = -INFINITY };
        if (!is_watched(n)) continue;
        w.count = n->op->steps(n, w.at);
        if (w.count) r->w[r->n++] = w;
    }
    return FAC_OK;
}

static fac_value *extreme(fac_value *v, fac_dtype as, bool largest) {
    if (v->type.dtype != as) v = fac_cast(v, as);
    v = largest ? fac_reduce_max(v, (fac_dims){ 0 }, false)
                : fac_reduce_min(v, (fac_dims){ 0 }, false);
    return fac_reshape(v, fac_shape(1));
}

fac_status fac_reach_watch(const fac_graph *g, fac_reach **out, fac_graph **watched,
                           fac_error *err) {
    fac_value **map = NULL, *parts[2 * MOST];
    fac_dtype as = FAC_F32;
    fac_reach *r = fac_alloc(1, sizeof *r);
    if (!r) return fac_raise(err, FAC_E_NOMEM, "no memory to look at functions");
    *out = r;
    FAC_TRY(find(r, g, err));
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .keep_dead = true }, &map);
    if (!to) return fac_raise_memory(err, "a model");
    for (size_t k = 0; k < r->n; k++)
        if (r->w[k].node->in[0]->type.dtype == FAC_F64) as = FAC_F64;
    for (size_t k = 0; k < r->n; k++) {
        fac_value *v = map[r->w[k].node->in[0]->id];
        parts[2 * k] = extreme(v, as, false);
        parts[2 * k + 1] = extreme(v, as, true);
    }
    if (r->n) fac_output(to, "verify.reach", fac_concat(parts, (int)(2 * r->n), 0));
    fac_graph_sweep(to);
    *watched = to;
    return FAC_OK;
}

void fac_reach_look(fac_reach *r, const fac_tensor *numbers) {
    double x[2 * MOST];
    if (!r->n || !numbers || !fac_tensor_data(numbers)) return;
    fac_tensor_doubles(numbers, 0, (int64_t)(2 * r->n), x);
    for (size_t k = 0; k < r->n; k++) {
        r->w[k].low = fmin(r->w[k].low, x[2 * k]);
        r->w[k].high = fmax(r->w[k].high, x[2 * k + 1]);
    }
}

/* A side of a corner that no number was on. */
static const char *missed(const watch *w, double *corner) {
    for (int k = 0; k < w->count; k++) {
        *corner = w->at[k];
        if (isfinite(w->at[k]) && !(w->low < w->at[k])) return "below";
        if (isfinite(w->at[k]) && !(w->high > w->at[k])) return "above";
    }
    return NULL;
}

void fac_reach_say(const fac_reach *r, const char *model, char *to, size_t size) {
    size_t count = 0, used = strlen(to);
    for (size_t k = 0; r && k < r->n; k++) {
        double corner = 0;
        char name[100];
        const char *side = missed(&r->w[k], &corner);
        if (!side || count++ > 1) continue;
        fac_node_label(r->w[k].node, name, sizeof name);
        snprintf(to + used, size - used, "%s%s of %s never got a number %s %.6g", used ? "; " : "",
                 name, model, side, corner);
        used = strlen(to);
    }
    if (count > 2) snprintf(to + used, size - used, "; and %zu more", count - 2);
}

void fac_reach_free(fac_reach *r) {
    if (r) fac_release(r->w);
    fac_release(r);
}
