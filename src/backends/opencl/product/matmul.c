/* product/tile, product/vector and product/thin of matmul, linear and gemm: operands of any strides
 * in broadcast batches, where they lie.  product/dot: tiles of bytes, by instructions that multiply
 * four of them and add up.
 *
 * All dims of y but the last are rows; those that every operand steps over evenly are one (so a
 * batch that meets one b is one tall matrix), the last that is left is M, those in front of it are
 * the batch. */
#include <string.h>
#include "backends/draft.h"
#include "backends/opencl/product/gemm.h"
#include "backends/opencl/device/probe.h"
#include "backends/gpu/speed.h"
#include "opencl_solvers.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "op_list.h"
#include "tensor/dtype.h"
#include "tensor/tensor_internal.h"

/* Steps along the dims of y: a, b, y, extras. */
enum { OPERANDS = 3 + FAC_GPU_EXTRAS, FEW = 8 };
typedef struct rows {
    int dims, operands;
    int64_t size[FAC_DIMS], step[OPERANDS][FAC_DIMS];
} rows;

static void merge(rows *w) {
    int at = 0; /* dims that are kept so far, the last first */
    rows m = { .operands = w->operands };
    for (int k = w->dims - 1; k >= 0; k--) {
        bool even = at > 0;
        for (int i = 0; i < w->operands && at; i++)
            even &= w->step[i][k] == m.step[i][at - 1] * m.size[at - 1];
        if (w->size[k] == 1) continue;
        if (even)
            m.size[at - 1] *= w->size[k];
        else {
            m.size[at] = w->size[k];
            for (int i = 0; i < w->operands; i++) m.step[i][at] = w->step[i][k];
            at++;
        }
    }
    m.dims = at;
    *w = m; /* now the last dim is number 0 */
}

/* Rows that share one b; a b for each row makes them a batch. */
static bool has_rows(const rows *w) { return w->dims && !w->step[1][0]; }

static void put(const rows *w, int operand, fac_gpu_matrix *m) {
    const int first = has_rows(w);
    m->row = first ? w->step[operand][0] : 0;
    for (int k = first; k < w->dims; k++)
        m->z[FAC_GPU_BATCH - 1 - (k - first)] = w->step[operand][k];
}

/* a and b of a matmul: steps along y's rows, along the terms, along y's columns. */
static void matmul_steps(const fac_problem *p, rows *w, fac_gpu_product *r) {
    const fac_operand *a = &p->in[0], *b = &p->in[1];
    const int an = a->type.dims.n, bn = b->type.dims.n, batch = w->dims - (an > 1);
    r->s.K = a->type.dims.d[an - 1];
    r->s.a.column = a->layout.stride[an - 1];
    r->s.b.row = b->layout.stride[bn > 1 ? bn - 2 : 0];
    r->s.b.column = bn > 1 ? b->layout.stride[bn - 1] : 0;
    if (an > 1) w->step[0][w->dims - 1] = a->layout.stride[an - 2];
    for (int k = batch - 1, i = an - 3; k >= 0 && i >= 0; k--, i--)
        w->step[0][k] = a->type.dims.d[i] == 1 ? 0 : a->layout.stride[i];
    for (int k = batch - 1, i = bn - 3; k >= 0 && i >= 0; k--, i--)
        w->step[1][k] = b->type.dims.d[i] == 1 ? 0 : b->layout.stride[i];
}

static void linear_steps(const fac_problem *p, rows *w, fac_gpu_product *r) {
    const fac_operand *x = &p->in[0], *f = &p->in[1];
    r->s.K = f->type.dims.d[1];
    for (int k = 0; k < w->dims; k++) w->step[0][k] = x->layout.stride[k];
    r->s.a.column = x->layout.stride[w->dims];
    r->s.b.row = f->layout.stride[1];
    r->s.b.column = f->layout.stride[0];
}

