/* Solver "typed": linear, gemm and matmul of f64 and of integers, without a body.
 *
 * Integers of up to 32 bits are multiplied modulo 2^32, those of 64 bits modulo 2^64: what wrapping
 * the exact sum gives. b is brought into panels of two vectors of columns; a thread takes a block
 * of rows, brings a slab of it into register tiles, and every tile meets every panel.  Where
 * elements are as wide as their sums, sums are made in y, slab after slab; narrower ones run over
 * all of k and are converted. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/product/matmul.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "tensor/tensor_internal.h"

enum {
    CHUNK = FAC_TYPED_CHUNK,
    SLAB = 384,
    SHARES = 4
}; /* terms of a sum between two visits of y; items for each thread */

typedef struct plan {
    fac_matmul_form m;
    const fac_problem *problem;
    const fac_cpu *cpu;
    fac_typed_kernel *kernel;
    fac_dtype type, as;
    int64_t own, size, wide; /* bytes of an element, of a sum; columns of a panel */
    int64_t panels, tiles;
    int64_t depth;                   /* of a slab                                         */
    int64_t blocks, parts, together; /* of tiles; of panels, `together` each              */
    size_t b_bytes, each;            /* of scratch; each: of one thread                   */
} plan;

static int64_t padded(int64_t n) { return (n + CHUNK - 1) / CHUNK * CHUNK; }
static int64_t row_of(const plan *p, int64_t tile) { return p->m.M * tile / p->tiles; }

/* Blocks of rows, whose slab takes half of the second cache, times parts of panels, for all
 * threads. */
static void cut(plan *p) {
    const int64_t threads = p->cpu->pool.threads,
                  slab = padded(p->depth) * p->cpu->simd->rows * p->size;
    const int64_t room = (int64_t)p->cpu->l2 / 2 / slab < 1 ? 1 : (int64_t)p->cpu->l2 / 2 / slab;
    double least = INFINITY;
    const int64_t fewest = (p->tiles + room - 1) / room;
    for (int64_t blocks = fewest; blocks <= p->tiles && blocks < fewest + SHARES * threads;
         blocks++)
        for (int64_t k = 1; k <= p->panels && k <= SHARES * threads; k++) {
            const int64_t rows = (p->tiles + blocks - 1) / blocks,
                          together = (p->panels + k - 1) / k;
            const int64_t parts = (p->panels + together - 1) / together;
            const double items = (double)p->m.batches * (double)blocks * (double)parts;
            const double length =
                (ceil(items / (double)threads) + 0.1) * (double)rows * ((double)together + 1);
            if (length >= least) continue;
            least = length;
            p->blocks = blocks;
            p->together = together;
            p->parts = parts;
        }
}

static bool settle(plan *p, const fac_problem *problem) {
    fac_matmul_form *m = &p->m;
    const fac_simd *s = p->cpu->simd;
    p->type = problem->in[0].type.dtype;
    const char kind = fac_dtype_get(p->type)->kind;
    p->own = (int64_t)fac_copy_size(p->type);
    if (p->type != FAC_F64 && ((kind != 'i' && kind != 'u') || p->own == 0)) return false;
    if (!fac_matmul_read(problem, p->type, m) || problem->node->body[0]) return false;
    if (p->type != FAC_F64 && (m->alpha != 1 || m->beta != 1)) return false;
    p->size = 8;
    if (p->type == FAC_F64) {
        p->as = FAC_F64;
        p->kernel = s->typed->f64;
    } else if (p->own == 8) {
        p->as = FAC_U64;
        p->kernel = s->typed->u64;
    } else {
        p->as = FAC_U32;
        p->kernel = s->typed->u32;
        p->size = 4;
    }
    p->wide = 2 * s->lanes * 4 / p->size;
    p->panels = (m->N + p->wide - 1) / p->wide;
    p->tiles = (m->M + s->rows - 1) / s->rows;
    const int64_t slabs = (m->K + SLAB - 1) / SLAB;
    p->depth = p->own == p->size ? padded((m->K + slabs - 1) / slabs) : m->K;
    cut(p);
    const size_t rows = (size_t)((p->tiles + p->blocks - 1) / p->blocks * s->rows);
    size_t b;
    if (!fac_size_mul((size_t)m->b_count, (size_t)(p->panels * p->wide * m->K * p->size), &b))
        return false;
    if (!fac_size_mul(rows, (size_t)(padded(p->depth) * p->size), &p->each)) return false;
    p->b_bytes = (b + 63) / 64 * 64;
    p->each = (p->each + (size_t)(s->rows * p->wide * p->size) + 63) / 64 * 64;
    if (m->b_count > INT_MAX / p->panels || p->b_bytes > SIZE_MAX / 2 ||
        p->each > SIZE_MAX / 4 / (size_t)p->cpu->pool.threads)
        return false;
    return m->batches <= INT_MAX / p->blocks && m->batches * p->blocks <= INT_MAX / p->parts;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    const fac_op *op = p->node->op;
    if ((op != &fac_op_linear && op != &fac_op_gemm && op != &fac_op_matmul) || !settle(&q, p))
        return false;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype && (i > 0 || !fac_matmul_takes_a(p))) fac_want_plain(&p->in[i]);
    fac_want_plain(&p->out[0]);
    o->work = q.b_bytes + q.each * (size_t)q.cpu->pool.threads;
    const double products = (double)q.m.batches * (double)q.m.M * (double)q.m.N * (double)q.m.K;
    const double elements = (double)q.m.batches * (double)q.m.M * (double)(q.m.K + q.m.N);
    o->seconds = fac_cpu_seconds(q.cpu, 2 * products, 0.3,
                                 4.0 * (double)q.b_bytes + (double)q.own * elements);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->problem = p;
    *out = q;
    return FAC_OK;
}
/* ---- packing ---- */

