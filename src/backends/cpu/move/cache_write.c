/* Solver "cache_write": rows written into a cache, over the cache itself where the planner has put
 * the result there, else into a copy of it.  Exact, any element of whole bytes. */
#include <inttypes.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "op_list.h"
#include "tensor/tensor_internal.h"

typedef struct plan {
    int64_t batch, heads, size, rows, row; /* rows of a cache; rows to write; bytes of a row */
    size_t cache, from, at, to;            /* where element 0 lies, bytes */
    fac_dtype at_type;
} plan;

static plan plan_of(const fac_problem *p) {
    const int64_t *c = p->in[0].type.dims.d;
    const size_t element = fac_copy_size(p->in[0].type.dtype),
                 index = fac_copy_size(p->in[2].type.dtype);
    return (plan){ c[0],
                   c[1],
                   c[2],
                   p->in[1].type.dims.d[2],
                   c[3] * (int64_t)element,
                   (size_t)p->in[0].layout.offset * element,
                   (size_t)p->in[1].layout.offset * element,
                   (size_t)p->in[2].layout.offset * index,
                   (size_t)p->out[0].layout.offset * element,
                   p->in[2].type.dtype };
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    if (p->node->body[0] || !fac_copy_size(p->in[0].type.dtype)) return false;
    for (int i = 0; i < 3; i++)
        if (!fac_layout_is_plain(&p->in[i].layout, &p->in[i].type.dims))
            p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    if (!fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims)) return false;
    o->seconds =
        fac_cpu_speeds.step + 2 * (double)fac_type_bytes(&p->in[1].type) / fac_cpu_of(d)->bandwidth;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    plan *g = fac_solver_plan(p, sizeof *g, err);
    if (!g) return FAC_E_NOMEM;
    *g = plan_of(p);
    *out = g;
    return FAC_OK;
}

typedef struct job {
    const plan *g;
    const char *rows, *at;
    char *to;
} job;

static int64_t place(const plan *g, const char *at, int64_t sequence) {
    int64_t row = 0;
    fac_convert(FAC_I64, &row, g->at_type, at + (size_t)sequence * fac_copy_size(g->at_type), 1);
    return row;
}

static void write_heads(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *g = j->g;
    (void)thread;
    for (int64_t h = first; h < last; h++)
        memcpy(j->to + (h * g->size + place(g, j->at, h / g->heads)) * g->row,
               j->rows + h * g->rows * g->row, (size_t)(g->rows * g->row));
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *g = arg;
    const char *cache = fac_span_bytes(in[0]) + g->cache;
    job j = { g, fac_span_bytes(in[1]) + g->from, fac_span_bytes(in[2]) + g->at,
              fac_span_bytes(out[0]) + g->to };
    const int64_t heads = g->batch * g->heads;
    (void)work;
    for (int64_t b = 0; b < g->batch; b++) {
        const int64_t row = place(g, j.at, b);
        if (row < 0 || row > g->size - g->rows)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "cache_write: %" PRId64 " rows at %" PRId64 " of a cache of %" PRId64,
                             g->rows, row, g->size);
    }
    if (cache != j.to && heads) memcpy(j.to, cache, (size_t)(heads * g->size * g->row));
    if (heads && g->rows)
        fac_parallel_ranges(&fac_cpu_of(d)->pool, heads,
                            heads * g->rows * g->row < 64 << 10 ? 1 : 8, write_heads, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_cache_write = { .name = "cache_write",
                                         .op = &fac_op_cache_write,
                                         .rank = 200,
                                         .offer = offer,
                                         .make = make,
                                         .done = fac_solver_done,
                                         .run = run };
