/* See drawing.h.  Where a wire passes a rank there is a knot, a box without width; wires from the
 * same box share their knots, so that a value that is read in many places is drawn as one line with
 * branches. */
#include "report/page/drawing.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

enum { SWEEPS = 12 };
static const double gap = 22, rise = 34, channel = 30; /* between boxes, ranks, columns */

typedef struct knot {
    int rank, place;
    double w, x, key;
} knot;
/* Between knots of neighbouring ranks.  What links are sorted by is copied from the knots: the rank
 * of the upper one, and the places of both. */
typedef struct link {
    int up, down;
    int rank, above, below;
} link;
typedef struct placed {
    int knot, place;
    double key;
} placed;

typedef struct work {
    drawing *d;
    knot *knots; /* the boxes come first */
    int nknots, room;
    link *links;
    int nlinks, room_links, ranks;
    int *order, *start; /* knots by rank and place; where each rank starts */
    int *tree;          /* counts of crossings */
    placed *row;        /* one rank while it is sorted */
} work;

/* ---- ranks and knots ---- */

static void find_ranks(drawing *d) {
    for (int i = 0; i < d->nboxes; i++) d->boxes[i].rank = 0;
    for (int i = 0; i < d->nboxes; i++) /* boxes stand in an order that wires follow */
        for (int k = 0; k < d->nwires; k++)
            if (d->wires[k].to == i && d->boxes[d->wires[k].from].rank + 1 > d->boxes[i].rank)
                d->boxes[i].rank = d->boxes[d->wires[k].from].rank + 1;
    for (int i = d->nboxes - 1; i >= 0;
         i--) { /* what nothing leads to stands just above its first reader */
        int least = -1;
        bool source = true;
        for (int k = 0; k < d->nwires; k++) {
            source &= d->wires[k].to != i;
            const int below = d->boxes[d->wires[k].to].rank;
            if (d->wires[k].from == i && (least < 0 || below < least)) least = below;
        }
        if (source && least > 0) d->boxes[i].rank = least - 1;
    }
}

static int knot_new(work *w, int rank, double width) {
    if (w->nknots == w->room) {
        const int room = 2 * w->room + 64;
        knot *more = fac_resize(w->knots, (size_t)room, sizeof *more);
        if (!more) return -1;
        w->knots = more;
        w->room = room;
    }
    w->knots[w->nknots] = (knot){ .rank = rank, .w = width };
    return w->nknots++;
}

static bool link_new(work *w, int up, int down) {
    if (up < 0 || down < 0) return false;
    if (w->nlinks == w->room_links) {
        const int room = 2 * w->room_links + 64;
        link *more = fac_resize(w->links, (size_t)room, sizeof *more);
        if (!more) return false;
        w->links = more;
        w->room_links = room;
    }
    w->links[w->nlinks++] = (link){ .up = up, .down = down };
    return true;
}

/* passes[from * ranks + rank]: the knot of the box's wires there, counted from 1. */
static bool find_knots(work *w, int *passes) {
    drawing *d = w->d;
    for (int i = 0; i < d->nboxes; i++)
        if (knot_new(w, d->boxes[i].rank, d->boxes[i].w) < 0) return false;
    for (int k = 0; k < d->nwires; k++) {
        const int from = d->wires[k].from, to = d->wires[k].to;
        int at = from;
        for (int r = d->boxes[from].rank + 1; r < d->boxes[to].rank; r++) {
            int *pass = &passes[from * w->ranks + r];
            if (!*pass) {
                if (!link_new(w, at, knot_new(w, r, 2))) return false;
                *pass = w->nknots;
            }
            at = *pass - 1;
        }
        if (!link_new(w, at, to)) return false;
    }
    return true;
}

/* ---- few crossings ---- */

static void place_all(work *w) {
    for (int i = 0; i < w->nknots; i++) w->start[w->knots[i].rank + 1]++;
    for (int r = 0; r < w->ranks; r++) w->start[r + 1] += w->start[r];
    for (int i = 0; i < w->nknots; i++) {
        int *next = &w->tree[w->knots[i].rank];
        w->knots[i].place = *next;
        w->order[w->start[w->knots[i].rank] + (*next)++] = i;
    }
}

