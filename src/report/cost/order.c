/* An order of execution that needs less memory.
 *
 * The layers fall into stretches: a stretch ends where every result that is read later comes from
 * its last layer, so what is alive there is the same in any order, and stretches can be searched
 * one by one.  (Not so if a result of the graph is made in the middle of one and read by nobody: it
 * might wait.  The answer is not called exact then.)  In a stretch of up to 64 layers the states
 * are sets of layers that have run (closed under what they need); what is alive follows from the
 * set alone.  Level by level, with one more layer each, the least peak that leads to each set is
 * kept, and sets that cannot beat the order known so far are dropped.  Where there are more sets
 * than STATES, or more layers than bits, a greedy order is tried instead: the layer that leaves the
 * least memory after goes first. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/cost/report.h"

enum { BITS = 64, STATES = 1 << 16 };

/* A value as the search sees it. */
typedef struct item {
    double bytes;
    int reads, left, *readers;
    bool stays;
} item;

typedef struct search {
    const fac_analysis *a;
    fac_arena memory;
    item *items;        /* of each life */
    int **uses, *nuses; /* by layer: lives that it reads, each once */
    int *made,
        *first_made; /* by layer: how many lives it makes, and the first (they lie together) */
    int *order;
    double base, peak;
    bool exact;
} search;

/* ---- what layers read and make ---- */

/* read[l]: the last life that was found to be read by layer l. */
static bool mark_reads(search *s, const int *layer_of, int *read, int life) {
    const fac_value *v = s->a->lives[life].value;
    item *it = &s->items[life];
    int n = 0;
    for (const fac_use *u = v->uses; u; u = u->next) n++;
    it->readers = fac_arena_alloc(&s->memory, (size_t)n + 1, sizeof *it->readers);
    if (!it->readers) return false;
    for (const fac_use *u = v->uses; u; u = u->next) {
        const int at = layer_of[u->node->id];
        const unsigned is = fac_port_flags(u->node, u->input);
        if (at < 0 || (is & FAC_SHAPE_ONLY) || ((is & FAC_HOST) && v->known) || read[at] == life)
            continue;
        read[at] = life;
        it->readers[it->reads++] = at;
    }
    it->bytes = s->a->lives[life].bytes;
    it->stays = v->roots > 0;
    it->left = it->reads;
    return true;
}

static bool prepare(search *s) {
    const fac_analysis *a = s->a;
    const size_t n = (size_t)a->totals.layers + 1;
    int *layer_of = fac_arena_alloc(&s->memory, (size_t)a->graph->ids + 1, sizeof *layer_of);
    int *read = fac_arena_alloc(&s->memory, n, sizeof *read);
    s->items = fac_arena_alloc(&s->memory, (size_t)a->nlives + 1, sizeof *s->items);
    s->uses = fac_arena_alloc(&s->memory, n, sizeof *s->uses);
    s->nuses = fac_arena_alloc(&s->memory, n, sizeof *s->nuses);
    s->made = fac_arena_alloc(&s->memory, n, sizeof *s->made);
    s->first_made = fac_arena_alloc(&s->memory, n, sizeof *s->first_made);
    if (!layer_of || !read || !s->items || !s->uses || !s->nuses || !s->made || !s->first_made)
        return false;
    for (uint32_t k = 0; k <= a->graph->ids; k++) layer_of[k] = -1;
    for (int i = 0; i < a->totals.layers; i++) {
        layer_of[a->nodes[i]->id] = i;
        read[i] = -1;
    }
    for (int k = 0; k < a->nlives; k++) {
        if (!mark_reads(s, layer_of, read, k)) return false;
        for (int r = 0; r < s->items[k].reads; r++) s->nuses[s->items[k].readers[r]]++;
        const int by = a->lives[k].first;
        if (by >= 0 && !s->made[by]++) s->first_made[by] = k;
    }
    for (int i = 0; i < a->totals.layers; i++) {
        if (!(s->uses[i] = fac_arena_alloc(&s->memory, (size_t)s->nuses[i] + 1, sizeof **s->uses)))
            return false;
        s->nuses[i] = 0;
    }
    for (int k = 0; k < a->nlives; k++)
        for (int r = 0; r < s->items[k].reads; r++)
            s->uses[s->items[k].readers[r]][s->nuses[s->items[k].readers[r]]++] = k;
    return true;
}

