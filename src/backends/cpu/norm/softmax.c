/* Solver "softmax": softmax and log_softmax of f32 along any axis of a contiguous tensor.
 *   y = exp(x - max x) / sum exp(x - max x);   log: y = x - max x - log(sum exp(x - max x))
 * The last axis by rows, any other by up to 256 columns side by side.  Sums are joined in f64, and
 * those along rows have parts of at most 128 terms of f32.  With u = 2^-24 a result is off by less
 * than 6 u of itself (exp 3, the factor 1, the product 1) and by what the sum is off: next to
 * nothing where terms differ, 65 u at worst where all are equal. */
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { SERIAL = 4 << 10, SHARES = 8 };

typedef struct plan {
    int64_t outer, size, inner, tiles;
    bool log;
    const fac_problem *problem;
} plan;

static bool build(const fac_problem *p, plan *s) {
    const fac_dims *d = &p->in[0].type.dims;
    int64_t axis;
    if (!fac_attr_get_int(p->node, "axis", &axis)) return false;
    int at = fac_axis(axis, d->n ? d->n : 1);
    if (at < 0) return false;
    *s = (plan){
        .outer = 1, .size = d->n ? d->d[at] : 1, .inner = 1, .log = FAC_IS(p->node, log_softmax)
    };
    for (int k = 0; k < d->n; k++) {
        if (k < at) s->outer *= d->d[k];
        if (k > at) s->inner *= d->d[k];
    }
    s->tiles = (s->inner + FAC_LINES - 1) / FAC_LINES;
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan s;
    if ((!FAC_IS(p->node, softmax) && !FAC_IS(p->node, log_softmax)) || p->node->body[0])
        return false;
    fac_operand *x = &p->in[0], *y = &p->out[0];
    if (x->type.dtype != FAC_F32 || y->type.dtype != FAC_F32 ||
        !fac_layout_is_plain(&y->layout, &y->type.dims))
        return false;
    if (!fac_layout_is_plain(&x->layout, &x->type.dims))
        x->layout = fac_layout_plain(&x->type.dims);
    if (!build(p, &s)) return false;
    double count = (double)(s.outer * s.size * s.inner);
    o->seconds = fac_cpu_speeds.step + 12 * count / fac_cpu_of(d)->bandwidth +
                 count / (fac_cpu_speeds.exponentials * fac_cpu_of(d)->pool.threads);
    *FAC_DRAFT(o, plan) = s;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    plan *s = fac_draft_copy(p, sizeof *s, err);
    if (!s) return FAC_E_NOMEM;
    s->problem = p;
    *out = s;
    return FAC_OK;
}

typedef struct job {
    const plan *s;
    const fac_streams *f;
    const float *x;
    float *y;
    bool past;
} job;

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    const job *j = arg;
    const plan *s = j->s;
    for (int64_t u = first; u < last; u++) {
        int64_t column = u % s->tiles * FAC_LINES, at = u / s->tiles * s->size * s->inner + column;
        int64_t columns = s->inner - column < FAC_LINES ? s->inner - column : FAC_LINES;
        if (s->inner == 1)
            j->f->softmax_row(j->x + at, j->y + at, s->size, s->log, j->past);
        else
            j->f->softmax_columns(j->x + at, j->y + at, s->size, s->inner, columns, s->log);
    }
    if (j->past) fac_streams_end();
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *s = arg;
    const fac_cpu *c = fac_cpu_of(d);
    const fac_problem *p = s->problem;
    job j = { s, c->simd->streams, fac_span_floats(in[0], &p->in[0].layout),
              fac_span_floats(out[0], &p->out[0].layout), false };
    j.past = j.x != j.y && fac_streams_past(c, (size_t)fac_type_bytes(&p->out[0].type));
    int64_t units = s->outer * s->tiles;
    if (units * s->size == 0) return FAC_OK;
    fac_parallel_ranges(&c->pool, units,
                        s->outer * s->size * s->inner < SERIAL ? 1 : SHARES * c->pool.threads,
                        run_units, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_softmax = { .name = "softmax",
                                     .rank = 760,
                                     .offer = offer,
                                     .make = make,
                                     .done = fac_solver_done,
                                     .run = run };
