/* dropout/f32: dropout in training.  Element i lives or dies by number i of its stream, so shares
 * of the elements are dealt to threads at will and the noise stays what src/ops/dropout.c says. */
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/rng.h"
#include "op_list.h"

enum { SERIAL = 2 << 10, SHARES = 4, CHUNK = 128 };

typedef struct plan {
    fac_layout x, y;
    int64_t count, stream;
    double ratio;
    fac_dtype counter;
    const fac_cpu *cpu;
} plan;

typedef struct job {
    const plan *p;
    uint64_t key;
    const float *x;
    float *y;
} job;

static void range(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    (void)thread;
    double noise[CHUNK];
    for (int64_t i = first; i < last; i += CHUNK) {
        const int64_t n = last - i < CHUNK ? last - i : CHUNK;
        fac_random_uniforms(j->key, (uint64_t)p->stream, (uint64_t)i, (size_t)n, noise);
        for (int64_t k = 0; k < n; k++)
            j->y[i + k] = noise[k] >= p->ratio ? (float)((double)j->x[i + k] / (1 - p->ratio)) : 0;
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const void *counter = (const char *)in[1].memory + in[1].at;
    job j = { p, 0, fac_span_floats(in[0], &p->x), fac_span_floats(out[0], &p->y) };
    (void)d, (void)work, (void)err;
    j.key =
        (uint64_t)(p->counter == FAC_I64 ? *(const int64_t *)counter : *(const int32_t *)counter);
    fac_parallel_ranges(&p->cpu->pool, p->count,
                        p->count < SERIAL ? 1 : SHARES * p->cpu->pool.threads, range, &j);
    return FAC_OK;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    fac_dtype counter = p->in[1].type.dtype;
    if (p->node->body[0] || !fac_attr_flag(p->node, "training") ||
        (counter != FAC_I64 && counter != FAC_I32))
        return false;
    if (p->in[0].type.dtype != FAC_F32 || (p->nout > 1 && p->out[1].type.dtype != FAC_NONE))
        return false;
    for (int k = 0; k < 2; k++) fac_want_plain(&p->in[k]);
    fac_want_plain(&p->out[0]);
    if (p->in[1].layout.offset) return false;
    o->seconds = fac_cpu_speeds.step + fac_cpu_speeds.dropped *
                                           (double)fac_dims_count(&p->in[0].type.dims) /
                                           fac_cpu_of(d)->pool.threads;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    *q = (plan){ .x = p->in[0].layout,
                 .y = p->out[0].layout,
                 .count = fac_dims_count(&p->in[0].type.dims),
                 .counter = p->in[1].type.dtype,
                 .cpu = fac_cpu_of(d) };
    fac_attr_get_int(p->node, "stream", &q->stream);
    fac_attr_get_real(p->node, "ratio", &q->ratio);
    *out = q;
    return FAC_OK;
}
const fac_solver fac_cpu_dropout = { .name = "dropout/f32",
                                     .op = &fac_op_dropout,
                                     .rank = 680,
                                     .offer = offer,
                                     .make = make,
                                     .done = fac_solver_done,
                                     .run = run };
