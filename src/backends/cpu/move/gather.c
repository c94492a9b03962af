/* Solver "gather": rows of a contiguous tensor picked by indices.  x [outer][size][inner], y
 * [outer][indices][inner].  Exact, any element type of whole bytes, indices of any integer type; of
 * those out of range the first one is told. */
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

enum { SERIAL_BYTES = 64 << 10, SHARES = 8, SOME = 256 };

typedef struct plan {
    int64_t outer, size, picks, row; /* row: bytes of inner */
    int64_t in, index, out;          /* offsets, bytes        */
    int64_t element, index_bytes;
    fac_dtype index_type;
} plan;

/* Bytes of what is moved as one: an element, or a block, of which the last dim has so many fewer.
 */
static int64_t unit_of(fac_dtype t) {
    const fac_dtype_info *i = fac_dtype_get(t);
    return i->kind == 'q' ? i->block_bytes : (int64_t)fac_copy_size(t);
}

static bool build(const fac_problem *p, plan *g) {
    const fac_dims *d = &p->in[0].type.dims;
    int64_t axis;
    int at = fac_attr_get_int(p->node, "axis", &axis) ? fac_axis(axis, d->n) : -1;
    if (at < 0) return false;
    *g = (plan){ .outer = 1,
                 .size = d->d[at],
                 .picks = fac_dims_count(&p->in[1].type.dims),
                 .index_type = p->in[1].type.dtype,
                 .element = unit_of(p->in[0].type.dtype),
                 .index_bytes = (int64_t)fac_copy_size(p->in[1].type.dtype) };
    const int64_t block = fac_dtype_get(p->in[0].type.dtype)->block_elements;
    g->in = p->in[0].layout.offset / block * g->element;
    g->out = p->out[0].layout.offset / block * g->element;
    g->index = p->in[1].layout.offset * g->index_bytes;
    g->row = g->element;
    for (int k = 0; k < at; k++) g->outer *= d->d[k];
    for (int k = at + 1; k < d->n; k++) g->row *= k == d->n - 1 ? d->d[k] / block : d->d[k];
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan g;
    if (unit_of(p->in[0].type.dtype) == 0 || p->node->body[0]) return false;
    if (!fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims)) return false;
    for (int i = 0; i < 2; i++)
        if (!fac_layout_is_plain(&p->in[i].layout, &p->in[i].type.dims))
            p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    if (!build(p, &g)) return false;
    o->seconds = fac_cpu_speeds.step +
                 2 * (double)fac_type_bytes(&p->out[0].type) / fac_cpu_of(d)->bandwidth;
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
    fac_picks picks;
} job;

#define COPY(T)                                                                                    \
    for (int64_t i = 0; i < n; i++)                                                                \
        if (at[i] >= 0) ((T *)(void *)y)[i] = ((const T *)(const void *)x)[at[i]]

/* n rows; what is not there is left out. */
static void copy_rows(int64_t row, const char *x, const int64_t *at, int64_t n, char *y) {
    switch (row) {
    case 1:
        COPY(uint8_t);
        break;
    case 2:
        COPY(uint16_t);
        break;
    case 4:
        COPY(uint32_t);
        break;
    case 8:
        COPY(uint64_t);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            if (at[i] >= 0) memcpy(y + i * row, x + at[i] * row, (size_t)row);
    }
}

/* Few indices are looked up once for all outer dims. */
static void run_rows(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    job *j = arg;
    const plan *g = j->g;
    int64_t places[SOME], outer = first / g->picks, k = first % g->picks;
    const bool few = g->picks <= SOME;
    if (few) fac_pick_many(&j->picks, 0, g->picks, places);
    for (int64_t u = first, n; u < last; u += n) {
        n = last - u < g->picks - k ? last - u : g->picks - k;
        if (n > SOME) n = SOME;
        if (!few) fac_pick_many(&j->picks, k, n, places);
        copy_rows(g->row, j->x + outer * g->size * g->row, places + (few ? k : 0), n,
                  j->y + u * g->row);
        k += n;
        outer += k == g->picks;
        k = k == g->picks ? 0 : k;
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work;
    const plan *g = arg;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    job j = { g,
              fac_span_bytes(in[0]) + g->in,
              fac_span_bytes(out[0]) + g->out,
              { fac_span_bytes(in[1]) + g->index, g->index_type, g->index_bytes, g->picks, g->size,
                g->picks } };
    int64_t rows = g->outer * g->picks;
    if (rows * g->row == 0) return FAC_OK;
    fac_parallel_ranges(pool, rows, rows * g->row < SERIAL_BYTES ? 1 : SHARES * pool->threads,
                        run_rows, &j);
    return fac_picks_check(&j.picks, err);
}

const fac_solver fac_cpu_gather = { .name = "gather",
                                    .op = &fac_op_gather,
                                    .rank = 900,
                                    .offer = offer,
                                    .make = make,
                                    .done = fac_solver_done,
                                    .run = run };
