/* Solver "arg": arg_max and arg_min of f32 along any axis of a contiguous tensor.  Exact; NaN is
 * above and below everything. */
#include <string.h>
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/lines.h"

enum { TOGETHER = 256, SERIAL = 16 << 10, SHARES = 8 };

typedef struct plan {
    fac_lines l;
    int64_t tiles;
    bool least, last;
    const fac_problem *problem;
} plan;

static bool build(const fac_problem *p, plan *a) {
    const fac_dims *d = &p->in[0].type.dims;
    int64_t axis;
    *a = (plan){ .least = FAC_IS(p->node, arg_min) };
    a->last = fac_attr_flag(p->node, "select_last_index");
    if (!fac_attr_get_int(p->node, "axis", &axis)) return false;
    a->l = fac_lines_of(d, fac_axis(axis, d->n ? d->n : 1));
    a->tiles = (a->l.inner + TOGETHER - 1) / TOGETHER;
    return a->l.size > 0 && a->l.size < INT32_MAX;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    plan a;
    if ((!FAC_IS(p->node, arg_max) && !FAC_IS(p->node, arg_min)) || p->node->body[0]) return false;
    if (p->in[0].type.dtype != FAC_F32 || p->out[0].type.dtype != FAC_I64 || !build(p, &a))
        return false;
    fac_want_plain(&p->in[0]);
    fac_want_plain(&p->out[0]);
    o->seconds =
        fac_cpu_speeds.step + 4 * (double)(a.l.outer * a.l.size * a.l.inner) / c->bandwidth;
    *FAC_DRAFT(o, plan) = a;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    plan *a = fac_draft_copy(p, sizeof *a, err);
    if (!a) return FAC_E_NOMEM;
    a->problem = p;
    *out = a;
    return FAC_OK;
}
typedef struct job {
    const plan *a;
    fac_arg_kernel *f;
    const float *x;
    int64_t *to;
} job;

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *a = j->a;
    const fac_lines *l = &a->l;
    (void)thread;
    if (l->inner == 1) {
        j->f(&(fac_arg_lines){ j->x + first * l->size, 1, l->size, last - first, a->least, a->last,
                               j->to + first });
        return;
    }
    for (int64_t u = first; u < last; u++) {
        const int64_t outer = u / a->tiles, at = u % a->tiles * TOGETHER,
                      n = l->inner - at < TOGETHER ? l->inner - at : TOGETHER;
        const float *x = j->x + outer * l->size * l->inner + at;
        j->f(&(fac_arg_lines){ x, l->inner, l->size, n, a->least, a->last,
                               j->to + outer * l->inner + at });
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *a = plan_;
    const fac_cpu *c = fac_cpu_of(d);
    job j = { a, c->simd->arg, fac_span_floats(in[0], &a->problem->in[0].layout),
              (int64_t *)((char *)out[0].memory + out[0].at) + a->problem->out[0].layout.offset };
    const int64_t units = a->l.inner == 1 ? a->l.outer : a->l.outer * a->tiles,
                  count = a->l.outer * a->l.size * a->l.inner;
    if (units)
        fac_parallel_ranges(&c->pool, units, count < SERIAL ? 1 : SHARES * c->pool.threads,
                            run_units, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_arg = {
    .name = "arg", .rank = 770, .offer = offer, .make = make, .done = fac_solver_done, .run = run
};
