/* Solver "fused_matmul": the gradient of a large matrix, which is the product of two small ones,
 * and the update that reads it, in one pass over the matrix and its moments; f32.
 *
 * A tile of rows of the product is made in scratch, some hundred columns at a time, and the chain
 * of the update runs over it there (elementwise.h): the gradient never reaches memory.  Bytes moved
 * are those that the update reads and writes.  Each element is one sum in the order of k whatever
 * the number of threads. */
#include <limits.h>
#include <math.h>
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/product/gemm.h"
#include "cpu_solvers.h"
#include "backends/problem.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "op_list.h"

enum {
    OPERANDS = FAC_CHAIN_SOURCES / 2,
    WIDTH = 512,
    GAP = 16
}; /* columns at a time, at least; between rows of scratch */

typedef struct plan {
    const fac_cpu *cpu;
    fac_epilogue none;
    fac_layout a;
    int64_t M, N, K;
    int nin, nout;
    size_t step[OPERANDS],
        out_step[FAC_CHAIN_OUTS]; /* bytes from element to element; 0 for a number */
    fac_graph *rest;              /* the body without the product, which its one node reads last */
    int64_t cuts, width,
        row; /* of the columns; all but the last take `width` of them; a row of scratch */
    fac_elementwise part[2];            /* for that width, and for the last */
    size_t packed, product, per_thread; /* floats: b; a tile of the product; scratch of a thread */
} plan;

typedef struct job {
    const plan *p;
    const fac_span *in, *out;
    const float *a;
    float *b, *scratch;
} job;

static void pack_b(void *arg, int panel, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    (void)thread;
    fac_gemm_pack_b(p->cpu->simd, fac_span_packed(j->in[1]), p->N, 1, p->K, p->N, panel,
                    j->b + panel * 2 * p->cpu->simd->lanes * p->K);
}

/* The update of `rows` rows from element `first` on, whose product is in scratch. */
static void update(const job *j, const fac_elementwise *e, size_t first, int64_t rows,
                   float *product, char *scratch) {
    const plan *p = j->p;
    fac_span in[OPERANDS], out[FAC_CHAIN_OUTS];
    for (int i = 0; i < p->nin; i++) {
        in[i] = j->in[i];
        in[i].at += first * p->step[i];
    }
    for (int k = 0; k < p->nout; k++) {
        out[k] = j->out[k];
        out[k].at += first * p->out_step[k];
    }
    in[p->nin] = (fac_span){ product, 0 };
    fac_elementwise_run(e, in, out, NULL, scratch, 0, rows * ((e->span + e->block - 1) / e->block));
}

/* [tile of rows] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_simd *s = p->cpu->simd;
    int64_t tiles = fac_gemm_tiles(s, p->M), m0 = p->M * i / tiles,
            rows = p->M * (i + 1) / tiles - m0;
    float *slab = j->scratch + (size_t)thread * p->per_thread,
          *edge = slab + s->rows * fac_gemm_padded(s, p->K);
    float *product = edge + fac_gemm_edge(s), *chain = product + p->product;
    fac_gemm_pack_a(s, j->a + m0 * p->a.stride[0], p->a.stride[0], p->a.stride[1], rows, 0, 1, 0,
                    p->K, 1, slab);
    for (int64_t c = 0; c < p->cuts; c++) {
        bool last = c == p->cuts - 1;
        int64_t n0 = c * p->width, n = last ? p->N - n0 : p->width;
        const fac_gemm_job g = {
            .simd = s, .M = rows, .N = n, .K = p->K, .y = product, .y_row = p->row, .e = &p->none
        };
        fac_gemm_slab(&g, (fac_gemm_block){ 0, 1, 0, fac_gemm_panels(s, n), 0, p->K }, slab,
                      fac_gemm_padded(s, p->K), j->b + n0 * p->K, edge);
        update(j, &p->part[last], (size_t)(m0 * p->N + n0), rows, product, (char *)chain);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_pool *pool = &p->cpu->pool;
    job j = { p, in, out, fac_span_floats(in[0], &p->a), fac_span_packed(work), NULL };
    j.scratch = j.b + p->packed;
    (void)d, (void)err;
    fac_parallel(pool, (int)fac_gemm_panels(p->cpu->simd, p->N), pack_b, &j);
    fac_parallel(pool, (int)fac_gemm_tiles(p->cpu->simd, p->M), item, &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

/* The chain over a tile of rows that are `width` columns wide. */
static bool build_part(plan *p, const fac_problem *problem, int64_t width, fac_elementwise *e) {
    fac_operand in[OPERANDS], out[FAC_CHAIN_OUTS];
    const fac_dims tile = fac_shape(p->cpu->simd->rows, width);
    fac_layout strided = fac_layout_plain(&tile);
    for (int i = 0; i <= p->nin; i++) {
        strided.stride[0] = i < p->nin ? p->N : p->row;
        in[i] = i < p->nin ? problem->in[i]
                           : (fac_operand){ { FAC_F32, tile }, strided, FAC_RUN, NULL };
        if (i < p->nin && p->step[i]) {
            in[i].type.dims = tile;
            in[i].layout = strided;
        }
    }
    strided.stride[0] = p->N;
    for (int k = 0; k < p->nout; k++) {
        out[k] = problem->out[k];
        out[k].type.dims = tile;
        out[k].layout = strided;
    }
    const fac_problem q = { .node = p->rest->last,
                            .precision = problem->precision,
                            .nin = p->nin + 1,
                            .nout = p->nout,
                            .in = in,
                            .out = out };
    e->copy = NULL;
    e->streams = p->cpu->simd->streams;
    return fac_elementwise_build(&q, (fac_frame){ 0, 0 }, p->cpu->simd, e) && e->outer == 1 &&
           e->span == width && !e->copies;
}

