/* The machine at its best, measured: arithmetic of all threads, reading out of each cache and
 * memory, copying, and what it costs to start all threads and wait for them.  Every number is the
 * best of several tries: it is a limit, not an average. */
#include <math.h>
#include <string.h>
#include "backends/cpu/device/cpu.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

enum { TRIES = 15, FORKS = 200, LARGEST = 256 << 20, LEAST = 64 << 20 };

static const double ENOUGH =
    1e-3; /* seconds of one try: short, so that others leave some of them alone */
static const double PATIENCE = 50e-6; /* for threads that do not come */

/* One measurement: every thread does the same on a part of its own. */
typedef struct job {
    const fac_peak_kernels *k;
    int64_t times;
    const float *from;
    float *to;
    size_t part;        /* floats of one thread */
    _Atomic float sink; /* results are used: nothing can be left out */
} job;

static void arithmetic(void *arg, int i, int thread) {
    job *j = arg;
    (void)i, (void)thread;
    j->sink = j->k->multiply_add(j->times);
}
static void reading(void *arg, int i, int thread) {
    job *j = arg;
    (void)thread;
    for (int64_t k = 0; k < j->times; k++)
        j->sink = j->k->read(j->from + (size_t)i * j->part, j->part);
}
static void copying(void *arg, int i, int thread) {
    job *j = arg;
    (void)thread;
    const size_t at = (size_t)i * j->part;
    for (int64_t k = 0; k < j->times; k++)
        memcpy(j->to + at, j->from + at, j->part * sizeof(float));
}

/* Nobody leaves before all have come: else the caller would be through with all the parts before
 * the first thread is awake. */
typedef struct meeting {
    _Atomic int come;
    int all;
} meeting;
static void meet(void *arg, int i, int thread) {
    meeting *m = arg;
    (void)i, (void)thread;
    m->come++;
    for (double start = 0; m->come < m->all;) {
        const double t = fac_seconds();
        if (start == 0) start = t;
        if (t - start > PATIENCE) return;
    }
}

/* Seconds of one repetition: as many are done as take a while. */
static double best_of(const fac_pool *pool, int threads, fac_task *task, job *j) {
    double best = INFINITY;
    j->times = 1;
    for (int k = 0; k < TRIES; k++) {
        double start = fac_seconds();
        fac_parallel(pool, threads, task, j);
        double seconds = fac_seconds() - start;
        if (seconds < ENOUGH / 2 && j->times < INT64_MAX / 64) {
            const double more = seconds > 0 ? 1.2 * ENOUGH / seconds : 64;
            j->times = (int64_t)((double)j->times * fmin(fmax(more, 2), 64)) + 1;
            k = -1;
            continue;
        }
        best = fmin(best, seconds / (double)j->times);
    }
    return best;
}

static double fork_join(const fac_pool *pool) {
    double best = INFINITY;
    for (int k = 0; k < TRIES; k++) {
        double start = fac_seconds();
        for (int i = 0; i < FORKS; i++) {
            meeting m = { 0, pool->threads };
            fac_parallel(pool, pool->threads, meet, &m);
        }
        best = fmin(best, (fac_seconds() - start) / FORKS);
    }
    return best;
}

/* Of all threads, each in `bytes` of its own. */
static double read_rate(const fac_pool *pool, job *j, size_t bytes) {
    j->part = bytes / sizeof(float) / 64 * 64;
    return (double)(j->part * sizeof(float)) * pool->threads /
           best_of(pool, pool->threads, reading, j);
}

fac_status fac_cpu_peaks(fac_device *d, fac_peaks *out, fac_error *err) {
    const fac_cpu *c = fac_cpu_of(d);
    const fac_pool *pool = &c->pool;
    const size_t threads = (size_t)pool->threads, caches[FAC_CACHES] = { c->l1, c->l2, c->l3 };
    /* beyond the last cache, but of one of hundreds of megabytes only a part is ours as a rule */
    const size_t most = c->l3 < LARGEST / 4 ? 4 * c->l3 : LARGEST,
                 memory = most < LEAST ? LEAST : most;
    float *from = fac_alloc_aligned(memory);
    if (!from)
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %zu bytes to measure with", d->name,
                         memory);
    memset(from, 0, memory);
    job j = { .k = c->simd->peak, .from = from, .to = from + memory / sizeof(float) / 2 };
    fac_peaks p = { .threads = pool->threads };
    p.flops_one = j.k->operations / best_of(pool, 1, arithmetic, &j);
    p.flops = j.k->operations * (double)threads / best_of(pool, pool->threads, arithmetic, &j);
    for (int k = 0; k < FAC_CACHES; k++) {
        /* half of a cache, which is in it for sure; the third one is shared, and the second must
         * not hold the part */
        size_t bytes = caches[k] / 2 / (k == 2 ? threads : 1);
        p.cache[k] = caches[k];
        if (k == 2 && bytes > 4 * c->l2) bytes = 4 * c->l2;
        if (bytes * threads > memory || bytes < 4096 || (k == 2 && bytes <= c->l2)) continue;
        p.cache_read[k] = read_rate(pool, &j, bytes);
    }
    p.memory_read = read_rate(pool, &j, memory / threads);
    j.part /= 2; /* from one half to the other */
    p.memory_copy = 2 * (double)(j.part * sizeof(float)) * (double)threads /
                    best_of(pool, pool->threads, copying, &j);
    p.fork_join = fork_join(pool);
    fac_release_aligned(from);
    *out = p;
    return FAC_OK;
}
