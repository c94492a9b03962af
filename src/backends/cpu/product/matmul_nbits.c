/* matmul_nbits/blocks: weights of 2, 4 or 8 bits stay as small as they are stored.
 *
 * Those of 4 bits are packed once, so that rows are lanes (nbits.h).  Where the node allows it and
 * the program does not want the highest precision, x is rounded to 8 bits in blocks, and products
 * are those of integers (simd/blocks/nbits_rounded.c).  Else x stays f32, and nothing is rounded
 * but sums: few rows of x meet codes in registers, so that a run takes as long as it takes to read
 * them, and for many rows panels become f32 in the caches of a core (panels.h).  Weights of 2 and 8
 * bits are read where they lie and become f32, some rows at a time (slab.h). */
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/cpu/product/nbits.h"
#include "backends/cpu/product/panels.h"
#include "backends/cpu/product/slab.h"
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "op_list.h"

enum { X, Q, SCALE, ZERO, BIAS, INPUTS, LEAST_BLOCK = 16 };

typedef enum way { SLABS, FEW_ROWS, PANELS, INTEGERS } way;

typedef struct plan {
    const fac_cpu *cpu;
    const fac_nbits_kernels *kernels;
    const fac_nbits_rounded *rounded;
    way way;
    fac_nbits_weights w;  /* by slabs */
    fac_nbits_panels all; /* else */
    fac_slab slab;
    fac_panels panels;
    int64_t M, N, K;
    fac_layout in[INPUTS], y; /* of what is not packed */
    bool zeros, numbers, has_bias;
    size_t work; /* bytes */
} plan;

static const fac_nbits_kernels *kernels_of(const fac_simd *s) {
#if defined(__x86_64__)
    if (s->isa == FAC_ISA_AVX512) return &fac_nbits_avx512;
    if (s->isa == FAC_ISA_AVX2) return &fac_nbits_avx2;
#endif
    (void)s;
    return &fac_nbits_base;
}

/* Which way, and the bytes of scratch that it takes. */
static bool choose(plan *p, const fac_problem *q) {
    const fac_nbits_opts *o = q->node->attrs;
    const size_t threads = (size_t)p->cpu->pool.threads;
    if (o->bits != 4) {
        p->way = SLABS;
        p->slab = (fac_slab){ .cpu = p->cpu, .M = p->M, .N = p->N, .K = p->K };
        if (!fac_slab_settle(&p->slab)) return false;
        p->work = fac_slab_floats(&p->slab) * threads * sizeof(float);
        return true;
    }
    p->panels = (fac_panels){ .cpu = p->cpu, .M = p->M, .N = p->N, .K = p->K };
    if (!fac_panels_settle(&p->panels)) return false;
    const bool may_round = o->accuracy == FAC_NBITS_INT8 && q->precision != FAC_PRECISION_HIGHEST;
    p->rounded = may_round ? fac_nbits_rounded_of(p->cpu->simd) : NULL;
    if (p->rounded) {
        p->way = INTEGERS;
        p->work = fac_nbits_rounded_bytes(p->rounded, &p->all, p->M);
    } else if (p->M <= FAC_NBITS_FEW) {
        p->way = FEW_ROWS;
        p->work = (size_t)(p->M * fac_nbits_x_row(&p->all)) * sizeof(float);
    } else {
        p->way = PANELS;
        p->work = (p->panels.shared + p->panels.each * threads) * sizeof(float);
    }
    return true;
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
    p->all = (fac_nbits_panels){ .block = o->block,
                                 .blocks = p->w.blocks,
                                 .words = p->w.blocks * o->block / 8 };
    p->M = count / o->k;
    p->N = o->n;
    p->K = o->k;
    p->zeros = zero == FAC_U8;
    p->numbers = zero == FAC_F32;
    p->has_bias = q->in[BIAS].type.dtype != FAC_NONE;
    return choose(p, q);
}

static int64_t panels_of(const plan *p) { return fac_nbits_panel_count(p->N, p->cpu->simd->lanes); }