static bool f32_matrix(const fac_operand *o) {
    return o->type.dtype == FAC_F32 && o->type.dims.n == 2;
}

/* All but the layout of a; the other operands lie plain.  The plan owns p->rest, also where this
 * fails. */
static bool settle(plan *p, const fac_problem *problem, size_t *work) {
    const fac_simd *s = p->cpu->simd;
    const fac_dims *y = &problem->out[0].type.dims;
    p->nin = problem->nin;
    p->nout = problem->nout;
    if (p->nin >= OPERANDS || p->nout > FAC_CHAIN_OUTS) return false;
    if (!f32_matrix(&problem->in[0]) || !f32_matrix(&problem->in[1])) return false;
    p->M = problem->in[0].type.dims.d[0];
    p->K = problem->in[0].type.dims.d[1];
    p->N = problem->in[1].type.dims.d[1];
    if (y->n != 2 || y->d[0] != p->M || y->d[1] != p->N || p->M < s->rows || p->N < WIDTH ||
        p->K < 1)
        return false;
    if (p->K > FAC_GEMM_DEPTH || fac_gemm_tiles(s, p->M) > INT_MAX ||
        fac_gemm_panels(s, p->N) > INT_MAX)
        return false;
    for (int i = 2; i < p->nin; i++) {
        const fac_type *t = &problem->in[i].type;
        bool whole = fac_dims_equal(&t->dims, y);
        if (fac_copy_size(t->dtype) == 0 || (!whole && fac_dims_count(&t->dims) != 1)) return false;
        p->step[i] = whole ? (size_t)fac_dtype_get(t->dtype)->block_bytes : 0;
    }
    for (int k = 0; k < p->nout; k++) {
        if (fac_copy_size(problem->out[k].type.dtype) == 0 ||
            !fac_dims_equal(&problem->out[k].type.dims, y))
            return false;
        p->out_step[k] = (size_t)fac_dtype_get(problem->out[k].type.dtype)->block_bytes;
    }
    p->none = (fac_epilogue){ .residual = -1, .lo = -INFINITY, .hi = INFINITY };
    p->cuts = p->N / WIDTH;
    p->width = p->N / p->cuts / (2 * s->lanes) * (2 * s->lanes);
    const int64_t last = p->N - (p->cuts - 1) * p->width;
    p->row = fac_gemm_padded(s, last) + GAP;
    p->rest = fac_after_product(problem->node);
    if (!p->rest || !build_part(p, problem, p->width, &p->part[0]) ||
        !build_part(p, problem, last, &p->part[1]))
        return false;
    size_t share = p->part[0].share > p->part[1].share ? p->part[0].share : p->part[1].share, all;
    p->product = (size_t)(s->rows * p->row);
    p->per_thread = (size_t)(s->rows * fac_gemm_padded(s, p->K)) + fac_gemm_edge(s) + p->product +
                    (share + 63) / 64 * 16;
    return fac_size_mul((size_t)fac_gemm_padded(s, p->N), (size_t)p->K, &p->packed) &&
           fac_size_mul(p->per_thread, (size_t)p->cpu->pool.threads, &all) &&
           fac_size_add(all, p->packed, &all) && fac_size_mul(all, sizeof(float), work);
}

/* What a plan owns besides its memory. */
static void drop(void *plan_) {
    plan *p = plan_;
    fac_graph_free(p->rest);
    p->rest = NULL;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan *q = fac_offer_keep(o, sizeof *q, drop);
    if (!q) return false;
    q->cpu = fac_cpu_of(d);
    const fac_layout *a = &p->in[0].layout;
    if (a->block || a->stride[0] < 1 || a->stride[1] < 1)
        p->in[0].layout = fac_layout_plain(&p->in[0].type.dims);
    for (int i = 1; i < p->nin; i++) p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    for (int k = 0; k < p->nout; k++) p->out[k].layout = fac_layout_plain(&p->out[k].type.dims);
    if (!settle(q, p, &o->work)) return false;
    double bytes = 0;
    for (int i = 0; i < p->nin; i++) bytes += (double)fac_type_bytes(&p->in[i].type);
    for (int k = 0; k < p->nout; k++) bytes += (double)fac_type_bytes(&p->out[k].type);
    q->a = p->in[0].layout;
    o->seconds = fac_cpu_speeds.step + bytes / q->cpu->bandwidth;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d, (void)err;
    *out = fac_draft_take(p);
    return FAC_OK;
}

static void done(fac_device *d, void *plan_) {
    plan *p = plan_;
    (void)d;
    if (p) fac_graph_free(p->rest);
    fac_release(p);
}

const fac_solver fac_cpu_fused_matmul = { .name = "fused_matmul",
                                          .op = &fac_op_fused_matmul,
                                          .rank = 250,
                                          .offer = offer,
                                          .make = make,
                                          .done = done,
                                          .run = run };
