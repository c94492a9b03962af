/* linear/blocks: a linear layer whose weights stay as small as they are stored: in blocks of a few
 * bits, or as f16 and bf16.
 *
 * Weights are read where they lie, most often in the mapped file: there is no packed copy, and a
 * run takes as long as it takes to read them.  With few rows of x, each of them is rounded to 8
 * bits in blocks of 32 and the products are those of integers (simd/blocks/block_dots.c), for types
 * that have such kernels and unless the program wants the highest precision.  So it is with many
 * rows of x for types of 4 bits: rows of weights become a panel in the caches of a core, whose
 * codes meet x there (simd/blocks/block_panels.c, nbits_rounded.c).  Else some rows of weights at a
 * time become f32 in these caches: they meet x by dots for few rows, as a matrix product for many.
 */
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/product/block_dots.h"
#include "backends/cpu/elementwise/epilogue.h"
#include "backends/cpu/product/nbits.h"
#include "backends/cpu/product/slab.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "op_list.h"
#include "tensor/blocks.h"
#include "tensor/dtype.h"
#include "tensor/tensor_internal.h"

enum { ROUNDED_MOST = 16, TOGETHER = 16, BLOCK = 32 };

typedef struct plan {
    const fac_cpu *cpu;
    fac_epilogue e;
    fac_layout x, y, b, r;
    fac_dtype type;
    int64_t M, N, K;
    fac_slab slab; /* rows of weights that become f32 together */
    int64_t row_bytes;
    size_t x_bytes, per_thread; /* of scratch */
    bool bias, rounded;
    const fac_block_dots *dots;
    /* Of panels of codes; NULL: weights meet x otherwise. */
    fac_block_panel_maker *panel;
    const fac_nbits_rounded *products;
    fac_nbits_panels all; /* without data */
} plan;

/* Those of the device's instruction set; NULL: the type has none. */
static const fac_block_dots *dots_of(const fac_simd *s, fac_dtype t) {
    const fac_block_dots *of = fac_block_dots_base;
#if defined(__x86_64__)
    if (s->isa == FAC_ISA_AVX2) of = fac_block_dots_avx2;
    if (s->isa == FAC_ISA_AVX512) of = fac_block_dots_avx512;
#endif
    (void)s;
    return of[t].run ? &of[t] : NULL;
}

/* Many rows of x meet panels of codes. */
static void by_panels(plan *p) {
    fac_block_panel_maker *const *of = fac_block_panels_base;
#if defined(__x86_64__)
    if (p->cpu->simd->isa == FAC_ISA_AVX2) of = fac_block_panels_avx2;
    if (p->cpu->simd->isa == FAC_ISA_AVX512) of = fac_block_panels_avx512;
#endif
    p->products = fac_nbits_rounded_of(p->cpu->simd);
    p->panel = p->products ? of[p->type] : NULL;
    p->all = (fac_nbits_panels){ .block = BLOCK, .blocks = p->K / BLOCK, .words = p->K / 8 };
}

/* Floats of a panel's codes, scales and offsets. */
static int64_t panel_floats(const plan *p) {
    return 2 * p->cpu->simd->lanes * (p->all.words + 2 * p->all.blocks);
}

static bool stored(fac_dtype t) { return fac_dtype_is_half(t) || fac_dtype_get(t)->kind == 'q'; }