/* Links by their upper, then by their lower end. */
static int by_ends(const void *x, const void *y) {
    const link *a = x, *b = y;
    if (a->rank != b->rank) return a->rank - b->rank;
    return a->above != b->above ? a->above - b->above : a->below - b->below;
}
static int by_key(const void *x, const void *y) {
    const placed *a = x, *b = y;
    return a->key != b->key ? (a->key > b->key) - (a->key < b->key) : a->place - b->place;
}
static void sort_links(work *w) {
    for (int k = 0; k < w->nlinks; k++) {
        link *l = &w->links[k];
        l->rank = w->knots[l->up].rank;
        l->above = w->knots[l->up].place;
        l->below = w->knots[l->down].place;
    }
    qsort(w->links, (size_t)w->nlinks, sizeof *w->links, by_ends);
}
static void sort_rank(work *w, int r) {
    const int first = w->start[r], n = w->start[r + 1] - first;
    for (int i = 0; i < n; i++) {
        const int k = w->order[first + i];
        w->row[i] = (placed){ k, w->knots[k].place, w->knots[k].key };
    }
    qsort(w->row, (size_t)n, sizeof *w->row, by_key);
    for (int i = 0; i < n; i++) w->order[first + i] = w->row[i].knot;
}

/* Pairs of links whose ends stand the other way round: a Fenwick tree counts lower ends further
 * right. */
static long crossings(work *w) {
    long count = 0;
    sort_links(w);
    for (int k = 0; k < w->nlinks;) {
        const int rank = w->knots[w->links[k].up].rank, first = k,
                  size = w->start[rank + 2] - w->start[rank + 1];
        memset(w->tree, 0, (size_t)(size + 1) * sizeof *w->tree);
        for (; k < w->nlinks && w->knots[w->links[k].up].rank == rank; k++) {
            const int place = w->knots[w->links[k].down].place + 1;
            int left = 0;
            for (int i = place; i > 0; i -= i & -i) left += w->tree[i];
            count += k - first - left;
            for (int i = place; i <= size; i += i & -i) w->tree[i]++;
        }
    }
    return count;
}

/* Each knot goes to the mean place of its neighbours above (down: of those below). */
static void sweep(work *w, bool down, double *sum, int *count) {
    for (int step = 1; step < w->ranks; step++) {
        const int r = down ? step : w->ranks - 1 - step;
        for (int i = w->start[r]; i < w->start[r + 1]; i++) {
            sum[w->order[i]] = 0;
            count[w->order[i]] = 0;
        }
        for (int k = 0; k < w->nlinks; k++) {
            const int here = down ? w->links[k].down : w->links[k].up,
                      there = down ? w->links[k].up : w->links[k].down;
            if (w->knots[here].rank != r) continue;
            sum[here] += w->knots[there].place, count[here]++;
        }
        for (int i = w->start[r]; i < w->start[r + 1]; i++) {
            knot *n = &w->knots[w->order[i]];
            n->key = count[w->order[i]] ? sum[w->order[i]] / count[w->order[i]] : n->place;
        }
        sort_rank(w, r);
        for (int i = w->start[r]; i < w->start[r + 1]; i++)
            w->knots[w->order[i]].place = i - w->start[r];
    }
}

static void uncross(work *w, double *sum, int *count, int *best) {
    long least = crossings(w);
    memcpy(best, w->order, (size_t)w->nknots * sizeof *best);
    for (int i = 0; i < SWEEPS && least > 0; i++) {
        sweep(w, i % 2 == 0, sum, count);
        const long now = crossings(w);
        if (now >= least) continue;
        least = now;
        memcpy(best, w->order, (size_t)w->nknots * sizeof *best);
    }
    memcpy(w->order, best, (size_t)w->nknots * sizeof *best);
    for (int r = 0; r < w->ranks; r++)
        for (int i = w->start[r]; i < w->start[r + 1]; i++)
            w->knots[w->order[i]].place = i - w->start[r];
}

/* ---- places ---- */

/* Of one rank: as near as can be to the wishes in key, in squares, without touching.  With y = x -
 * (what stands to the left) that is isotonic regression: neighbours that would pass each other
 * share their mean (pool adjacent violators). */