static void gemm_steps(const fac_problem *p, rows *w, fac_gpu_product *r) {
    const fac_gemm_opts *o = p->node->attrs;
    const fac_layout *a = &p->in[0].layout, *b = &p->in[1].layout;
    r->s.K = p->in[0].type.dims.d[!o->trans_a];
    w->step[0][0] = a->stride[o->trans_a];
    r->s.a.column = a->stride[!o->trans_a];
    r->s.b.row = b->stride[o->trans_b];
    r->s.b.column = b->stride[!o->trans_b];
    r->alpha = o->alpha;
    r->beta = o->beta;
}

/* Integers are scaled by whole numbers only: real factors truncate, which is not what a sum modulo
 * 2^32 can do. */
static bool scales(const fac_gpu_product *r) {
    if (r->dtype == FAC_F32 || r->dtype == FAC_F64 || fac_dtype_is_half(r->dtype)) return true;
    return r->alpha == 1 && (r->beta == 1 || (r->beta == (double)(int16_t)r->beta &&
                                              fac_gpu_sum_bytes(r->dtype) == 4));
}

bool fac_cl_product_read(const fac_opencl *o, const fac_problem *p, fac_gpu_product *r) {
    const fac_op *op = p->node->op;
    const bool linear = op == &fac_op_linear, gemm = op == &fac_op_gemm;
    if (!linear && !gemm && op != &fac_op_matmul) return false;
    if (!fac_cl_product_start(o, p, op == &fac_op_matmul ? -1 : 2, r)) return false;
    const fac_dims *d = &p->out[0].type.dims;
    const bool columns =
        op != &fac_op_matmul || p->in[1].type.dims.n > 1; /* the last dim of y is one of columns */
    rows w = { .dims = d->n - columns, .operands = 3 + r->extras };
    int64_t last[OPERANDS] = { 0 }, step[FAC_DIMS];
    for (int k = 0; k < w.dims; k++) w.size[k] = d->d[k];
    for (int i = 2; i < w.operands; i++) {
        if (!fac_gpu_strides(i == 2 ? &p->out[0] : &p->in[r->input[i - 3]], d, step)) return false;
        memcpy(w.step[i], step, (size_t)w.dims * sizeof *step);
        last[i] = columns ? step[d->n - 1] : 0;
    }
    if (linear)
        linear_steps(p, &w, r);
    else if (gemm)
        gemm_steps(p, &w, r);
    else
        matmul_steps(p, &w, r);
    if (!scales(r)) return false;
    merge(&w);
    const int first = has_rows(&w);
    if (w.dims - first > FAC_GPU_BATCH) return false;
    fac_gpu_shape *s = &r->s;
    s->M = first ? w.size[0] : 1;
    s->N = s->inner_n = columns ? d->d[d->n - 1] : 1;
    for (int k = first; k < w.dims; k++) {
        s->z[FAC_GPU_BATCH - 1 - (k - first)] = w.size[k];
        s->batch *= w.size[k];
    }
    const int64_t terms = s->b.row; /* of b a row is a term, and rows of y do not move it */
    put(&w, 0, &s->a), put(&w, 1, &s->b), put(&w, 2, &s->y);
    s->b.row = terms;
    s->a.at = p->in[0].layout.offset;
    s->b.at = p->in[1].layout.offset;
    s->y.at = p->out[0].layout.offset;
    s->y.column = last[2];
    for (int i = 0; i < r->extras; i++) {
        put(&w, 3 + i, &s->e[i]);
        s->e[i].at = p->in[r->input[i]].layout.offset;
        s->e[i].column = last[3 + i];
    }
    return true;
}

/* ---- the solvers ---- */

typedef struct plan {
    fac_gpu_product r;
    fac_cl_gemm g;
} plan;

