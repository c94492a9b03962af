/* matmul_nbits/blocks: weights of 2, 4 or 8 bits stay as small as they are stored.
 *
 * They are read where they lie, most often in the mapped file.  Few rows of x meet codes of 4 bits
 * in registers (simd/blocks/nbits.c), so that a run takes as long as it takes to read them.  Else
 * some rows of weights at a time become f32 in the caches of a core, and meet x there (slab.h).  x
 * stays f32, and nothing is rounded but sums; or, where the node allows it and the program does not
 * want the highest precision, x is rounded to 8 bits in blocks (simd/blocks/nbits_rounded.c). */
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/cpu/product/nbits.h"
#include "backends/cpu/product/slab.h"
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "op_list.h"

enum { X, Q, SCALE, ZERO, BIAS, INPUTS, LEAST_BLOCK = 16, ROUNDED_MOST = 128 };

typedef struct plan {
    const fac_cpu *cpu;
    const fac_nbits_kernels *kernels;
    const fac_nbits_rounded *rounded; /* NULL: x stays f32 */
    fac_nbits_weights w;
    fac_slab slab;
    fac_layout x, scale, bias, y;
    bool zeros, numbers, has_bias, few;
    size_t x_floats, per_thread; /* of scratch */
} plan;

static const fac_nbits_kernels *kernels_of(const fac_simd *s) {
#if defined(__x86_64__)
    if (s->isa == FAC_ISA_AVX512) return &fac_nbits_avx512;
    if (s->isa == FAC_ISA_AVX2) return &fac_nbits_avx2;
#endif
    (void)s;
    return &fac_nbits_base;
}

static const fac_nbits_rounded *rounded_of(const fac_simd *s) {
    const fac_nbits_rounded *r = &fac_nbits_rounded_base;
#if defined(__x86_64__)
    if (s->isa == FAC_ISA_AVX512) r = &fac_nbits_rounded_avx512;
    if (s->isa == FAC_ISA_AVX2) r = &fac_nbits_rounded_avx2;
#endif
    (void)s;
    return r->row ? r : NULL;
}

/* Floats of a row of x as codes meet it. */
static int64_t row_of(const plan *p) {
    return p->rounded ? p->rounded->row(&p->w) : p->kernels->turned(&p->w);
}

static bool settle(plan *p, const fac_problem *q) {
    const fac_nbits_opts *o = q->node->attrs;
    const fac_dtype zero = q->in[ZERO].type.dtype;
    const int64_t count = fac_dims_count(&q->in[X].type.dims);
    if (q->in[X].type.dtype != FAC_F32 || count <= 0 || o->n <= 0) return false;
    if (o->block < LEAST_BLOCK || (o->block & (o->block - 1))) return false;
    if (zero != FAC_NONE && zero != FAC_U8 && zero != FAC_F32) return false;
    p->kernels = kernels_of(p->cpu->simd);
    p->w = (fac_nbits_weights){ .K = o->k,
                                .blocks = (o->k + o->block - 1) / o->block,
                                .block = o->block,
                                .bits = (int)o->bits };
    p->slab = (fac_slab){ .cpu = p->cpu, .M = count / o->k, .N = o->n, .K = o->k };
    if (!fac_slab_settle(&p->slab)) return false;
    p->zeros = zero == FAC_U8;
    p->numbers = zero == FAC_F32;
    p->has_bias = q->in[BIAS].type.dtype != FAC_NONE;
    /* beyond that, a slab of floats is the faster one */
    p->few = o->bits == 4 && p->slab.M <= 2 * p->cpu->simd->lanes;
    const bool may_round = o->accuracy == FAC_NBITS_INT8 && q->precision != FAC_PRECISION_HIGHEST;
    if (may_round && o->bits == 4 && p->slab.M <= ROUNDED_MOST)
        p->rounded = rounded_of(p->cpu->simd);
    p->few |= p->rounded != NULL;
    p->x_floats = p->few ? (size_t)(p->slab.M * row_of(p)) : 0;
    p->per_thread = p->few ? 0 : fac_slab_floats(&p->slab);
    return true;
}