static void settle(work *w, int r, double *mean, int *weight) {
    const int n = w->start[r + 1] - w->start[r], *o = w->order + w->start[r];
    int blocks = 0;
    double left = 0;
    for (int i = 0; i < n; i++) {
        if (i) left += (w->knots[o[i - 1]].w + w->knots[o[i]].w) / 2 + gap;
        mean[blocks] = w->knots[o[i]].key - left;
        weight[blocks++] = 1;
        for (; blocks > 1 && mean[blocks - 2] > mean[blocks - 1]; blocks--) {
            const int a = weight[blocks - 2], b = weight[blocks - 1];
            mean[blocks - 2] = (a * mean[blocks - 2] + b * mean[blocks - 1]) / (a + b);
            weight[blocks - 2] = a + b;
        }
    }
    left = 0;
    for (int i = 0, b = 0, used = 0; i < n; i++) {
        if (i) left += (w->knots[o[i - 1]].w + w->knots[o[i]].w) / 2 + gap;
        w->knots[o[i]].x = mean[b] + left;
        if (++used == weight[b]) b++, used = 0;
    }
}

/* One rank under what it reads (down), or over what reads it; where there is nothing, over or under
 * the others. */
static void align(work *w, int r, bool down, double *sum, int *count) {
    for (int way = 0; way < 2; way++) {
        for (int i = w->start[r]; i < w->start[r + 1]; i++)
            if (!way || !count[w->order[i]]) {
                sum[w->order[i]] = 0;
                count[w->order[i]] = 0;
            }
        for (int k = 0; k < w->nlinks; k++) {
            const bool below = way ? !down : down;
            const int here = below ? w->links[k].down : w->links[k].up,
                      there = below ? w->links[k].up : w->links[k].down;
            if (w->knots[here].rank != r || (way && count[here] > 0)) continue;
            const int sign = way ? -1 : 1; /* negative, so that the first way goes before */
            sum[here] += sign * w->knots[there].x;
            count[here] += sign;
        }
    }
    for (int i = w->start[r]; i < w->start[r + 1]; i++) {
        knot *n = &w->knots[w->order[i]];
        n->key = count[w->order[i]] ? sum[w->order[i]] / count[w->order[i]] : n->x;
    }
}

/* Up and down in turns, at last down: then a chain is a straight line below its first box. */
static void straighten(work *w, double *sum, int *count, double *mean, int *weight) {
    for (int i = 0; i < w->nknots; i++) w->knots[i].key = 0;
    for (int r = 0; r < w->ranks; r++) settle(w, r, mean, weight);
    for (int turn = 0; turn <= SWEEPS; turn++)
        for (int step = 0; step < w->ranks; step++) {
            const int r = turn % 2 ? w->ranks - 1 - step : step;
            align(w, r, turn % 2 == 0, sum, count);
            settle(w, r, mean, weight);
        }
}

/* ---- columns ---- */

/* Whether all that goes from rank r to the next starts in one knot: where a column may end. */
static bool narrow(const work *w, int r) {
    int only = -1;
    for (int k = 0; k < w->nlinks; k++) {
        if (w->knots[w->links[k].up].rank != r) continue;
        if (only >= 0 && only != w->links[k].up) return false;
        only = w->links[k].up;
    }
    return true;
}

static void extent(const work *w, int from, int to, double *least, double *most) {
    *least = INFINITY;
    *most = -INFINITY;
    for (int i = w->start[from]; i < w->start[to]; i++) {
        const knot *n = &w->knots[w->order[i]];
        *least = fmin(*least, n->x - n->w / 2);
        *most = fmax(*most, n->x + n->w / 2);
    }
}

static double height_at(const work *w, int rank) {
    double high = 0;
    for (int i = w->start[rank]; i < w->start[rank + 1]; i++)
        if (w->order[i] < w->d->nboxes) high = fmax(high, w->d->boxes[w->order[i]].h);
    return high;
}

