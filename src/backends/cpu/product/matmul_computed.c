/* linear/computed, matmul/computed, gemm/computed: products of f32 whose b was computed in the run,
 * as gradients and trained weights are; of any size, transposed or not, in broadcast batches.
 *
 * y[m][n] = clip(alpha sum over k of a[m][k] b[k][n] + beta c + residual, ...).  To pack all of b
 * first, as matmul.c does for weights, would be a pass over memory, half of whose lines the other
 * cores then fetch from the caches of those that wrote them. Here a thread takes a block of y and
 * packs what it needs just before it needs it (fac_gemm_both): some of it twice, but within its own
 * caches and after the arithmetic of what came before. */
#include <limits.h>
#include <math.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/product/gemm.h"
#include "backends/cpu/product/matmul.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum {
    DEEPEST = 1024, /* slab of the sum                  */
    SHALLOW = 192,  /* sums of few terms                */
    FEW_PANELS = 4, /* too few to pack a for            */
    SHARES = 4      /* items for each thread are enough */
};

typedef struct plan {
    fac_matmul_form m;
    fac_epilogue e;
    fac_layout a, b, y, r;
    const fac_cpu *cpu;
    bool direct;                     /* a is read where it lies            */
    bool shallow, past;              /* few terms; y goes past the caches  */
    int64_t blocks, parts, together; /* of rows; of panels, `together` each */
    int64_t depth;                   /* of a slab                           */
    size_t per_thread;               /* floats of scratch                   */
} plan;

typedef struct job {
    const plan *p;
    const float *a, *b, *c, *r;
    float *y, *work;
} job;

/* [batch][block of rows][part of the panels] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_matmul_form *m = &p->m;
    const fac_simd *s = p->cpu->simd;
    const int64_t part = i % p->parts, block = i / p->parts % p->blocks,
                  batch = i / p->parts / p->blocks;
    const int64_t tiles = fac_gemm_tiles(s, m->M), panels = fac_gemm_panels(s, m->N),
                  p0 = part * p->together;
    const int64_t p1 = p0 + p->together < panels ? p0 + p->together : panels, matrix = m->M * m->N;
    const fac_matmul_place at = fac_matmul_at(m, batch);
    const float *r = m->c == FAC_C_WHOLE ? j->c : j->r;
    const fac_gemm_job g = { .simd = s,
                             .M = m->M,
                             .N = m->N,
                             .K = m->K,
                             .y = j->y + batch * matrix,
                             .y_row = m->N,
                             .bias = m->c == FAC_C_COLUMNS ? j->c : NULL,
                             .row_bias = m->c == FAC_C_ROWS ? j->c : NULL,
                             .r = r ? r + batch * matrix : NULL,
                             .r_row = m->N,
                             .e = &p->e,
                             .past = p->past && (uintptr_t)j->y % (uintptr_t)(4 * s->lanes) == 0 };
    const fac_gemm_block here = {
        .t0 = tiles * block / p->blocks, .t1 = tiles * (block + 1) / p->blocks, .p0 = p0, .p1 = p1
    };
    const fac_gemm_matrix a = { j->a + at.a, m->a_row, m->a_column },
                          b = { j->b + at.b, m->b_row, m->b_column };
    float *scratch = j->work + (size_t)thread * p->per_thread;
    if (p->shallow)
        fac_gemm_shallow(&g, here, a, b, (float)m->alpha, scratch);
    else
        fac_gemm_both(&g, here, a, b, (float)m->alpha, p->depth, p->direct, scratch);
    if (g.past) fac_streams_end();
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p,
              fac_span_floats(in[0], &p->a),
              fac_span_floats(in[1], &p->b),
              p->m.c ? fac_span_packed(in[2]) : NULL,
              p->e.residual >= 0 ? fac_span_floats(in[p->e.residual], &p->r) : NULL,
              fac_span_floats(out[0], &p->y),
              fac_span_packed(work) };
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->m.batches * p->blocks * p->parts), item, &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

/* Row tiles whose slab of a, with two panels of b, is about the second cache: some of it may come
 * from the third one, four bytes a cycle, which is less than packing b for twice as many blocks
 * (measured: 1024^3 on one thread 13.3 and 14.3 ms). */
static int64_t room(const plan *p, int64_t depth) {
    const fac_simd *s = p->cpu->simd;
    const int64_t floats = (int64_t)(p->cpu->l2 / sizeof(float)) * 5 / 4,
                  tiles = (floats / depth - 4 * s->lanes) / s->rows;
    return tiles < 4 ? 4 : tiles;
}

/* Blocks of rows times parts of panels times slabs of the sum, so that all threads end soonest. The
 * unit is a product of a row tile and a panel over one slab of FAC_GEMM_DEPTH: to pack a tile takes
 * half of it, to pack a panel one, to add to what is in y a thirtieth (measured), and at the end a
 * tenth of an item is waited for. */
