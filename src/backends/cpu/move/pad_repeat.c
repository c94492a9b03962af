/* Solver "pad_repeat": more elements around a tensor that repeat its own: mirrored, the outermost,
 * from the other side.  A line of y is made of pieces of one line of x, which are copied as they
 * are, backwards, or one element over and over.  Exact, any element type of whole bytes. */
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/move/pad_lines.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "op_list.h"

enum { SERIAL_BYTES = 64 << 10, SHARES = 8 };

typedef struct plan {
    fac_pad_lines lines;
    int64_t unit, in, out; /* bytes: of what stands together, where x and y begin */
} plan;

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan r;
    const int64_t size = (int64_t)fac_copy_size(p->in[0].type.dtype);
    if (!size || p->node->body[0] ||
        !fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims) ||
        !fac_pad_lines_of(p, 1, 3, &p->in[0].type.dims, &p->out[0].type.dims, &r.lines))
        return false;
    if (!fac_layout_is_plain(&p->in[0].layout, &p->in[0].type.dims))
        p->in[0].layout = fac_layout_plain(&p->in[0].type.dims);
    r.unit = r.lines.unit * size;
    r.in = p->in[0].layout.offset * size;
    r.out = p->out[0].layout.offset * size;
    o->seconds = fac_cpu_speeds.step +
                 2 * (double)fac_type_bytes(&p->out[0].type) / fac_cpu_of(d)->bandwidth;
    *FAC_DRAFT(o, plan) = r;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    return fac_draft_plan(p, sizeof(plan), out, err);
}

/* n elements of a type, one after the other or the same; the sizes that elements have get loops. */
#define STEPS(T)                                                                                   \
    static void steps_##T(char *to, const char *from, int64_t step, int64_t n) {                   \
        T *y = (T *)(void *)to;                                                                    \
        const T *x = (const T *)(const void *)from;                                                \
        for (int64_t i = 0; i < n; i++) y[i] = x[i * step];                                        \
    }
STEPS(uint8_t)
STEPS(uint16_t)
STEPS(uint32_t)
STEPS(uint64_t)

static void copy_piece(char *to, const char *line, fac_pad_piece p, int64_t unit) {
    const char *from = line + p.from * unit;
    if (p.step == 1)
        memcpy(to, from, (size_t)(p.n * unit));
    else if (unit == 1)
        steps_uint8_t(to, from, p.step, p.n);
    else if (unit == 2)
        steps_uint16_t(to, from, p.step, p.n);
    else if (unit == 4)
        steps_uint32_t(to, from, p.step, p.n);
    else if (unit == 8)
        steps_uint64_t(to, from, p.step, p.n);
    else
        for (int64_t i = 0; i < p.n; i++)
            memcpy(to + i * unit, from + i * p.step * unit, (size_t)unit);
}

typedef struct job {
    const plan *r;
    const char *x;
    char *y;
} job;

static void run_lines(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    const job *j = arg;
    const fac_pad_lines *l = &j->r->lines;
    const int64_t unit = j->r->unit, size = l->x[l->axis], all = l->y[l->axis];
    for (int64_t line = first; line < last; line++) {
        const char *x = j->x + fac_pad_line(l, line) * size * unit;
        char *y = j->y + line * all * unit;
        for (int64_t i = 0; i < all;) {
            const fac_pad_piece p =
                fac_pad_piece_at(l->mode, i - l->before[l->axis], all - i, size);
            copy_piece(y + i * unit, x, p, unit);
            i += p.n;
        }
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *r = arg;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    const int64_t lines = r->lines.whole * r->lines.lines,
                  bytes = lines * r->lines.y[r->lines.axis] * r->unit;
    job j = { r, fac_span_bytes(in[0]) + r->in, fac_span_bytes(out[0]) + r->out };
    if (!bytes) return FAC_OK;
    fac_parallel_ranges(pool, lines, bytes < SERIAL_BYTES ? 1 : SHARES * pool->threads, run_lines,
                        &j);
    return FAC_OK;
}

const fac_solver fac_cpu_pad_repeat = { .name = "pad_repeat",
                                        .op = &fac_op_pad,
                                        .rank = 941,
                                        .offer = offer,
                                        .make = make,
                                        .done = fac_solver_done,
                                        .run = run };
