/* linear/gemm, matmul/gemm, gemm/gemm: matrix products of f32, of any size, transposed or not, in
 * broadcast batches.
 *
 * y[m][n] = clip(alpha sum over k of a[m][k] b[k][n] + beta c + residual, ...).  b is packed into
 * panels: once for weights, as a step of the run for what was computed.  a is packed by the thread
 * that uses it, a slab at a time; but of few rows, or against few columns, it is read where it
 * lies.  Where all of a's batch meets one b it is one tall matrix. */
#include <limits.h>
#include <math.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/product/gemm.h"
#include "backends/cpu/product/matmul.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum {
    TILES_OF_BLOCK =
        32, /* row tiles whose slab of a, 32 x 14 x 512 floats, is kept in the second cache */
    FEW_PANELS = 4, /* too few to pack a for */
    SHARES = 4,     /* items for each thread are enough */
    FEW_ROWS = 8    /* other solvers are faster, and they know no bias of the body */
};

typedef struct plan {
    fac_matmul_form m;
    fac_epilogue e;
    fac_layout a, y, r;
    const fac_cpu *cpu;
    bool direct; /* a is read where it lies                                */
    int c;       /* the input that is c: the third, or a bias of the body  */
    int64_t blocks, parts, together;
    size_t packed, per_thread; /* floats: of one b; scratch                              */
} plan;

/* ---- run ---- */

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
    int64_t part = i % p->parts, block = i / p->parts % p->blocks, batch = i / p->parts / p->blocks;
    int64_t tiles = fac_gemm_tiles(s, m->M), t0 = tiles * block / p->blocks,
            t1 = tiles * (block + 1) / p->blocks;
    int64_t panels = fac_gemm_panels(s, m->N), p0 = part * p->together;
    int64_t p1 = p0 + p->together < panels ? p0 + p->together : panels;
    const float *a = j->a, *b = j->b, *r = m->c == FAC_C_WHOLE ? j->c : j->r;
    int64_t matrix = m->M * m->N;
    fac_matmul_place at_batch = fac_matmul_at(m, batch);
    a += at_batch.a;
    b += at_batch.b / (m->K * m->N) * (int64_t)p->packed;
    b += p0 * 2 * s->lanes * m->K;
    fac_gemm_job g = { .simd = s,
                       .M = m->M,
                       .N = m->N,
                       .K = m->K,
                       .y = j->y + batch * matrix,
                       .y_row = m->N,
                       .bias = m->c == FAC_C_COLUMNS ? j->c : NULL,
                       .row_bias = m->c == FAC_C_ROWS ? j->c : NULL,
                       .r = r ? r + batch * matrix : NULL,
                       .r_row = m->N,
                       .e = &p->e };
    float *slab = j->work + (size_t)thread * p->per_thread,
          *edge = slab + (p->per_thread - fac_gemm_edge(s));
    for (int64_t k = 0, end; k < m->K; k = end) {
        end = k + FAC_GEMM_DEPTH < m->K ? k + FAC_GEMM_DEPTH : m->K;
        fac_gemm_block at = { t0, t1, p0, p1, k, end };
        if (p->direct) {
            fac_gemm_rows(&g, at, a, m->a_row, b, edge);
            continue;
        }
        fac_gemm_pack_a(s, a, m->a_row, m->a_column, m->M, t0, t1, k, end, (float)m->alpha, slab);
        fac_gemm_slab(&g, at, slab, fac_gemm_padded(s, end - k), b, edge);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p,
              fac_span_floats(in[0], &p->a),
              fac_span_packed(in[1]),
              p->m.c ? fac_span_packed(in[p->c]) : NULL,
              p->e.residual >= 0 ? fac_span_floats(in[p->e.residual], &p->r) : NULL,
              fac_span_floats(out[0], &p->y),
              fac_span_packed(work) };
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->m.batches * p->blocks * p->parts), item, &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

/* Blocks of rows times parts of panels, so that all threads end soonest.  The unit is a product of
 * a row tile and a panel: to pack a tile takes two of it, to bring in a panel half of one
 * (measured), and at the end a tenth of an item is waited for. */
static void cut(plan *p) {
    const fac_simd *s = p->cpu->simd;
    const int64_t threads = p->cpu->pool.threads, tiles = fac_gemm_tiles(s, p->m.M),
                  panels = fac_gemm_panels(s, p->m.N);
    const int64_t fewest = (tiles + TILES_OF_BLOCK - 1) / TILES_OF_BLOCK, most = SHARES * threads;
    double least = INFINITY;
    for (int64_t blocks = fewest; blocks <= tiles && blocks <= fewest + most; blocks++)
        for (int64_t k = 1; k == 1 || (k <= panels && blocks * k <= 2 * most); k++) {
            const int64_t rows = (tiles + blocks - 1) / blocks, together = (panels + k - 1) / k;
            const int64_t parts = (panels + together - 1) / together;
            const double items = (double)p->m.batches * (double)blocks * (double)parts;
            const double item =
                (double)rows * ((double)together + (p->direct ? 0 : 2)) + 0.5 * (double)together;
            const double length = (ceil(items / (double)threads) + 0.1) * item;
            if (length >= least) continue;
            least = length;
            p->blocks = blocks;
            p->together = together;
            p->parts = parts;
        }
}