/* Four terms as one. */
static bool in_quads(fac_opencl *o, fac_gpu_product *r) {
    if ((r->dtype != FAC_I8 && r->dtype != FAC_U8) || !r->s.K || r->s.K % 4) return false;
    if (!fac_cl_has_path(o, FAC_CL_DOT8) && !fac_cl_has_path(o, FAC_CL_DOT8_NVIDIA)) return false;
    r->quads = true;
    r->s.K /= 4;
    r->s.a.column *= 4;
    r->s.b.row *= 4;
    return true;
}

static bool read(fac_opencl *o, const fac_problem *p, bool quads, fac_gpu_product *r) {
    return fac_cl_product_read(o, p, r) && (!quads || in_quads(o, r));
}

/* Which of the four: tiles, and whether four bytes at a time are multiplied. */
typedef struct family {
    fac_gpu_way way;
    bool quads;
} family;

/* What make() goes on with. */
typedef struct draft {
    fac_gpu_product r;
    fac_gpu_tile t;
} draft;

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const family *f = p->solver->how;
    fac_opencl *o = fac_opencl_of(d);
    fac_gpu_product r;
    fac_gpu_tile t;
    for (int i = 0; i < p->nin; i++) /* blocks are not for matrices */
        if (p->in[i].layout.block) p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    if (!read(o, p, f->quads, &r)) return false;
    r.variant = p->variant;
    if (!fac_gpu_tile_choose(&o->limits, &r, f->way, &t)) return false;
    offer->variants = fac_gpu_tile_variants(&o->limits, r.dtype, f->way);
    offer->version = FAC_GPU_TILE_VERSION;
    offer->seconds = t.seconds;
    /* few rows: tiles are mostly empty, and read what the product is bound by at half of the
     * bandwidth at best */
    const double bytes = (double)(r.s.K * r.s.N * r.s.batch) * fac_dtype_get(r.dtype)->block_bytes,
                 least = fac_gpu_costs.product_launch + 2 * bytes / fac_gpu_bandwidth(&o->limits);
    if (r.s.M <= FEW && f->way != FAC_GPU_THIN && offer->seconds < least) offer->seconds = least;
    offer->work = fac_gpu_tile_work(&t, &r);
    *FAC_DRAFT(offer, draft) = (draft){ r, t };
    return true;
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (q) fac_cl_gemm_free(fac_opencl_of(d), &q->g);
    fac_release(q);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    const draft *settled = p->draft;
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    q->r = settled->r;
    const fac_status status = fac_cl_gemm_make(fac_opencl_of(d), &q->r, &settled->t, &q->g, err);
    return fac_solver_made(status, d, q, done, out);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    fac_cl_operands x = { .a = in[0], .b = in[1], .y = out[0], .work = work };
    for (int i = 0; i < q->r.extras; i++) x.e[i] = in[q->r.input[i]];
    return fac_cl_gemm_run(fac_opencl_of(d), &q->g, &q->r.s, &x, err);
}

const fac_solver fac_cl_matmul_tile = { .name = "product/tile",
                                        .rank = 390,
                                        .how = &(const family){ FAC_GPU_TILED, false },
                                        .offer = offer,
                                        .make = make,
                                        .done = done,
                                        .run = run };
const fac_solver fac_cl_matmul_vector = { .name = "product/vector",
                                          .rank = 400,
                                          .how = &(const family){ FAC_GPU_VECTOR, false },
                                          .offer = offer,
                                          .make = make,
                                          .done = done,
                                          .run = run };
const fac_solver fac_cl_matmul_thin = { .name = "product/thin",
                                        .rank = 410,
                                        .how = &(const family){ FAC_GPU_THIN, false },
                                        .offer = offer,
                                        .make = make,
                                        .done = done,
                                        .run = run };
const fac_solver fac_cl_matmul_dot = { .name = "product/dot",
                                       .rank = 380,
                                       .how = &(const family){ FAC_GPU_TILED, true },
                                       .offer = offer,
                                       .make = make,
                                       .done = done,
                                       .run = run };
