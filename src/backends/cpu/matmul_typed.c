/* Solver "typed": linear, gemm and matmul of f64 and of integers, without a body.
 *
 * Integers of up to 32 bits are multiplied modulo 2^32, those of 64 bits modulo 2^64: what wrapping the exact sum gives.
 * b is brought into panels of two vectors of columns and a into rows, both in the type of the sums; then every tile of rows meets
 * every panel.  Sums run in order over all of k. */
#include <limits.h>
#include <string.h>
#include "backends/cpu/blocked.h"
#include "backends/cpu/copy.h"
#include "backends/cpu/matmul.h"
#include "backends/cpu/solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor_internal.h"

typedef struct plan {
    fac_matmul_form   m;
    const fac_problem *problem;
    const fac_cpu     *cpu;
    fac_typed_kernel  *kernel;
    fac_dtype          type, as;
    int64_t            size, wide, panels, tiles;   /* bytes of a sum; columns of a panel */
    int64_t            a_count;                     /* matrices that a holds              */
    size_t             a_bytes, b_bytes, each;      /* of scratch; each: of one thread    */
} plan;

static bool settle(plan *p, const fac_problem *problem) {
    fac_matmul_form *m = &p->m;
    const fac_simd *s = p->cpu->simd;
    p->problem = problem;
    p->type = problem->in[0].type.dtype;
    const char kind = fac_dtype_get(p->type)->kind;
    const size_t own = fac_copy_size(p->type);
    if (p->type != FAC_F64 && ((kind != 'i' && kind != 'u') || own == 0)) return false;
    if (!fac_matmul_read(problem, p->type, m) || problem->node->body[0]) return false;
    if (p->type != FAC_F64 && (m->alpha != 1 || m->beta != 1)) return false;
    p->as = p->type == FAC_F64 ? FAC_F64 : own == 8 ? FAC_U64 : FAC_U32;
    p->kernel = p->as == FAC_F64 ? s->typed->f64 : p->as == FAC_U64 ? s->typed->u64 : s->typed->u32;
    p->size = p->as == FAC_U32 ? 4 : 8;
    p->wide = 2 * s->lanes * 4 / p->size;
    p->panels = (m->N + p->wide - 1) / p->wide, p->tiles = (m->M + s->typed->rows - 1) / s->typed->rows;
    p->a_count = fac_dims_count(&problem->in[0].type.dims) / (m->M * m->K);
    size_t a, b;
    if (!fac_size_mul((size_t)p->a_count, (size_t)(m->M * m->K * p->size), &a)) return false;
    if (!fac_size_mul((size_t)m->b_count, (size_t)(p->panels * p->wide * m->K * p->size), &b)) return false;
    p->a_bytes = (a + 63) / 64 * 64, p->b_bytes = (b + 63) / 64 * 64;
    p->each = (size_t)(s->typed->rows * p->wide * p->size + 63) / 64 * 64;
    if (p->a_count > INT_MAX / m->M || m->b_count > INT_MAX / p->panels) return false;
    return m->batches < INT_MAX / p->tiles && p->b_bytes < SIZE_MAX / 2 && p->a_bytes < SIZE_MAX / 4;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    const fac_op *op = p->node->op;
    if ((op != fac_op_find("linear") && op != fac_op_find("gemm") && op != fac_op_find("matmul")) || !settle(&q, p)) return false;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype && (i > 0 || !fac_matmul_takes_a(p))) fac_want_plain(&p->in[i]);
    fac_want_plain(&p->out[0]);
    o->work = q.a_bytes + q.b_bytes + q.each * (size_t)q.cpu->pool.threads;
    const double products = (double)q.m.batches * (double)q.m.M * (double)q.m.N * (double)q.m.K;
    o->seconds = fac_cpu_seconds(q.cpu, 2 * products, 0.3, 4.0 * (double)(q.a_bytes + q.b_bytes));
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_alloc(1, sizeof *q);
    if (!q) return fac_raise(err, FAC_E_NOMEM, "typed: no memory for a plan");
    q->cpu = fac_cpu_of(d);
    settle(q, p);
    *out = q;
    return FAC_OK;
}
static void done(fac_device *d, void *plan_) { (void)d, fac_release(plan_); }

/* ---- run ---- */

typedef struct job { const plan *p; const char *a, *b, *c; char *y, *rows, *panels, *work; } job;