static double made_bytes(const search *s, int layer) {
    double sum = 0;
    for (int k = 0; k < s->made[layer]; k++) sum += s->items[s->first_made[layer] + k].bytes;
    return sum;
}

/* Results that nothing reads are gone at once. */
static double wasted(const search *s, int layer) {
    double sum = 0;
    for (int k = 0; k < s->made[layer]; k++) {
        const item *it = &s->items[s->first_made[layer] + k];
        if (!it->reads && !it->stays) sum += it->bytes;
    }
    return sum;
}

/* ---- one stretch: layers first..last ---- */

typedef struct stretch {
    int first, n;
    uint64_t needs[BITS];
    double start;
} stretch;

/* Bytes that come free when a layer runs after those of `done` (bits; NULL: by the counters of the
 * items). */
static double freed(const search *s, const stretch *r, int layer, const uint64_t *done) {
    double sum = wasted(s, layer);
    for (int k = 0; k < s->nuses[layer]; k++) {
        const item *it = &s->items[s->uses[layer][k]];
        bool last = !it->stays;
        if (!done) last &= it->left == 1;
        for (int j = 0; done && last && j < it->reads; j++) {
            const int at = it->readers[j] - r->first;
            last = it->readers[j] == layer || (at < r->n && (*done >> at & 1));
        }
        if (last) sum += it->bytes;
    }
    return sum;
}

typedef struct state {
    uint64_t done;
    double live, peak;
    int from;
    uint8_t layer;
} state;

/* The state of this set, or where it belongs. */
static int *slot_of(int *table, size_t room, const state *states, uint64_t done) {
    uint64_t h = done * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(h >> 40) % room;
    while (table[i] && states[table[i] - 1].done != done) i = (i + 1) % room;
    return &table[i];
}

/* Writes the best order of the stretch that stays below `limit`; false: there is none, or too many
 * sets. */
static bool best_order(search *s, const stretch *r, double limit, int *order, double *peak) {
    const int most = r->n < 16 ? 1 << r->n : STATES; /* sets of r->n layers */
    const size_t room = 2 * (size_t)most;
    state *states = fac_alloc((size_t)most, sizeof *states);
    int *table = fac_alloc(room, sizeof *table), n = 0, level = 0, end = 0;
    bool fits = states && table;
    if (fits) states[n++] = (state){ .live = r->start, .peak = 0, .from = -1 };
    for (int step = 0; fits && step < r->n; step++) {
        end = n;
        memset(table, 0, room * sizeof *table);
        for (int k = level; k < end && fits; k++) {
            for (int j = 0; j < r->n && fits; j++) {
                const state now = states[k];
                if ((now.done >> j & 1) || (r->needs[j] & ~now.done)) continue;
                const double during = now.live + made_bytes(s, r->first + j);
                const double top = during > now.peak ? during : now.peak;
                if (top >= limit) continue;
                const uint64_t done = now.done | 1ull << j;
                int *at = slot_of(table, room, states, done);
                if (*at && states[*at - 1].peak <= top) continue;
                if (!*at) {
                    if (n == most)
                        fits = false;
                    else
                        *at = ++n;
                }
                if (fits)
                    states[*at - 1] = (state){ done, during - freed(s, r, r->first + j, &now.done),
                                               top, k, (uint8_t)j };
            }
        }
        level = end;
    }
    const bool found = fits && n > end;
    if (found) *peak = states[end].peak;
    for (int k = end, i = r->n - 1; found && i >= 0; k = states[k].from)
        order[i--] = r->first + states[k].layer;
    if (!fits) s->exact = false;
    fac_release(states);
    fac_release(table);
    return found;
}