typedef struct job {
    const plan *p;
    const char *a, *b, *c;
    char *y, *panels, *work;
} job;

/* The usual numbers of bytes, known when compiled: a call for each piece would take longer than the
 * copy. */
static inline void copy_bytes(char *to, const char *from, size_t n) {
    if (n == 128)
        memcpy(to, from, 128);
    else if (n == 64)
        memcpy(to, from, 64);
    else if (n == 32)
        memcpy(to, from, 32);
    else
        memcpy(to, from, n);
}

/* n elements, `step` apart, as sums are made of. */
static void gather(const plan *p, const char *from, int64_t step, int64_t n, char *to) {
    enum { SOME = 64 };
    char some[SOME * sizeof(uint64_t)];
    if (step == 1) {
        if (p->own == p->size)
            copy_bytes(to, from, (size_t)(n * p->own));
        else
            fac_convert(p->as, to, p->type, from, (size_t)n);
        return;
    }
    for (int64_t k = 0, here; k < n; k += here) {
        here = n - k < SOME ? n - k : SOME;
        for (int64_t i = 0; i < here; i++)
            memcpy(some + (size_t)(i * p->own), from + (k + i) * step * p->own, (size_t)p->own);
        fac_convert(p->as, to + k * p->size, p->type, some, (size_t)here);
    }
}

/* The transpose, from[j step + i] to to[i to_row + j], of elements that are not converted: i <
 * rows, j < columns; in squares, so that lines of both sides stay in the first cache. */
static void transpose(int64_t size, const char *from, int64_t step, int64_t rows, int64_t columns,
                      char *to, int64_t to_row) {
    for (int64_t i0 = 0; i0 < rows; i0 += CHUNK)
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = i0; i < rows && i < i0 + CHUNK; i++) {
                const char *x = from + (j * step + i) * size;
                char *y = to + (i * to_row + j) * size;
                if (size == 8)
                    memcpy(y, x, 8);
                else
                    memcpy(y, x, 4);
            }
}

/* Terms k0..k1-1 of a tile of rows, [k / CHUNK][row][CHUNK]. */
static void pack_tile(const plan *p, const char *a, int64_t first, int64_t rows, int64_t k0,
                      int64_t k1, char *to) {
    const fac_matmul_form *m = &p->m;
    for (int64_t k = k0; k < k1; k += CHUNK, to += rows * CHUNK * p->size) {
        const int64_t here = k1 - k < CHUNK ? k1 - k : CHUNK;
        const char *from = a + (first * m->a_row + k * m->a_column) * p->own;
        if (m->a_row == 1 && m->a_column != 1 && p->own == p->size)
            transpose(p->size, from, m->a_column, rows, here, to, CHUNK);
        else
            for (int64_t r = 0; r < rows; r++)
                gather(p, from + r * m->a_row * p->own, m->a_column, here,
                       to + r * CHUNK * p->size);
    }
}

/* [matrix][panel] */
static void pack_panel(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_matmul_form *m = &p->m;
    const int64_t first = i % p->panels * p->wide,
                  columns = m->N - first < p->wide ? m->N - first : p->wide;
    const char *from = j->b + (i / p->panels * m->K * m->N + first * m->b_column) * p->own;
    char *to = j->panels + (int64_t)i * p->wide * m->K * p->size;
    (void)thread;
    const bool transposed = m->b_row == 1 && m->b_column != 1 && p->own == p->size;
    if (transposed) transpose(p->size, from, m->b_column, m->K, columns, to, p->wide);
    for (int64_t k = 0; k < m->K && !(transposed && columns == p->wide);
         k++, to += p->wide * p->size) {
        if (!transposed) gather(p, from + k * m->b_row * p->own, m->b_column, columns, to);
        if (columns < p->wide)
            memset(to + columns * p->size, 0, (size_t)((p->wide - columns) * p->size));
    }
}

/* ---- products ---- */

/* n numbers of row `row` of y from sums, with c; sums may be y itself where elements are as wide as
 * they. */
