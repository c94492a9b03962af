/* One address for each root of the arena: the largest first, each at the lowest place that nothing
 * alive at the same time occupies (greedy by size: Pisarchyk and Lee, 2020).  That takes the square
 * of their number; of more than MANY (a model in thousands of tiles) only the largest are placed
 * so, and the small ones go after them, in the order of their lives, each into the lowest gap that
 * is free then.  Also the two bounds that the plan reports.
 *
 * Scratch that is each thread's own lies after all values.  Where cores have no cache in common, a
 * line that another one has read is written 40 times more slowly than one's own (2.4 GB/s and 97,
 * measured between two parts of an EPYC): values are read by others, and what transforms write in a
 * burst would wait for that. */
#include <stdlib.h>
#include <string.h>
#include "plan/plan.h"

enum { ALIGN = 64, PAGE = 4096, MANY = 2048 };

/* What is some thread's own comes last. */
static int by_size(const void *a, const void *b) {
    const fac_root *x = *(fac_root *const *)a, *y = *(fac_root *const *)b;
    if (x->own != y->own) return x->own - y->own;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y;
}

static bool together(const fac_root *x, const fac_root *y) {
    return x->first <= y->last && y->first <= x->last;
}

/* placed[] is sorted by address. */
static size_t lowest(const fac_root *r, fac_root *const *placed, int n, size_t base) {
    size_t at = base;
    for (int i = 0; i < n; i++) {
        if (!together(r, placed[i])) continue;
        if (placed[i]->at >= at + r->bytes) break;
        if (placed[i]->at + placed[i]->bytes > at) at = placed[i]->at + placed[i]->bytes;
    }
    return at;
}

/* The most that is alive at any one step: the sum of what begins and ends.  change: one number a
 * step and one after. */
static size_t bound(const fac_plan *plan, fac_root *const *roots, int n, size_t *change) {
    size_t most = 0, alive = 0;
    for (int i = 0; i < n; i++) {
        change[roots[i]->first] +=
            roots[i]->bytes; /* wraps where more ends than begins, and the sum comes out right */
        change[roots[i]->last + 1] -= roots[i]->bytes;
    }
    for (int step = 0; step <= plan->nsteps; step++) {
        alive += change[step];
        if (alive > most) most = alive;
    }
    return most;
}

/* Those from address `base` on. */
static void place_large(fac_plan *plan, fac_root **sorted, int n, fac_root **placed, size_t base) {
    for (int i = 0; i < n; i++) {
        fac_root *r = sorted[i];
        r->at = lowest(r, placed, i, base);
        if (r->at + r->bytes > plan->arena_bytes) plan->arena_bytes = r->at + r->bytes;
        int k = i;
        for (; k > 0 && placed[k - 1]->at > r->at; k--) placed[k] = placed[k - 1];
        placed[k] = r;
    }
}

static int by_first(const void *a, const void *b) {
    const fac_root *x = *(fac_root *const *)a, *y = *(fac_root *const *)b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* alive[] is sorted by address and holds what has not ended yet. */
static void place_small(fac_plan *plan, fac_root **roots, int n, fac_root **alive) {
    const size_t base = plan->arena_bytes;
    int count = 0;
    qsort(roots, (size_t)n, sizeof *roots, by_first);
    for (int i = 0; i < n; i++) {
        fac_root *r = roots[i];
        int kept = 0, k = 0;
        for (int j = 0; j < count; j++)
            if (alive[j]->last >= r->first) alive[kept++] = alive[j];
        count = kept;
        r->at = base;
        for (; k < count && alive[k]->at < r->at + r->bytes; k++)
            r->at = alive[k]->at + alive[k]->bytes;
        memmove(alive + k + 1, alive + k, (size_t)(count - k) * sizeof *alive);
        alive[k] = r;
        count++;
        if (r->at + r->bytes > plan->arena_bytes) plan->arena_bytes = r->at + r->bytes;
    }
}

void fac_plan_place(fac_plan *plan) {
    fac_root **sorted =
        fac_arena_alloc(&plan->memory, (size_t)plan->nroots * 2 + 1, sizeof *sorted);
    fac_root **placed = sorted + plan->nroots;
    size_t *change = fac_arena_alloc(&plan->memory, (size_t)plan->nsteps + 2, sizeof *change);
    int n = 0, own = 0;
    plan->arena_bytes = plan->bound_bytes = 0;
    for (int i = 0; i < plan->nroots; i++) {
        fac_root *r = &plan->roots[i];
        if (r->kind != FAC_ROOT_ARENA) continue;
        r->bytes = (r->bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
        if (sorted && change) {
            sorted[n++] = r;
            own += r->own;
        } else { /* no memory to think: everything a place of its own */
            r->at = plan->arena_bytes;
            plan->arena_bytes += r->bytes;
        }
    }
    if (!sorted || !change) return;
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    const int values = n - own, large = values < MANY ? values : MANY;
    place_large(plan, sorted, large, placed, 0);
    if (values > large) place_small(plan, sorted + large, values - large, placed);
    if (own)
        place_large(plan, sorted + values, own, placed,
                    (plan->arena_bytes + PAGE - 1) & ~(size_t)(PAGE - 1));
    plan->bound_bytes = bound(plan, sorted, n, change);
}
