/* Solver "sum_square_all": one pass over all inputs in one parallel region.
 *
 * All inputs are cut into chunks of a fixed size, a chunk gives a sum in f64, and those are added
 * in order: the result does not depend on the number of threads.  |error| <= 2^-24 y for an f32
 * result, whatever the number of elements. */
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "op_list.h"

enum { CHUNK = 16 << 10, SHARES = 8 };

typedef struct input {
    int64_t first, count, offset;
    bool f64;
} input; /* first: number of its first chunk */
typedef struct plan {
    const fac_streams *streams;
    int inputs;
    bool f64;
    int64_t chunks, out_offset;
    input in[];
} plan;

static bool takes(const fac_problem *p) {
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype != FAC_F32 && p->in[i].type.dtype != FAC_F64) return false;
    return !p->node->body[0] && fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims);
}

static int64_t chunks_of(const fac_operand *o) {
    return (fac_dims_count(&o->type.dims) + CHUNK - 1) / CHUNK;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    double bytes = 0;
    int64_t chunks = 0;
    if (!takes(p)) return false;
    for (int i = 0; i < p->nin; i++) {
        if (!fac_layout_is_plain(&p->in[i].layout, &p->in[i].type.dims))
            p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
        bytes += (double)fac_type_bytes(&p->in[i].type);
        chunks += chunks_of(&p->in[i]);
    }
    o->work = (size_t)chunks * sizeof(double);
    o->seconds = fac_cpu_speeds.step + bytes / fac_cpu_of(d)->bandwidth;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *s = fac_solver_plan(p, sizeof *s + (size_t)p->nin * sizeof *s->in, err);
    if (!s) return FAC_E_NOMEM;
    s->streams = fac_cpu_of(d)->simd->streams;
    s->inputs = p->nin;
    s->f64 = p->out[0].type.dtype == FAC_F64;
    s->out_offset = p->out[0].layout.offset;
    for (int i = 0; i < p->nin; i++) {
        const fac_operand *o = &p->in[i];
        s->in[i] = (input){ s->chunks, fac_dims_count(&o->type.dims), o->layout.offset,
                            o->type.dtype == FAC_F64 };
        s->chunks += chunks_of(o);
    }
    *out = s;
    return FAC_OK;
}

typedef struct job {
    const plan *s;
    const fac_span *in;
    double *part;
} job;

static double squares(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

static void run_chunks(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *s = j->s;
    int i = 0;
    (void)thread;
    for (int64_t c = first; c < last; c++) {
        while (i + 1 < s->inputs && s->in[i + 1].first <= c) i++;
        const input *x = &s->in[i];
        int64_t at = (c - x->first) * CHUNK, n = x->count - at < CHUNK ? x->count - at : CHUNK;
        const char *from = fac_span_bytes(j->in[i]);
        if (x->f64)
            j->part[c] = squares((const double *)from + x->offset + at, n);
        else
            j->part[c] = s->streams->spread_row((const float *)from + x->offset + at, n, 0);
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)err;
    const plan *s = arg;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    job j = { s, in, (double *)((char *)work.memory + work.at) };
    if (s->chunks)
        fac_parallel_ranges(pool, s->chunks, s->chunks > 2 ? SHARES * pool->threads : 1, run_chunks,
                            &j);
    double sum = 0;
    for (int64_t c = 0; c < s->chunks; c++) sum += j.part[c];
    if (s->f64)
        ((double *)fac_span_bytes(out[0]))[s->out_offset] = sum;
    else
        ((float *)fac_span_bytes(out[0]))[s->out_offset] = (float)sum;
    return FAC_OK;
}

const fac_solver fac_cpu_sum_square_all = { .name = "sum_square_all",
                                            .op = &fac_op_sum_square_all,
                                            .rank = 740,
                                            .offer = offer,
                                            .make = make,
                                            .done = fac_solver_done,
                                            .run = run };