static bool settle(plan *p, const fac_problem *q) {
    const fac_operand *x = &q->in[0], *w = &q->in[1], *b = &q->in[2];
    const fac_simd *s = p->cpu->simd;
    const int64_t rows = fac_dims_count(&x->type.dims);
    if (x->type.dtype != FAC_F32 || !stored(w->type.dtype) || q->nout != 1 || rows <= 0)
        return false;
    p->type = w->type.dtype;
    p->N = w->type.dims.d[0];
    p->K = w->type.dims.d[1];
    if (p->N <= 0 || p->K <= 0 || !fac_cpu_epilogue(q, s, &p->e)) return false;
    p->M = rows / p->K;
    p->bias = b->type.dtype != FAC_NONE;
    const fac_dtype_info *t = fac_dtype_get(p->type);
    p->row_bytes = p->K / t->block_elements * t->block_bytes;
    p->dots = dots_of(s, p->type);
    const bool may_round = q->precision != FAC_PRECISION_HIGHEST && p->K % BLOCK == 0;
    p->rounded = p->dots && p->M <= ROUNDED_MOST && may_round;
    if (may_round && !p->rounded) by_panels(p);
    p->slab = (fac_slab){ .cpu = p->cpu, .M = p->M, .N = p->N, .K = p->K };
    p->x_bytes = p->rounded ? (size_t)p->M * fac_block_x_bytes(p->K) : 0;
    if (!fac_slab_settle(&p->slab)) return false;
    if (p->panel) p->x_bytes = (fac_nbits_rounded_bytes(p->products, &p->all, p->M) + 63) / 64 * 64;
    p->per_thread = p->rounded ? 0 : fac_slab_floats(&p->slab) * sizeof(float);
    if (p->panel) p->per_thread = (size_t)panel_floats(p) * sizeof(float);
    return true;
}

static bool offer(fac_device *d, fac_problem *q, fac_offer *o) {
    plan p = { .cpu = fac_cpu_of(d) };
    if (!settle(&p, q)) return false;
    for (int i = 0; i < 3; i++)
        if (q->in[i].type.dtype) fac_want_plain(&q->in[i]);
    fac_want_plain(&q->out[0]);
    if (p.e.residual >= 0) fac_want_plain(&q->in[p.e.residual]);
    o->work = p.x_bytes + p.per_thread * (size_t)p.cpu->pool.threads + 64;
    o->seconds = fac_cpu_speeds.step + (double)(p.N * p.row_bytes) / (2 * p.cpu->bandwidth) +
                 2 * (double)p.M * (double)p.N * (double)p.K / p.cpu->flops;
    *FAC_DRAFT(o, plan) = p;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *q, void **out, fac_error *err) {
    plan *p = fac_solver_plan(q, sizeof *p, err);
    (void)d;
    if (!p) return FAC_E_NOMEM;
    *p = *(const plan *)q->draft;
    p->x = q->in[0].layout;
    p->b = q->in[2].layout;
    p->y = q->out[0].layout;
    if (p->e.residual >= 0) p->r = q->in[p->e.residual].layout;
    *out = p;
    return FAC_OK;
}

/* ---- running ---- */

typedef struct job {
    const plan *p;
    const float *x, *b, *r;
    const char *w;
    float *y;
    char *rounded, *work;
} job;

/* What comes after the products, for columns first .. first + n - 1 of all rows. */
static void finish(const job *j, int64_t first, int64_t n) {
    const plan *p = j->p;
    for (int64_t m = 0; m < p->M; m++) {
        float *y = j->y + m * p->N + first;
        for (int64_t k = 0; k < n; k++) {
            float v = y[k] + (j->b ? j->b[first + k] : 0);
            v += j->r ? j->r[m * p->N + first + k] : 0;
            v = v < p->e.lo ? p->e.lo : v;
            y[k] = v > p->e.hi ? p->e.hi : v;
        }
        fac_epilogue_run(&p->e, y, (size_t)n);
    }
}

/* Units are TOGETHER rows of weights, which the kernels take at once. */
static void by_integers(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    (void)thread;
    first *= TOGETHER;
    last = last * TOGETHER < p->N ? last * TOGETHER : p->N;
    const fac_block_rows t = { .w = j->w + first * p->row_bytes,
                               .w_row = p->row_bytes,
                               .rows = last - first,
                               .K = p->K,
                               .x = j->rounded,
                               .x_row = (int64_t)fac_block_x_bytes(p->K),
                               .m = p->M,
                               .y = j->y + first,
                               .y_row = p->N };
    p->dots->run(&t);
    finish(j, first, last - first);
}