/* Bytes of an input when it is packed, 0: it is not. */
static size_t packed_bytes(const plan *p, int input) {
    const int64_t rows = panels_of(p) * 2 * p->cpu->simd->lanes;
    const bool numbers = input == SCALE || (input == ZERO && (p->zeros || p->numbers));
    if (p->way == SLABS) return 0;
    if (input == Q) return (size_t)(rows * p->all.words) * sizeof(uint32_t);
    return numbers ? (size_t)(rows * p->all.blocks) * sizeof(float) : 0;
}

static bool offer(fac_device *d, fac_problem *q, fac_offer *o) {
    plan p = { .cpu = fac_cpu_of(d) };
    if (!settle(&p, q)) return false;
    for (int i = 0; i < INPUTS; i++) {
        if (!q->in[i].type.dtype) continue;
        o->packed[i] = packed_bytes(&p, i);
        if (o->packed[i])
            q->in[i].layout = fac_layout_plain(&q->in[i].type.dims);
        else
            fac_want_plain(&q->in[i]);
    }
    fac_want_plain(&q->out[0]);
    const double M = (double)p.M, N = (double)p.N, K = (double)p.K;
    const double bytes = N * ((double)fac_nbits_row_bytes(&p.w) + 4 * (double)p.w.blocks);
    o->work = p.work + 64;
    o->seconds =
        fac_cpu_speeds.step + bytes / (2 * p.cpu->bandwidth) + 2 * M * N * K / p.cpu->flops;
    if (q->in[Q].time == FAC_RUN) o->seconds += (double)o->packed[Q] / fac_cpu_speeds.byte_pack;
    *FAC_DRAFT(o, plan) = p;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *q, void **out, fac_error *err) {
    plan *p = fac_alloc(1, sizeof *p);
    (void)d;
    if (!p) return fac_raise_memory(err, "a plan of matmul_nbits/blocks");
    *p = *(const plan *)q->draft;
    for (int k = 0; k < INPUTS; k++) p->in[k] = q->in[k].layout;
    p->y = q->out[0].layout;
    *out = p;
    return FAC_OK;
}

static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    return (uint64_t)p->cpu->simd->lanes | (uint64_t)input << 8 | (uint64_t)p->zeros << 12 |
           (uint64_t)p->all.block << 16;
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    const int lanes = p->cpu->simd->lanes;
    const void *source = (const char *)from.memory + from.at;
    (void)d, (void)err;
    if (input == Q)
        fac_nbits_pack_codes(&p->cpu->pool, source, p->N, p->all.words, lanes,
                             (uint32_t *)(void *)((char *)to.memory + to.at));
    else if (input == ZERO && p->zeros)
        fac_nbits_pack_zeros(source, p->N, p->all.blocks, lanes, fac_span_packed(to));
    else
        fac_nbits_pack_numbers(source, p->N, p->all.blocks, lanes, fac_span_packed(to));
    return FAC_OK;
}

/* ---- running ---- */

typedef struct job {
    const plan *p;
    fac_nbits_weights w;
    fac_nbits_panels all;
    const float *x, *bias;
    float *y, *scratch;
} job;

static void add_bias(const void *job_, int64_t first, int64_t rows) {
    const job *j = job_;
    const plan *p = j->p;
    if (!j->bias) return;
    for (int64_t m = 0; m < p->M; m++)
        for (int64_t k = first; k < first + rows; k++) j->y[m * p->N + k] += j->bias[k];
}

static void by_codes(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const int64_t wide = 2 * p->cpu->simd->lanes, end = last * wide < p->N ? last * wide : p->N;
    const fac_nbits_task t = { .w = &j->all,
                               .first = first,
                               .last = last,
                               .N = p->N,
                               .x = j->scratch,
                               .m = p->M,
                               .y = j->y,
                               .y_row = p->N };
    (void)thread;
    if (p->way == INTEGERS)
        fac_nbits_rounded_run(p->rounded, &t);
    else
        p->kernels->run(&t);
    add_bias(j, first * wide, end - first * wide);
}