/* Runs the layers of an order through the counters: its peak, and what is alive after it. */
static double replay(search *s, const int *order, int n, double live, double *after) {
    double peak = 0;
    for (int i = 0; i < n; i++) {
        const double during = live + made_bytes(s, order[i]);
        if (during > peak) peak = during;
        live = during - freed(s, NULL, order[i], NULL);
        for (int k = 0; k < s->nuses[order[i]]; k++) s->items[s->uses[order[i]][k]].left--;
    }
    *after = live;
    return peak;
}

static void undo(search *s, const int *order, int n) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s->nuses[order[i]]; k++) s->items[s->uses[order[i]][k]].left++;
}

/* Layers that are ready, the one that leaves the least after on top, then the one that stood
 * first.  What a layer frees grows when it becomes the last reader of a value: it enters again
 * then, and its older entries count no more. */
typedef struct entry {
    double change;
    int layer;
} entry;
typedef struct heap {
    entry *at;
    size_t n, room;
} heap;

static bool before(const entry *x, const entry *y) {
    return x->change < y->change || (x->change <= y->change && x->layer < y->layer);
}

static bool heap_put(heap *h, entry e) {
    if (!fac_reserve(&h->at, &h->room, h->n + 1, sizeof *h->at)) return false;
    size_t i = h->n++;
    for (; i && before(&e, &h->at[(i - 1) / 2]); i = (i - 1) / 2) h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = e;
    return true;
}

static entry heap_take(heap *h) {
    const entry top = h->at[0], last = h->at[--h->n];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < h->n) {
        if (child + 1 < h->n && before(&h->at[child + 1], &h->at[child])) child++;
        if (!before(&h->at[child], &last)) break;
        h->at[i] = h->at[child];
        i = child;
    }
    if (h->n) h->at[i] = last;
    return top;
}

/* waits: by layer, values that are still to be made; -1: it ran. */
typedef struct greedy {
    search *s;
    heap ready;
    int first, n, *waits;
} greedy;

static bool make_ready(greedy *g, int layer) {
    return heap_put(&g->ready,
                    (entry){ made_bytes(g->s, layer) - freed(g->s, NULL, layer, NULL), layer });
}

static bool run_layer(greedy *g, int layer) {
    search *s = g->s;
    bool good = true;
    g->waits[layer - g->first] = -1;
    for (int k = 0; k < s->nuses[layer]; k++) {
        item *it = &s->items[s->uses[layer][k]];
        if (--it->left != 1) continue;
        for (int r = 0; r < it->reads && good;
             r++) { /* the last one that reads it, where it is ready */
            const int at = it->readers[r] - g->first;
            if (at < g->n && g->waits[at] == 0) good = make_ready(g, it->readers[r]);
        }
    }
    for (int k = 0; k < s->made[layer]; k++) {
        const item *it = &s->items[s->first_made[layer] + k];
        for (int r = 0; r < it->reads && good; r++)
            if (it->readers[r] < g->first + g->n && !--g->waits[it->readers[r] - g->first])
                good = make_ready(g, it->readers[r]);
    }
    return good;
}

static bool greedy_order(search *s, int first, int n, int *order) {
    greedy g = { s, { 0 }, first, n, fac_alloc((size_t)n, sizeof *g.waits) };
    int done = 0;
    bool good = g.waits != NULL;
    for (int j = 0; good && j < n; j++)
        for (int k = 0; k < s->nuses[first + j]; k++)
            g.waits[j] += s->a->lives[s->uses[first + j][k]].first >= first;
    for (int j = 0; good && j < n; j++)
        if (!g.waits[j]) good = make_ready(&g, first + j);
    while (good && g.ready.n) {
        const int layer = heap_take(&g.ready).layer;
        if (g.waits[layer - first]) continue;
        order[done++] = layer;
        good = run_layer(&g, layer);
    }
    undo(s, order, done);
    fac_release(g.waits);
    fac_release(g.ready.at);
    return good && done == n;
}

