/* linear/gemm, matmul/gemm, gemm/gemm: matrix products of f32, of any size, transposed or not, in broadcast batches.
 *
 * y[m][n] = clip(alpha sum over k of a[m][k] b[k][n] + beta c + residual, ...).  b is packed into panels: once for weights, as a
 * step of the run for what was computed.  a of few rows is read where it lies, and then time is that of reading b once; of more
 * rows it is packed by the thread that uses it, a slab at a time.  Where all of a's batch meets one b it is one tall matrix. */
#include <limits.h>
#include "backends/cpu/blocked.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/solvers.h"
#include "base/error.h"
#include "base/memory.h"

enum { TILES_OF_BLOCK = 32 };           /* row tiles whose slab of a, 32 x 14 x 512 floats, is kept in the second cache */

/* Everything but c: offsets in elements of matrix i of the batch, by its number in each dim. */
typedef struct product {
    int64_t M, N, K;
    int64_t a_row, a_column, b_row, b_column;
    fac_dims batch;                         /* of y; no dims: one product           */
    int64_t a_step[FAC_DIMS], b_step[FAC_DIMS];     /* 0 where it is broadcast      */
    int64_t b_count;                        /* matrices that b holds, one after the other */
    float   alpha, beta;
} product;

typedef struct plan {
    product        m;
    fac_epilogue   e;
    fac_layout     a, y, r;
    const fac_cpu *cpu;
    bool           c_bias, c_rows, c_whole; /* c is one for each column (or for all), each row, each element of y */
    int64_t        c_count;
    bool           direct;                  /* a is read where it lies                                */
    int64_t        batches, blocks, parts, together;
    size_t         packed, per_thread;      /* floats: of one b; scratch                              */
} plan;

/* ---- what the ops say ------------------------------------------------------------------------------------------------ */

static void linear(const fac_problem *p, product *m) {
    const fac_dims *x = &p->in[0].type.dims, *w = &p->in[1].type.dims;
    m->K = w->d[1], m->N = w->d[0], m->M = fac_dims_count(x) / m->K;
    m->a_row = m->K, m->a_column = 1, m->b_row = 1, m->b_column = m->K;
}

static void gemm(const fac_problem *p, product *m) {
    const fac_gemm_opts *o = p->node->attrs;
    const fac_dims *a = &p->in[0].type.dims, *b = &p->in[1].type.dims;
    m->M = a->d[o->trans_a], m->K = a->d[!o->trans_a], m->N = b->d[!o->trans_b];
    m->a_row = o->trans_a ? 1 : m->K, m->a_column = o->trans_a ? m->M : 1;
    m->b_row = o->trans_b ? 1 : m->N, m->b_column = o->trans_b ? m->K : 1;
    m->alpha = (float)o->alpha, m->beta = (float)o->beta;
}

/* Steps of an operand through the batch: its matrices are contiguous, its dims are right-aligned with those of y. */
static int64_t steps(const fac_dims *d, int64_t matrix, const fac_dims *batch, int64_t *step) {
    int64_t count = 1;
    for (int k = batch->n - 1, o = d->n - 3; k >= 0; k--, o--) {
        int64_t n = o >= 0 ? d->d[o] : 1;
        step[k] = n == 1 ? 0 : count * matrix;
        count *= n;
    }
    return count;
}

/* A single matrix a is taken as it lies: transposed, a view of something larger. */
static bool takes_as_is(const fac_problem *p) {
    const fac_operand *a = &p->in[0];
    return p->node->op == fac_op_find("matmul") && a->type.dims.n == 2 && a->layout.block == 0 && a->layout.stride[0] > 0 &&
           a->layout.stride[1] > 0;
}

static void matmul(const fac_problem *p, product *m) {
    const fac_dims *a = &p->in[0].type.dims, *b = &p->in[1].type.dims;
    m->K = a->d[a->n - 1], m->M = a->n > 1 ? a->d[a->n - 2] : 1, m->N = b->n > 1 ? b->d[b->n - 1] : 1;
    m->a_row = m->K, m->a_column = 1, m->b_row = m->N, m->b_column = 1;
    m->batch = p->out[0].type.dims;
    m->batch.n -= (a->n > 1) + (b->n > 1);
    m->b_count = steps(b, m->K * m->N, &m->batch, m->b_step);
    int64_t rows = steps(a, m->M * m->K, &m->batch, m->a_step) * m->M;
    if (m->b_count == 1 && rows == fac_dims_count(&m->batch) * m->M) m->M = rows, m->batch.n = 0;
    if (takes_as_is(p)) m->a_row = p->in[0].layout.stride[0], m->a_column = p->in[0].layout.stride[1];
}