static bool offer(fac_device *d, fac_problem *q, fac_offer *o) {
    plan p = { .cpu = fac_cpu_of(d) };
    if (!settle(&p, q)) return false;
    for (int i = 0; i < INPUTS; i++)
        if (q->in[i].type.dtype) fac_want_plain(&q->in[i]);
    fac_want_plain(&q->out[0]);
    const double M = (double)p.slab.M, N = (double)p.slab.N, K = (double)p.slab.K;
    const double bytes = N * ((double)fac_nbits_row_bytes(&p.w) + 4 * (double)p.w.blocks);
    o->work = (p.x_floats + p.per_thread * (size_t)p.cpu->pool.threads + 16) * sizeof(float);
    o->seconds =
        fac_cpu_speeds.step + bytes / (2 * p.cpu->bandwidth) + 2 * M * N * K / p.cpu->flops;
    *FAC_DRAFT(o, plan) = p;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *q, void **out, fac_error *err) {
    plan *p = fac_alloc(1, sizeof *p);
    (void)d;
    if (!p) return fac_raise_memory(err, "a plan of matmul_nbits/blocks");
    *p = *(const plan *)q->draft;
    p->x = q->in[X].layout;
    p->scale = q->in[SCALE].layout;
    p->bias = q->in[BIAS].layout;
    p->y = q->out[0].layout;
    *out = p;
    return FAC_OK;
}

static void done(fac_device *d, void *plan_) { (void)d, fac_release(plan_); }

/* ---- running ---- */

typedef struct job {
    const plan *p;
    fac_nbits_weights w;
    const float *x, *bias;
    float *y, *turned, *scratch;
} job;

static void add_bias(const job *j, int64_t first, int64_t rows) {
    const fac_slab *s = &j->p->slab;
    if (!j->bias) return;
    for (int64_t m = 0; m < s->M; m++)
        for (int64_t k = first; k < first + rows; k++) j->y[m * s->N + k] += j->bias[k];
}

static void by_codes(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const fac_nbits_rows t = { .w = &j->w,
                               .first = first,
                               .rows = last - first,
                               .x = j->turned,
                               .m = j->p->slab.M,
                               .y = j->y + first,
                               .y_row = j->p->slab.N };
    (void)thread;
    if (j->p->rounded)
        j->p->rounded->run(&t);
    else
        j->p->kernels->run(&t);
    add_bias(j, first, last - first);
}

static void turn_row(void *arg, int m, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const float *x = j->x + m * p->slab.K;
    float *to = j->turned + m * row_of(p);
    (void)thread;
    if (p->rounded)
        p->rounded->round(&p->w, x, to);
    else
        p->kernels->turn(&p->w, x, to);
}

static void by_floats(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_slab *s = &j->p->slab;
    const int64_t first = i * s->rows, left = s->N - first, rows = left < s->rows ? left : s->rows;
    float *slab = j->scratch + (size_t)thread * j->p->per_thread;
    for (int64_t n = 0; n < rows; n++) j->p->kernels->decode(&j->w, first + n, slab + n * s->K);
    fac_slab_product(s, j->x, slab, rows, j->y + first);
    add_bias(j, first, rows);
}

static const void *bytes_at(fac_span s) { return (const char *)s.memory + s.at; }

static job job_of(const plan *p, const fac_span *in, const fac_span *out, fac_span work) {
    job j = { .p = p,
              .w = p->w,
              .x = fac_span_floats(in[X], &p->x),
              .bias = p->has_bias ? fac_span_floats(in[BIAS], &p->bias) : NULL,
              .y = fac_span_floats(out[0], &p->y),
              .turned = fac_span_packed(work),
              .scratch = fac_span_packed(work) };
    j.w.codes = bytes_at(in[Q]);
    j.w.scale = fac_span_floats(in[SCALE], &p->scale);
    j.w.zero = p->zeros ? bytes_at(in[ZERO]) : NULL;
    j.w.zero_number = p->numbers ? bytes_at(in[ZERO]) : NULL;
    return j;
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_pool *pool = &p->cpu->pool;
    const fac_slab *s = &p->slab;
    job j = job_of(p, in, out, work);
    (void)d, (void)err;
    if (!p->few) {
        fac_parallel(pool, (int)s->slabs, by_floats, &j);
        return FAC_OK;
    }
    fac_parallel(pool, (int)s->M, turn_row, &j);
    const int64_t shares = s->N / 64 < 4 * pool->threads ? pool->threads : 4 * pool->threads;
    fac_parallel_ranges(pool, s->N, (int)shares, by_codes, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_matmul_nbits = { .name = "matmul_nbits/blocks",
                                          .op = &fac_op_matmul_nbits,
                                          .rank = 225,
                                          .offer = offer,
                                          .make = make,
                                          .done = done,
                                          .run = run };
