/* Solver "pad_grad": the gradient of a padding that repeats elements, in f32.  dx is cleared and
 * receives dy line by line, each in pieces of one line of dx.  A thread owns whole turns of the
 * axes that nothing is added to, and adds in the order of dy: the same bits with any number of
 * threads. */
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/move/pad_lines.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "op_list.h"

enum { SERIAL_BYTES = 64 << 10 };

typedef struct plan {
    fac_pad_lines lines;
    int64_t in, out; /* where dy and dx begin, elements */
    int64_t turn;    /* elements of dx in a turn        */
} plan;

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan r;
    const fac_dims *x = &p->out[0].type.dims, *y = &p->in[3].type.dims;
    if (p->in[3].type.dtype != FAC_F32 || p->node->body[0] ||
        !fac_layout_is_plain(&p->out[0].layout, x) || !fac_pad_lines_of(p, 1, 2, x, y, &r.lines))
        return false;
    if (!fac_layout_is_plain(&p->in[3].layout, y)) p->in[3].layout = fac_layout_plain(y);
    r.in = p->in[3].layout.offset;
    r.out = p->out[0].layout.offset;
    r.turn = r.lines.whole ? fac_dims_count(x) / r.lines.whole : 0;
    o->seconds = fac_cpu_speeds.step +
                 (double)(fac_type_bytes(&p->out[0].type) + 3 * fac_type_bytes(&p->in[3].type)) /
                     fac_cpu_of(d)->bandwidth;
    *FAC_DRAFT(o, plan) = r;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    return fac_draft_plan(p, sizeof(plan), out, err);
}

/* An edge stands for many elements: their sum is added as one. */
static void add_same(float *dx, const float *dy, int64_t n, int64_t unit) {
    for (int64_t k = 0; k < unit; k++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += (double)dy[i * unit + k];
        dx[k] = (float)((double)dx[k] + sum);
    }
}

static void add_piece(float *line, const float *dy, fac_pad_piece p, int64_t unit) {
    float *dx = line + p.from * unit;
    if (p.step == 0)
        add_same(dx, dy, p.n, unit);
    else if (p.step == 1)
        for (int64_t i = 0; i < p.n * unit; i++) dx[i] += dy[i];
    else
        for (int64_t i = 0; i < p.n; i++)
            for (int64_t k = 0; k < unit; k++) dx[k - i * unit] += dy[i * unit + k];
}

typedef struct job {
    const plan *r;
    const float *dy;
    float *dx;
} job;

static void run_turns(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    const job *j = arg;
    const fac_pad_lines *l = &j->r->lines;
    const int64_t size = l->x[l->axis], all = l->y[l->axis], shift = l->before[l->axis];
    memset(j->dx + first * j->r->turn, 0, (size_t)((last - first) * j->r->turn) * sizeof *j->dx);
    for (int64_t line = first * l->lines; line < last * l->lines; line++) {
        float *dx = j->dx + fac_pad_line(l, line) * size * l->unit;
        const float *dy = j->dy + line * all * l->unit;
        for (int64_t i = 0; i < all;) {
            const fac_pad_piece p = fac_pad_piece_at(l->mode, i - shift, all - i, size);
            add_piece(dx, dy + i * l->unit, p, l->unit);
            i += p.n;
        }
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *r = arg;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    const int64_t bytes = r->lines.whole * r->turn * (int64_t)sizeof(float);
    if (!bytes) return FAC_OK;
    const void *dy = fac_span_bytes(in[3]);
    void *dx = fac_span_bytes(out[0]);
    job j = { r, (const float *)dy + r->in, (float *)dx + r->out };
    fac_parallel_ranges(pool, r->lines.whole, bytes < SERIAL_BYTES ? 1 : pool->threads, run_turns,
                        &j);
    return FAC_OK;
}

const fac_solver fac_cpu_pad_grad = { .name = "pad_grad",
                                      .op = &fac_op_pad_grad,
                                      .rank = 942,
                                      .offer = offer,
                                      .make = make,
                                      .done = fac_solver_done,
                                      .run = run };
