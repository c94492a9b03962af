/* random_bits: number i is that of its place, so shares of the elements are dealt to threads at
 * will. */
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/rng.h"
#include "op_list.h"

enum { SERIAL = 2 << 10, SHARES = 4 };

typedef struct plan {
    fac_layout counter, y;
    int64_t count, stream;
    bool wide; /* the counter */
    const fac_cpu *cpu;
} plan;

typedef struct job {
    const plan *p;
    uint64_t key, *y;
} job;

static void range(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    (void)thread;
    fac_random_words_fill(j->key, (uint64_t)j->p->stream, (uint64_t)first, (size_t)(last - first),
                          j->y + first);
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const char *at = (const char *)in[0].memory + in[0].at;
    job j = { p, 0, (uint64_t *)(void *)((char *)out[0].memory + out[0].at) + p->y.offset };
    (void)d, (void)work, (void)err;
    j.key = (uint64_t)(p->wide ? ((const int64_t *)(const void *)at)[p->counter.offset]
                               : ((const int32_t *)(const void *)at)[p->counter.offset]);
    const int shares = p->count < SERIAL ? 1 : SHARES * p->cpu->pool.threads;
    fac_parallel_ranges(&p->cpu->pool, p->count, shares, range, &j);
    return FAC_OK;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const int64_t count = fac_dims_count(&p->out[0].type.dims);
    if (p->node->body[0]) return false;
    fac_want_plain(&p->in[0]);
    fac_want_plain(&p->out[0]);
    o->seconds =
        fac_cpu_speeds.step + fac_cpu_speeds.random * (double)count / fac_cpu_of(d)->pool.threads;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    *q = (plan){ .counter = p->in[0].layout,
                 .y = p->out[0].layout,
                 .count = fac_dims_count(&p->out[0].type.dims),
                 .wide = p->in[0].type.dtype == FAC_I64,
                 .cpu = fac_cpu_of(d) };
    fac_attr_get_int(p->node, "stream", &q->stream);
    *out = q;
    return FAC_OK;
}
const fac_solver fac_cpu_random_bits = { .name = "random_bits/philox",
                                         .op = &fac_op_random_bits,
                                         .rank = 690,
                                         .offer = offer,
                                         .make = make,
                                         .done = fac_solver_done,
                                         .run = run };