/* n elements, `step` apart, as sums are made of. */
static void gather(const plan *p, const char *from, int64_t step, int64_t n, char *to) {
    enum { SOME = 64 };
    const size_t own = fac_copy_size(p->type);
    char some[SOME * sizeof(uint64_t)];
    if (step == 1) {
        fac_convert(p->as, to, p->type, from, (size_t)n);
        return;
    }
    for (int64_t k = 0, here; k < n; k += here) {
        here = n - k < SOME ? n - k : SOME;
        for (int64_t i = 0; i < here; i++) memcpy(some + (size_t)i * own, from + (k + i) * step * (int64_t)own, own);
        fac_convert(p->as, to + k * p->size, p->type, some, (size_t)here);
    }
}

static void pack_row(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_matmul_form *m = &p->m;
    const int64_t own = (int64_t)fac_copy_size(p->type), at = i / m->M * m->M * m->K + i % m->M * m->a_row;
    (void)thread;
    gather(p, j->a + at * own, m->a_column, m->K, j->rows + i * m->K * p->size);
}

static void pack_panel(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_matmul_form *m = &p->m;
    const int64_t own = (int64_t)fac_copy_size(p->type), first = i % p->panels * p->wide;
    const int64_t columns = m->N - first < p->wide ? m->N - first : p->wide;
    const char *from = j->b + (i / p->panels * m->K * m->N + first * m->b_column) * own;
    char *to = j->panels + (int64_t)i * p->wide * m->K * p->size;
    (void)thread;
    for (int64_t k = 0; k < m->K; k++, to += p->wide * p->size) {
        gather(p, from + k * m->b_row * own, m->b_column, columns, to);
        memset(to + columns * p->size, 0, (size_t)((p->wide - columns) * p->size));
    }
}

/* Row `row` of y from n sums, with c. */
static void put(const job *j, int64_t row, int64_t first, int64_t n, const char *sums) {
    const plan *p = j->p;
    const fac_matmul_form *m = &p->m;
    const int64_t own = (int64_t)fac_copy_size(p->type), in_matrix = row % m->M;
    char *y = j->y + (row * m->N + first) * own;
    if (!j->c && m->alpha == 1) {
        fac_convert(p->type, y, p->as, sums, (size_t)n);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = m->c == FAC_C_ROWS ? in_matrix
                         : m->c == FAC_C_WHOLE ? in_matrix * m->N + first + k : m->c_count == 1 ? 0 : first + k;
        if (p->as == FAC_F64) {
            double v;
            memcpy(&v, sums + k * 8, sizeof v);
            ((double *)(void *)y)[k] = m->alpha * v + (j->c ? m->beta * ((const double *)(const void *)j->c)[at] : 0);
            continue;
        }
        uint64_t v = 0, c = 0;
        fac_convert(FAC_U64, &v, p->as, sums + k * p->size, 1);
        if (j->c) fac_convert(FAC_U64, &c, p->type, j->c + at * own, 1);
        v += c;
        fac_convert(p->type, y + k * own, FAC_U64, &v, 1);
    }
}

/* [batch][tile of rows] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_matmul_form *m = &p->m;
    const int64_t batch = i / p->tiles, tile = i % p->tiles;
    const int64_t first = m->M * tile / p->tiles, rows = m->M * (tile + 1) / p->tiles - first;
    const fac_matmul_place at = fac_matmul_at(m, batch);
    char *sums = j->work + (size_t)thread * p->each;
    const char *panel = j->panels + at.b / (m->K * m->N) * p->panels * p->wide * m->K * p->size;
    for (int64_t n = 0; n < m->N; n += p->wide, panel += p->wide * m->K * p->size) {
        const fac_typed_tile t = { j->rows + (at.a + first * m->K) * p->size, panel, sums, m->K, m->K, (int)rows };
        p->kernel(&t);
        for (int64_t r = 0; r < rows; r++)
            put(j, batch * m->M + first + r, n, m->N - n < p->wide ? m->N - n : p->wide, sums + r * p->wide * p->size);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out, fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_matmul_form *m = &p->m;
    const int64_t own = (int64_t)fac_copy_size(p->type);
    const fac_pool *pool = &p->cpu->pool;
    (void)d, (void)err;
    job j = { p, NULL, NULL, NULL, fac_span_bytes(out[0]) + p->problem->out[0].layout.offset * own, NULL, NULL, NULL };
    const char **operands[] = { &j.a, &j.b, &j.c };
    for (int i = 0; i < (m->c ? 3 : 2); i++) *operands[i] = fac_span_bytes(in[i]) + p->problem->in[i].layout.offset * own;
    j.rows = fac_span_bytes(work), j.panels = j.rows + p->a_bytes, j.work = j.panels + p->b_bytes;
    fac_parallel(pool, (int)(p->a_count * m->M), pack_row, &j);
    fac_parallel(pool, (int)(m->b_count * p->panels), pack_panel, &j);
    fac_parallel(pool, (int)(m->batches * p->tiles), item, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_typed = { .name = "typed", .offer = offer, .make = make, .done = done, .run = run };