/* A row of x as by_codes() wants it. */
static void prepare_row(void *arg, int m, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const float *x = j->x + m * p->K;
    (void)thread;
    if (p->way == INTEGERS) {
        fac_nbits_rounded_row(p->rounded, &j->all, x, p->K, m, p->M, j->scratch);
        return;
    }
    const int64_t block = p->all.block, all = p->all.blocks * block;
    float *to = j->scratch + m * fac_nbits_x_row(&p->all), *sums = to + all;
    for (int64_t k = 0; k < all; k++) to[k] = k < p->K ? x[k] : 0;
    for (int64_t b = 0; b < p->all.blocks; b++) {
        float sum = 0;
        for (int64_t k = 0; k < block; k++) sum += to[b * block + k];
        sums[b] = sum;
    }
}

static void by_slabs(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_slab *s = &j->p->slab;
    const int64_t first = i * s->rows, left = s->N - first, rows = left < s->rows ? left : s->rows;
    float *slab = j->scratch + (size_t)thread * fac_slab_floats(s);
    for (int64_t n = 0; n < rows; n++) j->p->kernels->decode(&j->w, first + n, slab + n * s->K);
    fac_slab_product(s, j->x, slab, rows, j->y + first);
    add_bias(j, first, rows);
}

static void make_panel(const void *job_, int64_t panel, int vectors, int64_t k0, int64_t k1,
                       float *to) {
    const job *j = job_;
    j->p->kernels->panel(&j->all, panel, vectors, k0, (k1 + 7) / 8 * 8, to);
}

/* Input k, not packed, of elements of so many bytes. */
static const void *input(const plan *p, const fac_span *in, int k, int64_t size) {
    return (const char *)in[k].memory + in[k].at + p->in[k].offset * size;
}
static const float *floats(const plan *p, const fac_span *in, int k) {
    return fac_span_floats(in[k], &p->in[k]);
}

static job job_of(const plan *p, const fac_span *in, const fac_span *out, fac_span work) {
    job j = { .p = p,
              .w = p->w,
              .all = p->all,
              .x = floats(p, in, X),
              .bias = p->has_bias ? floats(p, in, BIAS) : NULL,
              .y = fac_span_floats(out[0], &p->y),
              .scratch = fac_span_packed(work) };
    if (p->way == SLABS) {
        j.w.codes = input(p, in, Q, 1);
        j.w.scale = floats(p, in, SCALE);
        j.w.zero = p->zeros ? input(p, in, ZERO, 1) : NULL;
        j.w.zero_number = p->numbers ? floats(p, in, ZERO) : NULL;
    } else {
        j.all.codes = (const void *)((const char *)in[Q].memory + in[Q].at);
        j.all.scale = fac_span_packed(in[SCALE]);
        j.all.zero = p->zeros || p->numbers ? fac_span_packed(in[ZERO]) : NULL;
    }
    return j;
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_pool *pool = &p->cpu->pool;
    job j = job_of(p, in, out, work);
    const fac_panels_job panels = { .p = &p->panels,
                                    .x = j.x,
                                    .y = j.y,
                                    .make = make_panel,
                                    .end = add_bias,
                                    .of = &j,
                                    .scratch = j.scratch };
    (void)d, (void)err;
    if (p->way == SLABS) {
        fac_parallel(pool, (int)p->slab.slabs, by_slabs, &j);
    } else if (p->way == PANELS) {
        fac_panels_run(&panels);
    } else {
        const int64_t all = panels_of(p), most = 4 * pool->threads;
        fac_parallel(pool, (int)p->M, prepare_row, &j);
        fac_parallel_ranges(pool, all, (int)(all < 2 * most ? pool->threads : most), by_codes, &j);
    }
    return FAC_OK;
}

const fac_solver fac_cpu_matmul_nbits = { .name = "matmul_nbits/blocks",
                                          .op = &fac_op_matmul_nbits,
                                          .rank = 225,
                                          .offer = offer,
                                          .make = make,
                                          .done = fac_solver_done,
                                          .pack_key = pack_key,
                                          .pack = pack,
                                          .run = run };
