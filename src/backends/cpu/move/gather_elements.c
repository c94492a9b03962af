/* Solver "gather_elements": one index for each element of the result.  Exact, any element type of
 * whole bytes, indices of any integer type; of those out of range the first one is told. */
#include "backends/draft.h"
#include "backends/cpu/device/elements.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "op_list.h"

enum { SERIAL = 8 << 10, SHARES = 4, AT_ONCE = 256 };

typedef struct plan {
    fac_elements e;
    int64_t element, x, y;
} plan; /* bytes: of one; where x and y begin */

static bool build(const fac_problem *p, plan *g) {
    if (!fac_elements_of(p, &g->e)) return false;
    g->element = (int64_t)fac_copy_size(p->in[0].type.dtype);
    g->x = p->in[0].layout.offset * g->element;
    g->y = p->out[0].layout.offset * g->element;
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    plan g = { .element = 0 };
    if (!fac_elements_fit(p) || !build(p, &g)) return false;
    const double bytes =
        2 * (double)fac_type_bytes(&p->out[0].type) + (double)fac_type_bytes(&p->in[1].type);
    o->seconds = fac_cpu_speeds.step + bytes / c->bandwidth +
                 fac_cpu_speeds.gathered * (double)g.e.count / c->pool.threads;
    *FAC_DRAFT(o, plan) = g;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    return fac_draft_plan(p, sizeof(plan), out, err);
}
typedef struct job {
    const plan *g;
    const char *x;
    char *y;
    int split;
    fac_picks picks;
} job;

#define PICK(T)                                                                                    \
    do {                                                                                           \
        const T *from = (const T *)j->x + x;                                                       \
        T *to = (T *)j->y + first;                                                                 \
        for (int64_t i = 0; i < n; i++, from += step)                                              \
            if (all || place[i] >= 0) to[i] = from[place[i] * stride];                             \
    } while (0)

static void pick(job *j, int64_t first, int64_t x, int64_t n, int64_t step) {
    const int64_t stride = j->g->e.stride;
    int64_t place[AT_ONCE];
    const bool all = fac_pick_many(&j->picks, first, n, place);
    switch (j->g->element) {
    case 1:
        PICK(uint8_t);
        break;
    case 2:
        PICK(uint16_t);
        break;
    case 4:
        PICK(uint32_t);
        break;
    default:
        PICK(uint64_t);
        break;
    }
}

static void row(void *arg, int64_t first, int64_t x, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; i += AT_ONCE)
        pick(arg, first + i, x + i * step, n - i < AT_ONCE ? n - i : AT_ONCE, step);
}

static void run_turns(void *arg, int64_t first, int64_t last, int thread) {
    job *j = arg;
    (void)thread;
    fac_elements_walk(&j->g->e, j->split, first, last, row, j);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *g = arg;
    const fac_elements *e = &g->e;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    (void)work;
    if (!e->count) return FAC_OK;
    const int shares = e->count < SERIAL ? 1 : SHARES * pool->threads,
              split = fac_elements_split(e, shares, true);
    job j = { g,
              fac_span_bytes(in[0]) + g->x,
              fac_span_bytes(out[0]) + g->y,
              split,
              { fac_span_bytes(in[1]) + e->at, e->dtype, e->bytes, e->count, e->size, e->count } };
    fac_parallel_ranges(pool, split < 0 ? 1 : e->loop[split].count, shares, run_turns, &j);
    return fac_picks_check(&j.picks, err);
}

const fac_solver fac_cpu_gather_elements = { .name = "gather_elements",
                                             .op = &fac_op_gather_elements,
                                             .rank = 920,
                                             .offer = offer,
                                             .make = make,
                                             .done = fac_solver_done,
                                             .run = run };