static bool read_product(const fac_problem *p, product *m) {
    *m = (product){ .b_count = 1, .alpha = 1, .beta = 1 };
    for (int i = 0; i < p->nin; i++) {
        fac_dtype t = p->in[i].type.dtype;
        if (t != FAC_NONE && (t != FAC_F32 || fac_dims_count(&p->in[i].type.dims) <= 0)) return false;
    }
    if (p->nout != 1 || fac_dims_count(&p->out[0].type.dims) <= 0) return false;
    if (p->node->op == fac_op_find("linear")) linear(p, m);
    else if (p->node->op == fac_op_find("gemm")) gemm(p, m);
    else matmul(p, m);
    return true;
}

/* ---- run ------------------------------------------------------------------------------------------------------------- */

typedef struct job { const plan *p; const float *a, *b, *c, *r; float *y, *work; } job;

/* [batch][block of rows][part of the panels] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const product *m = &p->m;
    const fac_simd *s = p->cpu->simd;
    int64_t part = i % p->parts, block = i / p->parts % p->blocks, batch = i / p->parts / p->blocks;
    int64_t tiles = fac_gemm_tiles(s, m->M), t0 = tiles * block / p->blocks, t1 = tiles * (block + 1) / p->blocks;
    int64_t panels = fac_gemm_panels(s, m->N), p0 = part * p->together;
    int64_t p1 = p0 + p->together < panels ? p0 + p->together : panels;
    const float *a = j->a, *b = j->b, *r = j->c && p->c_whole ? j->c : j->r;
    int64_t rest = batch, matrix = m->M * m->N;
    for (int k = m->batch.n - 1; k >= 0; rest /= m->batch.d[k], k--) {
        a += rest % m->batch.d[k] * m->a_step[k];
        b += rest % m->batch.d[k] * m->b_step[k] / (m->K * m->N) * (int64_t)p->packed;
    }
    b += p0 * 2 * s->lanes * m->K;
    fac_gemm_job g = { .simd = s, .M = m->M, .N = m->N, .K = m->K, .y = j->y + batch * matrix, .y_row = m->N,
                       .bias = p->c_bias ? j->c : NULL, .row_bias = p->c_rows ? j->c : NULL,
                       .r = r ? r + batch * matrix : NULL, .r_row = m->N, .e = &p->e };
    float *slab = j->work + (size_t)thread * p->per_thread, *edge = slab + (p->per_thread - fac_gemm_edge(s));
    for (int64_t k = 0, end; k < m->K; k = end) {
        end = k + FAC_GEMM_DEPTH < m->K ? k + FAC_GEMM_DEPTH : m->K;
        fac_gemm_block at = { t0, t1, p0, p1, k, end };
        if (p->direct) {
            fac_gemm_rows(&g, at, a, m->a_row, b, edge);
            continue;
        }
        fac_gemm_pack_a(s, a, m->a_row, m->a_column, m->M, t0, t1, k, end, m->alpha, slab);
        fac_gemm_slab(&g, at, slab, fac_gemm_padded(s, end - k), b, edge);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out, fac_span work, fac_error *err) {
    const plan *p = plan_;
    bool c = p->c_bias || p->c_rows || p->c_whole;
    job j = { p, fac_span_floats(in[0], &p->a), fac_span_packed(in[1]), c ? fac_span_packed(in[2]) : NULL,
              p->e.residual >= 0 ? fac_span_floats(in[p->e.residual], &p->r) : NULL, fac_span_floats(out[0], &p->y),
              fac_span_packed(work) };
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->batches * p->blocks * p->parts), item, &j);
    return FAC_OK;
}

/* ---- offer and make -------------------------------------------------------------------------------------------------- */

static bool settle(plan *p, const fac_problem *problem) {
    const fac_simd *s = p->cpu->simd;
    if (!read_product(problem, &p->m) || !fac_cpu_epilogue(problem, s, &p->e)) return false;
    const product *m = &p->m;
    int64_t threads = p->cpu->pool.threads, tiles = fac_gemm_tiles(s, m->M), panels = fac_gemm_panels(s, m->N), width;
    p->batches = m->batch.n ? fac_dims_count(&m->batch) : 1;
    if (problem->node->nports > 2 && problem->in[2].type.dtype) {
        const fac_dims *c = &problem->in[2].type.dims;
        int64_t n = p->c_count = fac_dims_count(c), last = c->n ? c->d[c->n - 1] : 1;
        p->c_whole = n == m->M * m->N && m->M > 1 && m->N > 1;
        p->c_rows = !p->c_whole && n == m->M && last == 1 && m->M > 1;
        p->c_bias = !p->c_whole && !p->c_rows;
        if (p->c_whole && p->e.residual >= 0) return false;
    }
    p->direct = tiles == 1 && m->a_column == 1 && m->alpha == 1;
    p->blocks = (tiles + TILES_OF_BLOCK - 1) / TILES_OF_BLOCK;
    if (p->batches > INT_MAX / p->blocks) return false;
    /* panels are dealt so that all threads find work, and at least 8 share the packing of a */
    int64_t rows = p->batches * p->blocks, want = rows >= 4 * threads ? 1 : (4 * threads + rows - 1) / rows;
    p->together = (panels + want - 1) / want;
    if (!p->direct && p->together < 8) p->together = panels < 8 ? panels : 8;
    if (!p->direct && (panels + p->together - 1) / p->together * rows < threads)
        p->together = (panels * rows + threads - 1) / threads;
    p->parts = (panels + p->together - 1) / p->together;
    if (p->batches * p->blocks > INT_MAX / p->parts) return false;
    width = m->K < FAC_GEMM_DEPTH ? fac_gemm_padded(s, m->K) : FAC_GEMM_DEPTH;
    int64_t most = (tiles < TILES_OF_BLOCK ? tiles : TILES_OF_BLOCK) * s->rows;
    p->per_thread = (p->direct ? 0 : (size_t)(most * width)) + fac_gemm_edge(s);
    return fac_size_mul((size_t)fac_gemm_padded(s, m->N), (size_t)m->K, &p->packed) && p->packed < SIZE_MAX / sizeof(float);
}