/* Sets columns beside each other and boxes at their heights; column_of, top: by rank. */
static void fold(work *w, double wide, int *column_of, double *top) {
    drawing *d = w->d;
    double least, most, x = 0;
    extent(w, 0, w->ranks, &least, &most);
    const int fit = (int)fmax(1, floor((wide + channel) / (most - least + channel)));
    const int part = (int)fmax(6, ceil((double)w->ranks / fit));
    d->columns = 1;
    for (int r = 0, from = 0; r < w->ranks; r++) {
        column_of[r] = d->columns - 1;
        if (r + 1 - from >= part && w->ranks - r > 4 && narrow(w, r)) from = r + 1, d->columns++;
    }
    for (int r = 0; r < w->ranks;) {
        int end = r;
        double y = 0;
        while (end < w->ranks && column_of[end] == column_of[r]) {
            top[end] = y;
            y += height_at(w, end++) + rise;
        }
        top[w->ranks] = 0;
        extent(w, r, end, &least, &most);
        for (int i = w->start[r]; i < w->start[end]; i++) w->knots[w->order[i]].x += x - least;
        x += most - least + channel;
        d->right[column_of[r]] = x - channel / 2;
        d->height = fmax(d->height, y - rise);
        r = end;
    }
    d->width = x - channel;
}

/* ---- what comes out ---- */

static void give(work *w, const int *passes, const int *column_of, const double *top) {
    drawing *d = w->d;
    int n = 0;
    for (int i = 0; i < d->nboxes; i++) {
        drawing_box *b = &d->boxes[i];
        b->x = w->knots[i].x;
        b->y = top[b->rank];
        b->column = column_of[b->rank];
    }
    for (int k = 0; k < d->nwires; k++) {
        drawing_wire *wire = &d->wires[k];
        const drawing_box *a = &d->boxes[wire->from], *b = &d->boxes[wire->to];
        wire->first = n;
        d->at[n++] = (drawing_point){ a->x, a->y + a->h, a->column };
        for (int r = a->rank + 1; r < b->rank; r++) {
            const double x = w->knots[passes[wire->from * w->ranks + r] - 1].x;
            d->at[n++] = (drawing_point){ x, top[r], column_of[r] };
            d->at[n++] = (drawing_point){ x, top[r] + height_at(w, r), column_of[r] };
        }
        d->at[n++] = (drawing_point){ b->x, b->y, b->column };
        wire->count = n - wire->first;
    }
}

bool fac_drawing_find(drawing *d, double wide) {
    work w = { .d = d };
    if (!d->nboxes) return true;
    find_ranks(d);
    for (int i = 0; i < d->nboxes; i++)
        if (d->boxes[i].rank >= w.ranks) w.ranks = d->boxes[i].rank + 1;
    size_t points = 1;
    for (int k = 0; k < d->nwires; k++)
        points += 2 * (size_t)(d->boxes[d->wires[k].to].rank - d->boxes[d->wires[k].from].rank);
    int *passes = fac_alloc((size_t)d->nboxes * (size_t)w.ranks, sizeof *passes);
    bool good = passes && find_knots(&w, passes);
    const size_t n = (size_t)w.nknots + (size_t)w.ranks + 4;
    int *ints = fac_alloc(6 * n, sizeof *ints);
    double *reals = fac_alloc(3 * n, sizeof *reals);
    w.row = fac_alloc(n, sizeof *w.row);
    d->at = fac_alloc(points, sizeof *d->at);
    d->right = fac_alloc((size_t)w.ranks + 1, sizeof *d->right);
    good = good && ints && reals && w.row && d->at && d->right;
    if (good) {
        w.order = ints;
        w.start = ints + n;
        w.tree = ints + 2 * n;
        int *count = ints + 3 * n, *best = ints + 4 * n, *column_of = ints + 5 * n;
        place_all(&w);
        uncross(&w, reals, count, best);
        straighten(&w, reals, count, reals + n, best);
        fold(&w, wide, column_of, reals + 2 * n);
        give(&w, passes, column_of, reals + 2 * n);
    }
    fac_release(passes);
    fac_release(ints);
    fac_release(reals);
    fac_release(w.row);
    fac_release(w.knots);
    fac_release(w.links);
    return good;
}

void fac_drawing_free(drawing *d) {
    void *const all[] = { d->boxes, d->wires, d->at, d->right };
    for (int k = 0; k < 4; k++) fac_release(all[k]);
    *d = (drawing){ 0 };
}
