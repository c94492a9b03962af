/* See min_cut.h.  The cheapest choice is a minimum cut (Ford and Fulkerson 1956; as pairwise
 * energies: Greig, Porteous and Seheult 1989): things are nodes between a source (side 0) and a
 * sink (side 1), every cost is an edge that the choice cuts through.
 *
 *     alone   on_1: source -> thing     on_0: thing -> sink
 *     apart   a on 0, b on 1: a -> b    a on 1, b on 0: b -> a
 *
 * The flow that saturates the cut is found by Dinic's algorithm: shortest paths first, all of one
 * length at once. */
#include "base/error.h"
#include "base/memory.h"
#include "plan/min_cut.h"

/* The edge against it is the one at index ^ 1. */
typedef struct edge {
    int to, next;
    double room;
} edge;

struct fac_sides {
    int nodes, source, sink;
    int *first, *level, *at, *queue; /* by node; at: the edge that is looked at */
    edge *edges;
    size_t n, room;
    double least; /* less is nothing: what is left of sums of doubles */
    bool failed;
};

fac_sides *fac_sides_new(int things) {
    fac_sides *s = fac_alloc(1, sizeof *s);
    if (!s) return NULL;
    s->nodes = things + 2;
    s->source = things;
    s->sink = things + 1;
    s->first = fac_alloc((size_t)s->nodes * 4, sizeof *s->first);
    if (!s->first) {
        fac_release(s);
        return NULL;
    }
    s->level = s->first + s->nodes;
    s->at = s->level + s->nodes;
    s->queue = s->at + s->nodes;
    for (int i = 0; i < s->nodes; i++) s->first[i] = -1;
    return s;
}

void fac_sides_free(fac_sides *s) {
    if (!s) return;
    fac_release(s->first);
    fac_release(s->edges);
    fac_release(s);
}

static void join(fac_sides *s, int a, int b, double forth, double back) {
    if (forth <= 0 && back <= 0) return;
    if (!fac_reserve(&s->edges, &s->room, s->n + 2, sizeof *s->edges)) {
        s->failed = true;
        return;
    }
    s->edges[s->n] = (edge){ b, s->first[a], forth };
    s->edges[s->n + 1] = (edge){ a, s->first[b], back };
    s->first[a] = (int)s->n;
    s->first[b] = (int)s->n + 1;
    s->n += 2;
    const double most = forth > back ? forth : back;
    if (s->least == 0 || 1e-9 * most < s->least) s->least = 1e-9 * most;
}

void fac_sides_alone(fac_sides *s, int thing, double on_0, double on_1) {
    const double both = on_0 < on_1 ? on_0 : on_1; /* is paid in any case */
    if (on_1 > both) join(s, s->source, thing, on_1 - both, 0);
    if (on_0 > both) join(s, thing, s->sink, on_0 - both, 0);
}

void fac_sides_apart(fac_sides *s, int a, int b, double a_on_0, double a_on_1) {
    if (a != b) join(s, a, b, a_on_0, a_on_1);
}

/* How far each node is from the source through edges with room; is the sink among them? */
static bool levels(fac_sides *s) {
    int n = 0;
    for (int i = 0; i < s->nodes; i++) {
        s->level[i] = -1;
        s->at[i] = s->first[i];
    }
    s->level[s->source] = 0;
    s->queue[n++] = s->source;
    for (int i = 0; i < n; i++)
        for (int e = s->first[s->queue[i]]; e >= 0; e = s->edges[e].next) {
            const int to = s->edges[e].to;
            if (s->edges[e].room <= s->least || s->level[to] >= 0) continue;
            s->level[to] = s->level[s->queue[i]] + 1;
            s->queue[n++] = to;
        }
    return s->level[s->sink] >= 0;
}

/* Pushes one path's flow: walks on by one level each, back where no way leads on; the path's edges
 * are kept in the queue. */
static bool push(fac_sides *s) {
    int *path = s->queue, n = 0, at = s->source;
    while (at != s->sink) {
        int e = s->at[at];
        while (e >= 0 &&
               (s->edges[e].room <= s->least || s->level[s->edges[e].to] != s->level[at] + 1))
            e = s->edges[e].next;
        s->at[at] = e;
        if (e >= 0) {
            path[n++] = e;
            at = s->edges[e].to;
        } else if (n) {
            at = s->edges[path[--n] ^ 1].to;
            s->at[at] = s->edges[s->at[at]].next;
        } else
            return false;
    }
    double flow = s->edges[path[0]].room;
    for (int i = 1; i < n; i++)
        if (s->edges[path[i]].room < flow) flow = s->edges[path[i]].room;
    for (int i = 0; i < n; i++) {
        s->edges[path[i]].room -= flow;
        s->edges[path[i] ^ 1].room += flow;
    }
    return true;
}

fac_status fac_sides_choose(fac_sides *s, bool *side, fac_error *err) {
    if (s->failed)
        return fac_raise(err, FAC_E_NOMEM, "no memory to choose among %d things", s->nodes - 2);
    while (levels(s))
        while (push(s)) {}
    /* what the sink can be reached from must be on its side; all else may stay on side 0 */
    int n = 0;
    for (int i = 0; i < s->nodes; i++) s->level[i] = -1;
    s->level[s->sink] = 0;
    s->queue[n++] = s->sink;
    for (int i = 0; i < n; i++)
        for (int e = s->first[s->queue[i]]; e >= 0; e = s->edges[e].next) {
            const int from = s->edges[e].to;
            if (s->edges[e ^ 1].room <= s->least || s->level[from] >= 0) continue;
            s->level[from] = 0;
            s->queue[n++] = from;
        }
    for (int i = 0; i < s->nodes - 2; i++) side[i] = s->level[i] >= 0;
    return FAC_OK;
}