/* Floats that the packed c takes. */
static int64_t packed_c(const plan *p) {
    return p->c_bias ? fac_gemm_padded(p->cpu->simd, p->m.N) : p->c_rows ? p->m.M : p->c_whole ? p->m.M * p->m.N : 0;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    if (!settle(&q, p)) return false;
    const product *m = &q.m;
    if (!fac_size_mul(q.packed * sizeof(float), (size_t)m->b_count, &o->packed[1])) return false;
    if (!fac_size_mul(q.per_thread * sizeof(float), (size_t)q.cpu->pool.threads, &o->work)) return false;
    if (!takes_as_is(p)) fac_want_plain(&p->in[0]);
    fac_want_plain(&p->out[0]);
    if (q.e.residual >= 0) fac_want_plain(&p->in[q.e.residual]);
    o->packed[2] = (size_t)packed_c(&q) * sizeof(float);
    double products = (double)q.batches * (double)m->M * (double)m->N * (double)m->K;
    double bytes = 4.0 * ((double)m->b_count * (double)q.packed + (double)q.batches * (double)m->M * (double)(m->K + m->N));
    if (p->in[1].time == FAC_RUN) bytes *= 2;
    o->seconds = fac_cpu_seconds(q.cpu, 2 * products, 0.7, bytes);
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_alloc(1, sizeof *q);
    if (!q) return fac_raise(err, FAC_E_NOMEM, "%s/gemm: no memory for a plan", p->node->op->name);
    q->cpu = fac_cpu_of(d);
    settle(q, p);
    q->a = p->in[0].layout, q->y = p->out[0].layout;
    if (q->e.residual >= 0) q->r = p->in[q->e.residual].layout;
    *out = q;
    return FAC_OK;
}
static void done(fac_device *d, void *plan_) { (void)d, fac_release(plan_); }

static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    const product *m = &p->m;
    if (input == 2) {                                       /* c: its form, factor and width */
        union { float f; uint32_t u; } beta = { .f = m->beta };
        uint64_t form = p->c_bias ? 1 : p->c_rows ? 2 : 3;
        uint64_t key = 2 | form << 2 | (uint64_t)p->cpu->simd->lanes << 8 | (uint64_t)beta.u << 32;
        return key ^ (uint64_t)m->N * 0x9e3779b97f4a7c15u;
    }
    return 1 | (uint64_t)(m->b_column == 1) << 2 | (uint64_t)p->cpu->simd->lanes << 8;
}

typedef struct packing { const plan *p; const float *from; float *to; } packing;

/* [matrix][panel] */
static void pack_panel(void *arg, int i, int thread) {
    const packing *a = arg;
    const product *m = &a->p->m;
    const fac_simd *s = a->p->cpu->simd;
    int64_t panels = fac_gemm_panels(s, m->N), matrix = i / panels, panel = i % panels;
    (void)thread;
    fac_gemm_pack_b(s, a->from + matrix * m->K * m->N, m->b_row, m->b_column, m->K, m->N, panel,
                    a->to + matrix * (int64_t)a->p->packed + panel * 2 * s->lanes * m->K);
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to, fac_error *err) {
    const plan *p = plan_;
    const product *m = &p->m;
    packing a = { p, fac_span_packed(from), fac_span_packed(to) };
    (void)d, (void)err;
    if (input == 1) {
        fac_parallel(&p->cpu->pool, (int)(m->b_count * fac_gemm_panels(p->cpu->simd, m->N)), pack_panel, &a);
        return FAC_OK;
    }
    for (int64_t k = 0; k < packed_c(p); k++) a.to[k] = p->c_bias && k >= m->N ? 0 : m->beta * a.from[p->c_count == 1 ? 0 : k];
    return FAC_OK;
}

const fac_solver fac_cpu_linear_gemm = { "linear/gemm", "linear", offer, make, done, pack_key, pack, run };
const fac_solver fac_cpu_matmul_gemm = { "matmul/gemm", "matmul", offer, make, done, pack_key, pack, run };
const fac_solver fac_cpu_gemm_gemm = { "gemm/gemm", "gemm", offer, make, done, pack_key, pack, run };