/* A slab of weights as f32, rows one after the other. */
static void decode(const plan *p, const char *w, int64_t rows, float *to) {
    for (int64_t k = 0; k < rows; k++, w += p->row_bytes, to += p->K) {
        if (p->dots && p->dots->decode)
            p->dots->decode(w, to, p->K);
        else
            fac_convert(FAC_F32, to, p->type, w, (size_t)p->K);
    }
}

static void by_floats(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const int64_t first = i * p->slab.rows, left = p->N - first;
    const int64_t rows = left < p->slab.rows ? left : p->slab.rows;
    float *slab = (float *)(j->work + (size_t)thread * p->per_thread);
    decode(p, j->w + first * p->row_bytes, rows, slab);
    fac_slab_product(&p->slab, j->x, slab, rows, j->y + first);
    finish(j, first, rows);
}

/* A row of x as panels meet it. */
static void round_row(void *arg, int m, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    (void)thread;
    fac_nbits_rounded_row(p->products, &p->all, j->x + m * p->K, p->K, m, p->M, j->rounded);
}

static void by_codes(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const int64_t wide = 2 * p->cpu->simd->lanes, first = i * wide, left = p->N - first;
    const int64_t rows = left < wide ? left : wide;
    float *work = (float *)(void *)(j->work + (size_t)thread * p->per_thread);
    const fac_block_panel to = { (uint32_t *)(void *)work, work + wide * p->all.words,
                                 work + wide * (p->all.words + p->all.blocks) };
    fac_nbits_panels panel = p->all;
    panel.codes = to.codes;
    panel.scale = to.scale;
    panel.offset = p->type == FAC_Q4_0 ? NULL : to.offset;
    const fac_nbits_task t = { .w = &panel,
                               .last = 1,
                               .N = rows,
                               .x = j->rounded,
                               .m = p->M,
                               .y = j->y + first,
                               .y_row = p->N };
    p->panel(j->w + first * p->row_bytes, p->row_bytes, (int)rows, p->K, &to);
    fac_nbits_rounded_run(p->products, &t);
    finish(j, first, rows);
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_pool *pool = &p->cpu->pool;
    (void)d, (void)err;
    char *scratch = (char *)fac_span_packed(work);
    job j = { .p = p,
              .x = fac_span_floats(in[0], &p->x),
              .b = p->bias ? fac_span_floats(in[2], &p->b) : NULL,
              .r = p->e.residual >= 0 ? fac_span_floats(in[p->e.residual], &p->r) : NULL,
              .w = (const char *)in[1].memory + in[1].at,
              .y = fac_span_floats(out[0], &p->y),
              .rounded = scratch,
              .work = scratch + p->x_bytes };
    if (p->panel) {
        fac_parallel(pool, (int)p->M, round_row, &j);
        fac_parallel(pool, (int)fac_nbits_panel_count(p->N, p->cpu->simd->lanes), by_codes, &j);
        return FAC_OK;
    }
    if (!p->rounded) {
        fac_parallel(pool, (int)p->slab.slabs, by_floats, &j);
        return FAC_OK;
    }
    for (int64_t m = 0; m < p->M; m++)
        p->dots->round(j.x + m * p->K, p->K, j.rounded + m * (int64_t)fac_block_x_bytes(p->K));
    const int64_t shares = p->N / 64 < 4 * pool->threads ? pool->threads : 4 * pool->threads;
    const int64_t units = (p->N + TOGETHER - 1) / TOGETHER;
    fac_parallel_ranges(pool, units, (int)shares, by_integers, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_linear_blocks = { .name = "linear/blocks",
                                           .op = &fac_op_linear,
                                           .rank = 220,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_solver_done,
                                           .run = run };
