/* Memory over time: which results are alive while a layer runs, under an ideal allocator that
 * reuses every byte at once and with nothing in place.  Inputs of the graph are there from the
 * beginning until they were read for the last time, its results until the end; parameters are
 * counted apart. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/cost/report.h"

bool fac_is_unread(const fac_node *n, int i) {
    const unsigned is = fac_port_flags(n, i);
    return (is & FAC_SHAPE_ONLY) || ((is & FAC_HOST) && n->in[i]->known);
}

/* The last layer that reads a value; `end` when the graph gives it back; -1: nobody. */
static int last_read(const fac_value *v, const int *layer_of, int end) {
    int last = v->roots ? end : -1;
    for (const fac_use *u = v->uses; u; u = u->next) {
        if (fac_is_unread(u->node, u->input)) continue;
        const int at = layer_of[u->node->id];
        if (at > last) last = at;
    }
    return last;
}

static void enter(fac_analysis *a, const fac_value *v, int first, const int *layer_of) {
    const int last = last_read(v, layer_of, a->totals.layers);
    if (last < 0 && first < 0) return;    /* an input that nothing reads */
    if (last < 0 && v->index > 0) return; /* an optional result that nobody asked for */
    a->lives[a->nlives++] = (fac_life){ v, first, last < first ? first : last, fac_data_bytes(v) };
}

/* Bytes of everything that a layer reads, each value once, and makes: whatever runs before it, that
 * much must be there. seen[id]: one more than the last layer that was found to read the value. */
static double needs(const fac_node *n, int layer, int *seen) {
    double sum = 0;
    for (int i = 0; i < n->nin; i++) {
        const fac_value *v = n->in[i];
        if (!v || !fac_is_data(v) || fac_is_unread(n, i) || seen[v->id] == layer + 1) continue;
        seen[v->id] = layer + 1;
        sum += fac_data_bytes(v);
    }
    for (int k = 0; k < n->nout; k++)
        if (k == 0 || n->out[k]->uses || n->out[k]->roots) sum += fac_data_bytes(n->out[k]);
    return sum;
}

/* alive[i] by differences: what begins is added, what ended before is taken off. */
static void add_up(fac_analysis *a, double *change, int *seen) {
    const int n = a->totals.layers;
    double now = 0;
    for (int k = 0; k < a->nlives; k++) {
        const fac_life *l = &a->lives[k];
        change[l->first < 0 ? 0 : l->first] += l->bytes;
        if (l->last + 1 < n) change[l->last + 1] -= l->bytes;
    }
    for (int i = 0; i < n; i++) {
        now += change[i];
        a->layers[i].alive = now;
        if (now > a->totals.peak) {
            a->totals.peak = now;
            a->totals.peak_layer = i;
        }
        const double own = needs(a->nodes[i], i, seen);
        if (own > a->totals.bound) a->totals.bound = own;
    }
}

fac_status fac_find_lives(fac_analysis *a, fac_error *err) {
    const fac_graph *g = a->graph;
    const int n = a->totals.layers;
    size_t values = g->ninputs;
    for (int i = 0; i < n; i++) values += (size_t)a->nodes[i]->nout;
    int *layer_of = fac_alloc((size_t)g->ids + 1, sizeof *layer_of);
    double *change = fac_alloc((size_t)n + 1, sizeof *change);
    a->lives = fac_arena_alloc(&a->memory, values + 1, sizeof *a->lives);
    const bool there = layer_of && change && a->lives;
    for (uint32_t k = 0; there && k <= g->ids; k++) layer_of[k] = -1;
    for (int i = 0; there && i < n; i++) layer_of[a->nodes[i]->id] = i;
    for (size_t k = 0; there && k < g->ninputs; k++) enter(a, g->inputs[k], -1, layer_of);
    for (int i = 0; there && i < n; i++)
        for (int k = 0; k < a->nodes[i]->nout; k++) enter(a, a->nodes[i]->out[k], i, layer_of);
    if (there) {
        memset(layer_of, 0, ((size_t)g->ids + 1) * sizeof *layer_of);
        add_up(a, change, layer_of);
    }
    fac_release(layer_of);
    fac_release(change);
    return there ? FAC_OK : fac_raise_memory(err, "the lives of %zu values", values);
}

static int larger_first(const void *x, const void *y) {
    const fac_alive *a = x, *b = y;
    return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes)
                                : (a->layer > b->layer) - (a->layer < b->layer);
}

int fac_analysis_alive(const fac_analysis *a, int i, fac_alive *to, int max) {
    int n = 0;
    for (int k = 0; k < a->nlives; k++) {
        const fac_life *l = &a->lives[k];
        if (l->first > i || l->last < i) continue;
        const fac_alive own = { l->first, l->first < 0 ? l->value->name : a->layers[l->first].name,
                                l->bytes };
        if (n < max) {
            to[n] = own;
        } else if (max > 0) { /* full: the smallest gives way */
            int least = 0;
            for (int j = 1; j < max; j++)
                if (to[j].bytes < to[least].bytes) least = j;
            if (to[least].bytes < own.bytes) to[least] = own;
        }
        n++;
    }
    if (max > 0) qsort(to, (size_t)(n < max ? n : max), sizeof *to, larger_first);
    return n;
}