static void needs_of(const search *s, stretch *r) {
    for (int j = 0; j < r->n; j++)
        for (int k = 0; k < s->nuses[r->first + j]; k++) {
            const int by = s->a->lives[s->uses[r->first + j][k]].first;
            if (by >= r->first) r->needs[j] |= 1ull << (by - r->first);
        }
}

/* Whether every layer but the last is needed by another one of the stretch. */
static bool leads_to_its_end(const search *s, int first, int n) {
    for (int i = first; i < first + n - 1; i++) {
        bool read = false;
        for (int k = 0; k < s->made[i]; k++) read |= s->items[s->first_made[i] + k].reads > 0;
        if (!read) return false;
    }
    return true;
}

static fac_status search_stretch(search *s, int first, int n, fac_error *err) {
    stretch r = { .first = first, .n = n, .start = s->base };
    double peak, after, other;
    int *order = s->order + first, *trial = fac_alloc((size_t)n, sizeof *trial);
    if (!trial) return fac_raise_memory(err, "the orders of %d layers", n);
    for (int i = 0; i < n; i++) order[i] = first + i;
    peak = replay(s, order, n, s->base, &after);
    undo(s, order, n);
    if (first + n < s->a->totals.layers && !leads_to_its_end(s, first, n)) s->exact = false;
    if (n > 2) {
        if (greedy_order(s, first, n, trial)) {
            other = replay(s, trial, n, s->base, &after);
            undo(s, trial, n);
            if (other < peak) peak = other, memcpy(order, trial, (size_t)n * sizeof *trial);
        }
        if (n > BITS) {
            s->exact = false;
        } else {
            needs_of(s, &r);
            if (best_order(s, &r, peak, trial, &other))
                peak = other, memcpy(order, trial, (size_t)n * sizeof *trial);
        }
    }
    peak = replay(s, order, n, s->base, &s->base);
    if (peak > s->peak) s->peak = peak;
    fac_release(trial);
    return FAC_OK;
}

/* A stretch ends after layer i when no later layer reads any value but those that layer i makes.
 */
static fac_status search_all(search *s, fac_error *err) {
    const fac_analysis *a = s->a;
    int first = 0, life = 0, reach = -1;
    for (int k = 0; k < a->nlives; k++)
        if (a->lives[k].first < 0) s->base += a->lives[k].bytes;
    for (; life < a->nlives && a->lives[life].first < 0; life++)
        for (int r = 0; r < s->items[life].reads; r++)
            if (s->items[life].readers[r] > reach) reach = s->items[life].readers[r];
    for (int i = 0; i < a->totals.layers; i++) {
        if (reach <= i) {
            FAC_TRY(search_stretch(s, first, i + 1 - first, err));
            first = i + 1;
        }
        for (int k = 0; k < s->made[i]; k++) {
            const item *it = &s->items[s->first_made[i] + k];
            for (int r = 0; r < it->reads; r++)
                if (it->readers[r] > reach) reach = it->readers[r];
        }
    }
    return first < a->totals.layers ? search_stretch(s, first, a->totals.layers - first, err)
                                    : FAC_OK;
}

fac_status fac_analysis_order(const fac_analysis *a, int *order, double *peak, bool *exact,
                              fac_error *err) {
    search s = { .a = a, .order = order, .exact = true };
    fac_status status = prepare(&s)
                            ? search_all(&s, err)
                            : fac_raise_memory(err, "the orders of %d layers", a->totals.layers);
    fac_arena_free(&s.memory);
    if (status) return status;
    *peak = s.peak;
    if (exact) *exact = s.exact;
    return FAC_OK;
}