/* A bias in the body is c where there is none. */
static bool settle_c(plan *p, const fac_problem *problem) {
    fac_matmul_form *m = &p->m;
    p->c = p->e.bias < 0 ? 2 : p->e.bias;
    if (p->e.bias < 0) return true;
    if (m->c || problem->in[1].time == FAC_RUN || m->M <= FEW_ROWS) return false;
    m->c = FAC_C_COLUMNS;
    m->c_count = m->N;
    m->beta = 1;
    return true;
}

static bool settle(plan *p, const fac_problem *problem) {
    const fac_simd *s = p->cpu->simd;
    if (!fac_matmul_read(problem, FAC_F32, &p->m) || !fac_cpu_epilogue_columns(problem, s, &p->e) ||
        !settle_c(p, problem))
        return false;
    const fac_matmul_form *m = &p->m;
    int64_t tiles = fac_gemm_tiles(s, m->M), panels = fac_gemm_panels(s, m->N), width;
    if (m->c == FAC_C_WHOLE && p->e.residual >= 0) return false;
    /* Packing a row of a pays when enough panels meet it.  Rows whole pages apart share their
     * places in the first cache. */
    const bool few = tiles == 1 || (panels <= FEW_PANELS && m->a_row % 1024 != 0);
    p->direct = few && m->a_column == 1 && m->alpha == 1;
    cut(p);
    if (m->batches > INT_MAX / p->blocks || m->batches * p->blocks > INT_MAX / p->parts)
        return false;
    width = m->K < FAC_GEMM_DEPTH ? fac_gemm_padded(s, m->K) : FAC_GEMM_DEPTH;
    int64_t most = (tiles < TILES_OF_BLOCK ? tiles : TILES_OF_BLOCK) * s->rows;
    p->per_thread = (p->direct ? 0 : (size_t)(most * width)) + fac_gemm_edge(s);
    return fac_size_mul((size_t)fac_gemm_padded(s, m->N), (size_t)m->K, &p->packed) &&
           p->packed < SIZE_MAX / sizeof(float);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    if (!settle(&q, p)) return false;
    const fac_matmul_form *m = &q.m;
    if (!fac_size_mul(q.packed * sizeof(float), (size_t)m->b_count, &o->packed[1])) return false;
    if (!fac_size_mul(q.per_thread * sizeof(float), (size_t)q.cpu->pool.threads, &o->work))
        return false;
    if (!fac_matmul_takes_a(p)) fac_want_plain(&p->in[0]);
    fac_want_plain(&p->out[0]);
    if (q.e.residual >= 0) fac_want_plain(&p->in[q.e.residual]);
    o->packed[q.c] = (size_t)fac_matmul_packed_c(m, q.cpu->simd->lanes) * sizeof(float);
    double products = (double)m->batches * (double)m->M * (double)m->N * (double)m->K;
    double bytes = 4.0 * ((double)m->b_count * (double)q.packed +
                          (double)m->batches * (double)m->M * (double)(m->K + m->N));
    if (p->in[1].time == FAC_RUN) bytes *= 2;
    o->seconds = fac_cpu_seconds(q.cpu, 2 * products, 0.7, bytes);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->a = p->in[0].layout;
    q->y = p->out[0].layout;
    if (q->e.residual >= 0) q->r = p->in[q->e.residual].layout;
    *out = q;
    return FAC_OK;
}
static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    const fac_matmul_form *m = &p->m;
    if (input == p->c) return fac_matmul_key_c(m, p->cpu->simd->lanes);
    return 1 | (uint64_t)(m->b_column == 1) << 2 | (uint64_t)p->cpu->simd->lanes << 8;
}

typedef struct packing {
    const plan *p;
    const float *from;
    float *to;
} packing;

/* [matrix][panel] */
static void pack_panel(void *arg, int i, int thread) {
    const packing *a = arg;
    const fac_matmul_form *m = &a->p->m;
    const fac_simd *s = a->p->cpu->simd;
    int64_t panels = fac_gemm_panels(s, m->N), matrix = i / panels, panel = i % panels;
    (void)thread;
    fac_gemm_pack_b(s, a->from + matrix * m->K * m->N, m->b_row, m->b_column, m->K, m->N, panel,
                    a->to + matrix * (int64_t)a->p->packed + panel * 2 * s->lanes * m->K);
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    const fac_matmul_form *m = &p->m;
    packing a = { p, fac_span_packed(from), fac_span_packed(to) };
    (void)d, (void)err;
    if (input == 1) {
        fac_parallel(&p->cpu->pool, (int)(m->b_count * fac_gemm_panels(p->cpu->simd, m->N)),
                     pack_panel, &a);
        return FAC_OK;
    }
    fac_matmul_pack_c(m, p->cpu->simd->lanes, a.from, a.to);
    return FAC_OK;
}

#define SOLVER(of)                                                                                 \
    .name = #of "/gemm", .op = &fac_op_##of, .offer = offer, .make = make,                         \
    .done = fac_solver_done, .pack_key = pack_key, .pack = pack, .run = run
const fac_solver fac_cpu_linear_gemm = { SOLVER(linear), .rank = 330 };
const fac_solver fac_cpu_matmul_gemm = { SOLVER(matmul), .rank = 340 };
const fac_solver fac_cpu_gemm_gemm = { SOLVER(gemm), .rank = 350 };
