/* Whether the two cores of a pool have no cache in common now.  In a virtual machine that changes
 * by the second, with the host's cores that the two run on.
 *
 * A line goes to and fro between them, which takes 60 ns in a cache that both have and 300 where
 * they have none (measured on an EPYC of Zen 4).  Of more than two cores nothing has been measured,
 * so they count as near. */
#include "backends/cpu/device/shared_cache.h"
#include "base/clock.h"

enum {
    ROUNDS = 6,
    SPINS = 1500,
    FAR = 150,
    GOOD = 2000000,
    AGAIN = 200000
}; /* FAR, GOOD, AGAIN: ns */

/* Each has a line; ns: of a round, 0: the other one did not come. */
typedef struct meeting {
    _Alignas(128) atomic_int line[2][32];
    int64_t ns;
} meeting;

static bool wait_for(atomic_int *x, int value) {
    for (int i = 0; i < SPINS; i++)
        if (atomic_load_explicit(x, memory_order_acquire) == value) return true;
    return false;
}

static void meet(void *arg, int me, int thread) {
    meeting *m = arg;
    int64_t start = 0;
    (void)thread;
    for (int round = 1; round <= ROUNDS; round++) {
        if (!me) atomic_store_explicit(m->line[0], round, memory_order_release);
        if (!wait_for(m->line[!me], round)) return;
        if (me)
            atomic_store_explicit(m->line[1], round, memory_order_release);
        else if (round == 1)
            start = fac_now_ns();
    }
    if (!me) m->ns = (fac_now_ns() - start) / (ROUNDS - 1);
}

bool fac_cpu_apart(const fac_cpu *c) {
    fac_apart *a = c->apart;
    const int64_t until = a ? atomic_load_explicit(&a->until, memory_order_relaxed) : 0;
    if (!a || (c->pool.threads != 2 && !until)) return false;
    const int64_t at = fac_now_ns();
    if (at < until) return atomic_load_explicit(&a->far, memory_order_relaxed);
    meeting m = { .ns = 0 };
    fac_parallel(&c->pool, 2, meet, &m);
    if (m.ns) atomic_store_explicit(&a->far, m.ns > FAR, memory_order_relaxed);
    atomic_store_explicit(&a->until, at + (m.ns ? GOOD : AGAIN), memory_order_relaxed);
    return atomic_load_explicit(&a->far, memory_order_relaxed);
}
