/* Many small units of work for a pool: each task takes a run of neighbours, so that what it sets up
 * pays. */
#ifndef FACULA_CPU_RANGES_H
#define FACULA_CPU_RANGES_H
#include <stdint.h>
#include "base/threads.h"

typedef void fac_range_task(void *arg, int64_t first, int64_t last, int thread);

typedef struct fac_ranges {
    fac_range_task *f;
    void *arg;
    int64_t units;
    int shares;
} fac_ranges;

static inline void fac_ranges_item(void *arg, int item, int thread) {
    const fac_ranges *r = (const fac_ranges *)arg;
    int64_t each = r->units / r->shares,
            more = r->units % r->shares; /* the first `more` take one more */
    int64_t first = each * item + (item < more ? item : more);
    r->f(r->arg, first, first + each + (item < more), thread);
}

/* f on [0, units) in at most `shares` runs; one run, on this thread, when it is not worth more. */
static inline void fac_parallel_ranges(const fac_pool *pool, int64_t units, int shares,
                                       fac_range_task *f, void *arg) {
    fac_ranges r = { f, arg, units, units < shares ? (int)units : shares };
    if (r.shares <= 1)
        f(arg, 0, units, 0);
    else
        fac_parallel(pool, r.shares, fac_ranges_item, &r);
}
#endif