static void cut(plan *p) {
    const fac_simd *s = p->cpu->simd;
    const int64_t threads = p->cpu->pool.threads, tiles = fac_gemm_tiles(s, p->m.M),
                  panels = fac_gemm_panels(s, p->m.N);
    const int64_t most = SHARES * threads, fewest_slabs = (p->m.K + DEEPEST - 1) / DEEPEST;
    const double full = (double)p->m.K / FAC_GEMM_DEPTH;
    double least = INFINITY;
    for (int64_t slabs = fewest_slabs; slabs <= 2 * fewest_slabs; slabs++) {
        const int64_t depth = fac_gemm_padded(s, (p->m.K + slabs - 1) / slabs);
        const int64_t fewest = p->direct ? 1 : (tiles + room(p, depth) - 1) / room(p, depth);
        for (int64_t blocks = fewest; blocks <= tiles && blocks <= fewest + most; blocks++)
            for (int64_t k = 1; k == 1 || (k <= panels && blocks * k <= 2 * most); k++) {
                const int64_t rows = (tiles + blocks - 1) / blocks, together = (panels + k - 1) / k;
                const int64_t parts = (panels + together - 1) / together;
                const double items = (double)p->m.batches * (double)blocks * (double)parts,
                             pairs = (double)(rows * together);
                const double packing = (p->direct ? 0 : 0.5 * (double)rows) + (double)together;
                const double item = full * (pairs + packing) + (double)slabs * pairs / 30;
                const double length = (ceil(items / (double)threads) + 0.1) * item;
                if (length >= least) continue;
                least = length;
                p->blocks = blocks;
                p->together = together;
                p->parts = parts;
                p->depth = depth;
            }
    }
}

/* A single matrix b is taken as it lies. */
static bool takes_b(const fac_problem *p) {
    const fac_operand *b = &p->in[1];
    return FAC_IS(p->node, matmul) && b->type.dims.n == 2 && b->layout.block == 0 &&
           b->layout.stride[0] > 0 && b->layout.stride[1] > 0 &&
           (b->layout.stride[0] == 1 || b->layout.stride[1] == 1);
}

static bool settle(plan *p, const fac_problem *problem) {
    const fac_simd *s = p->cpu->simd;
    const fac_matmul_form *m = &p->m;
    if (problem->nin < 2 || problem->in[1].time != FAC_RUN) return false;
    if (!fac_matmul_read(problem, FAC_F32, &p->m) || !fac_cpu_epilogue(problem, s, &p->e))
        return false;
    if (m->c == FAC_C_WHOLE && p->e.residual >= 0) return false;
    if (takes_b(problem)) {
        p->m.b_row = problem->in[1].layout.stride[0];
        p->m.b_column = problem->in[1].layout.stride[1];
    }
    /* Packing a row of a pays when enough panels meet it.  Rows whole pages apart share their
     * places in the first cache. */
    const int64_t tiles = fac_gemm_tiles(s, m->M), panels = fac_gemm_panels(s, m->N);
    const bool few = tiles == 1 || (panels <= FEW_PANELS && m->a_row % 1024 != 0);
    p->direct = few && m->a_column == 1 && m->alpha == 1;
    cut(p);
    if (m->batches > INT_MAX / p->blocks || m->batches * p->blocks > INT_MAX / p->parts)
        return false;
    p->per_thread =
        fac_gemm_both_floats(s, (tiles + p->blocks - 1) / p->blocks, p->depth, p->direct);
    if (p->direct || m->K > SHALLOW) return true;
    const size_t all = fac_gemm_shallow_floats(s, p->together, m->K);
    p->shallow = all * sizeof(float) <= p->cpu->l2 / 2;
    if (!p->shallow) return true;
    p->per_thread = all;
    p->past = m->c != FAC_C_WHOLE && m->c != FAC_C_ROWS && p->e.residual < 0 && p->e.loops == 0 &&
              m->N % s->lanes == 0 &&
              fac_streams_past(p->cpu, (size_t)(m->batches * m->M) * (size_t)m->N * sizeof(float));
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    if (!settle(&q, p)) return false;
    const fac_matmul_form *m = &q.m;
    if (!fac_size_mul(q.per_thread * sizeof(float), (size_t)q.cpu->pool.threads, &o->work))
        return false;
    if (!fac_matmul_takes_a(p)) fac_want_plain(&p->in[0]);
    if (!takes_b(p)) fac_want_plain(&p->in[1]);
    fac_want_plain(&p->out[0]);
    if (q.e.residual >= 0) fac_want_plain(&p->in[q.e.residual]);
    o->packed[2] = (size_t)fac_matmul_packed_c(m, q.cpu->simd->lanes) * sizeof(float);
    const double products = (double)m->batches * (double)m->M * (double)m->N * (double)m->K;
    const double rows = (double)m->batches * (double)m->M * (double)(m->K + m->N),
                 b = (double)m->b_count * (double)(m->K * m->N);
    o->seconds = fac_cpu_seconds(q.cpu, 2 * products, 0.7, 4 * (rows + b));
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->a = p->in[0].layout;
    q->b = p->in[1].layout;
    q->y = p->out[0].layout;
    if (q->e.residual >= 0) q->r = p->in[q->e.residual].layout;
    *out = q;
    return FAC_OK;
}
/* c */
static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    (void)input;
    return fac_matmul_key_c(&p->m, p->cpu->simd->lanes);
}
static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    (void)d, (void)input, (void)err;
    fac_matmul_pack_c(&p->m, p->cpu->simd->lanes, fac_span_packed(from), fac_span_packed(to));
    return FAC_OK;
}

#define SOLVER(of)                                                                                 \
    .name = #of "/computed", .op = &fac_op_##of, .offer = offer, .make = make,                     \
    .done = fac_solver_done, .pack_key = pack_key, .pack = pack, .run = run
const fac_solver fac_cpu_linear_computed = { SOLVER(linear), .rank = 300 };
const fac_solver fac_cpu_matmul_computed = { SOLVER(matmul), .rank = 310 };
const fac_solver fac_cpu_gemm_computed = { SOLVER(gemm), .rank = 320 };
