/* Solver "gather_grad": the gradient of embeddings in f32.  dx [outer][size][inner] is cleared and
 * receives dy [outer][picks][inner] row by row.  A thread owns a range of dx's rows and looks
 * through all indices for them, so every row is summed in the order of the indices: the same bits
 * with any number of threads.  Every thread sees every index, so each finds the first one that is
 * out of range. */
#include <string.h>
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/picks.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "op_list.h"
#include "tensor/tensor_internal.h"

enum { SERIAL_BYTES = 64 << 10 };

typedef struct plan {
    int64_t outer, size, picks, inner;
    int64_t index, index_bytes, in, out; /* offsets: bytes for the index, elements for dy and dx */
    fac_dtype index_type;
} plan;

static bool build(const fac_problem *p, plan *g) {
    const fac_dims *d = &p->out[0].type.dims;
    int64_t axis;
    int at = fac_attr_get_int(p->node, "axis", &axis) ? fac_axis(axis, d->n) : -1;
    if (at < 0) return false;
    *g = (plan){ .outer = 1,
                 .size = d->d[at],
                 .picks = fac_dims_count(&p->in[1].type.dims),
                 .inner = 1,
                 .index_type = p->in[1].type.dtype,
                 .index_bytes = (int64_t)fac_copy_size(p->in[1].type.dtype),
                 .in = p->in[2].layout.offset,
                 .out = p->out[0].layout.offset };
    g->index = p->in[1].layout.offset * g->index_bytes;
    for (int k = 0; k < at; k++) g->outer *= d->d[k];
    for (int k = at + 1; k < d->n; k++) g->inner *= d->d[k];
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan g;
    if (p->in[2].type.dtype != FAC_F32 || p->node->body[0]) return false;
    if (!fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims)) return false;
    for (int i = 1; i < 3; i++)
        if (!fac_layout_is_plain(&p->in[i].layout, &p->in[i].type.dims))
            p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    if (!build(p, &g)) return false;
    o->seconds = fac_cpu_speeds.step +
                 (double)(fac_type_bytes(&p->out[0].type) + 3 * fac_type_bytes(&p->in[2].type)) /
                     fac_cpu_of(d)->bandwidth;
    *FAC_DRAFT(o, plan) = g;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    return fac_draft_plan(p, sizeof(plan), out, err);
}

typedef struct job {
    const plan *g;
    const float *dy;
    float *dx;
    fac_picks picks;
} job;

static void add_row(const job *j, int64_t row, int64_t pick) {
    const float *dy = j->dy + pick * j->g->inner;
    float *dx = j->dx + row * j->g->inner;
    for (int64_t e = 0; e < j->g->inner; e++) dx[e] += dy[e];
}

/* Units are the rows of dx, [outer][size]. */
static void run_rows(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    job *j = arg;
    const plan *g = j->g;
    memset(j->dx + first * g->inner, 0, (size_t)((last - first) * g->inner) * sizeof *j->dx);
    for (int64_t o = first / g->size; o * g->size < last; o++)
        for (int64_t i = 0; i < g->picks; i++) {
            const int64_t at = fac_pick(&j->picks, i), row = o * g->size + at;
            if (at >= 0 && row >= first && row < last) add_row(j, row, o * g->picks + i);
        }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work;
    const plan *g = arg;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    const int64_t rows = g->outer * g->size, bytes = rows * g->inner * (int64_t)sizeof(float);
    if (bytes == 0) return FAC_OK;
    const void *dy = fac_span_bytes(in[2]);
    void *dx = fac_span_bytes(out[0]);
    job j = { g,
              (const float *)dy + g->in,
              (float *)dx + g->out,
              { fac_span_bytes(in[1]) + g->index, g->index_type, g->index_bytes, g->picks, g->size,
                g->picks } };
    fac_parallel_ranges(pool, rows, bytes < SERIAL_BYTES ? 1 : pool->threads, run_rows, &j);
    return fac_picks_check(&j.picks, err);
}

const fac_solver fac_cpu_gather_grad = { .name = "gather_grad",
                                         .op = &fac_op_gather_grad,
                                         .rank = 910,
                                         .offer = offer,
                                         .make = make,
                                         .done = fac_solver_done,
                                         .run = run };
