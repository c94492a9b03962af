/* Solver "running": cum_sum of whole numbers and floats along any axis of a contiguous tensor.
 * Lines side by side are added up as vectors.  Whole numbers wrap; floats are added up in f64, as
 * the reference does. */
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/ranges.h"
#include "backends/cpu/device/streams.h"
#include "backends/cpu/move/copy.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "graph/attr.h"
#include "op_list.h"
#include "ops/lines.h"

enum { TOGETHER = 1024, SERIAL = 16 << 10, SHARES = 8 };

typedef struct plan {
    fac_lines l;
    int64_t tiles, size; /* bytes of an element */
    const fac_problem *problem;
    fac_running_kernel *f;
    bool exclusive, reverse;
} plan;

static bool build(const fac_problem *p, const fac_simd *simd, plan *r) {
    const fac_type *x = &p->in[0].type;
    if (!p->in[1].known || p->in[1].known->symbolic || !fac_has_kernels(x->dtype)) return false;
    const int axis = fac_axis(p->in[1].known->v[0], x->dims.n ? x->dims.n : 1);
    if (axis < 0) return false;
    *r = (plan){ .l = fac_lines_of(&x->dims, axis),
                 .size = fac_dtype_get(x->dtype)->block_bytes,
                 .f = simd->streams->integers->running[x->dtype],
                 .exclusive = fac_attr_flag(p->node, "exclusive"),
                 .reverse = fac_attr_flag(p->node, "reverse") };
    r->tiles = (r->l.inner + TOGETHER - 1) / TOGETHER;
    return r->f != NULL;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    plan r;
    if (!build(p, c->simd, &r)) return false;
    fac_want_plain(&p->in[0]);
    fac_want_plain(&p->out[0]);
    o->seconds = fac_cpu_speeds.step + 2 * (double)fac_type_bytes(&p->in[0].type) / c->bandwidth;
    *FAC_DRAFT(o, plan) = r;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    plan *r = fac_draft_copy(p, sizeof *r, err);
    if (!r) return FAC_E_NOMEM;
    r->problem = p;
    *out = r;
    return FAC_OK;
}

typedef struct job {
    const plan *r;
    const char *x;
    char *y;
} job;

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *r = j->r;
    (void)thread;
    for (int64_t u = first; u < last; u++) {
        const int64_t at = u % r->tiles * TOGETHER,
                      n = r->l.inner - at < TOGETHER ? r->l.inner - at : TOGETHER,
                      from = (u / r->tiles * r->l.size * r->l.inner + at) * r->size;
        r->f(&(fac_running){ j->x + from, j->y + from, r->l.size, n, r->l.inner, r->exclusive,
                             r->reverse });
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *r = plan_;
    const fac_cpu *c = fac_cpu_of(d);
    const fac_problem *p = r->problem;
    job j = { r, fac_span_bytes(in[0]) + p->in[0].layout.offset * r->size,
              fac_span_bytes(out[0]) + p->out[0].layout.offset * r->size };
    const int64_t units = r->l.outer * r->tiles, count = r->l.outer * r->l.size * r->l.inner;
    if (count)
        fac_parallel_ranges(&c->pool, units, count < SERIAL ? 1 : SHARES * c->pool.threads,
                            run_units, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_running = { .name = "running",
                                     .op = &fac_op_cum_sum,
                                     .rank = 772,
                                     .offer = offer,
                                     .make = make,
                                     .done = fac_solver_done,
                                     .run = run };