static void put(const job *j, int64_t row, int64_t first, int64_t n, const char *sums) {
    const plan *p = j->p;
    const fac_matmul_form *m = &p->m;
    const int64_t in_matrix = row % m->M;
    char *y = j->y + (row * m->N + first) * p->own;
    if (!j->c && m->alpha == 1) {
        if (sums != y) fac_convert(p->type, y, p->as, sums, (size_t)n);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = m->c == FAC_C_ROWS    ? in_matrix
                           : m->c == FAC_C_WHOLE ? in_matrix * m->N + first + k
                           : m->c_count == 1     ? 0
                                                 : first + k;
        if (p->as == FAC_F64) {
            double v;
            memcpy(&v, sums + k * 8, sizeof v);
            ((double *)(void *)y)[k] =
                m->alpha * v + (j->c ? m->beta * ((const double *)(const void *)j->c)[at] : 0);
            continue;
        }
        uint64_t v = 0, c = 0;
        fac_convert(FAC_U64, &v, p->as, sums + k * p->size, 1);
        if (j->c) fac_convert(FAC_U64, &c, p->type, j->c + at * p->own, 1);
        v += c;
        fac_convert(p->type, y + k * p->own, FAC_U64, &v, 1);
    }
}

/* Rows first..first+rows-1 of y in one panel: terms k0..k1-1 of its sums.  Sums are made in y, or
 * in `sums` and copied. */
static void tile(const job *j, int64_t first, int64_t rows, int64_t n0, int64_t k0, int64_t k1,
                 const char *a, const char *b, char *sums) {
    const plan *p = j->p;
    const int64_t columns = p->m.N - n0 < p->wide ? p->m.N - n0 : p->wide;
    const bool direct = p->own == p->size && columns == p->wide, ends = k1 == p->m.K;
    char *y = j->y + (first * p->m.N + n0) * p->own;
    for (int64_t r = 0; r < rows && !direct && k0 > 0; r++)
        memcpy(sums + r * p->wide * p->size, y + r * p->m.N * p->own, (size_t)(columns * p->size));
    const int64_t y_row = direct ? p->m.N : p->wide;
    const fac_typed_tile t = { a, b, direct ? y : sums, y_row, k1 - k0, (int)rows, k0 > 0 };
    p->kernel(&t);
    for (int64_t r = 0; r < rows && (ends || !direct); r++) {
        const char *from = direct ? y + r * p->m.N * p->own : sums + r * p->wide * p->size;
        if (ends)
            put(j, first + r, n0, columns, from);
        else
            memcpy(y + r * p->m.N * p->own, from, (size_t)(columns * p->size));
    }
}

/* [batch][block of tiles][part of the panels] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_matmul_form *m = &p->m;
    const int64_t part = i % p->parts, block = i / p->parts % p->blocks,
                  batch = i / p->parts / p->blocks;
    const int64_t t0 = p->tiles * block / p->blocks, t1 = p->tiles * (block + 1) / p->blocks,
                  first = row_of(p, t0);
    const int64_t p0 = part * p->together,
                  p1 = p0 + p->together < p->panels ? p0 + p->together : p->panels;
    const fac_matmul_place at = fac_matmul_at(m, batch);
    const char *panels = j->panels + at.b / (m->K * m->N) * p->panels * p->wide * m->K * p->size;
    char *sums = j->work + (size_t)thread * p->each,
         *slab = sums + p->cpu->simd->rows * p->wide * p->size;
    for (int64_t k0 = 0, k1; k0 < m->K; k0 = k1) {
        k1 = k0 + p->depth < m->K ? k0 + p->depth : m->K;
        const int64_t row = padded(k1 - k0) * p->size;
        for (int64_t t = t0; t < t1; t++)
            pack_tile(p, j->a + at.a * p->own, row_of(p, t), row_of(p, t + 1) - row_of(p, t), k0,
                      k1, slab + (row_of(p, t) - first) * row);
        for (int64_t n = p0; n < p1; n++)
            for (int64_t t = t0; t < t1; t++)
                tile(j, batch * m->M + row_of(p, t), row_of(p, t + 1) - row_of(p, t), n * p->wide,
                     k0, k1, slab + (row_of(p, t) - first) * row,
                     panels + (n * m->K + k0) * p->wide * p->size, sums);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_matmul_form *m = &p->m;
    const fac_pool *pool = &p->cpu->pool;
    (void)d, (void)err;
    job j = {
        p,    NULL, NULL, NULL, fac_span_bytes(out[0]) + p->problem->out[0].layout.offset * p->own,
        NULL, NULL
    };
    const char **operands[] = { &j.a, &j.b, &j.c };
    for (int i = 0; i < (m->c ? 3 : 2); i++)
        *operands[i] = fac_span_bytes(in[i]) + p->problem->in[i].layout.offset * p->own;
    j.panels = fac_span_bytes(work);
    j.work = j.panels + p->b_bytes;
    fac_parallel(pool, (int)(m->b_count * p->panels), pack_panel, &j);
    fac_parallel(pool, (int)(m->batches * p->blocks * p->parts), item, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_typed = {
    .name = "typed", .rank = 290, .offer = offer, .make = make, .done = fac_solver_done, .run = run
};
