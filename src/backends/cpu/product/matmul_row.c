/* linear/row, matmul/row, gemm/row: one row times a matrix, as the fully connected layers of one
 * image have it, f32.
 *
 * y = clip(sum over k of alpha x[k] b[k][:] + beta c + residual, ...).  Time is that of reading b.
 * After a relu many x[k] are zero, and rows of b that meet a zero are not read at all: that
 * changes no result as long as these rows are finite, 0 x = 0. So packing looks at every number of
 * b, and a panel of columns in which one is infinite or NaN is summed in full.  (The idea is that
 * of EIE: Han et al., ISCA 2016.)  Sums run over slabs of FAC_GEMM_DEPTH rows, whatever is left out
 * of them.
 *
 * A parameter b is packed into panels of some vectors of columns, [panel][K][columns], a word of
 * each panel says whether it is finite.  A b that was computed is read where it lies, if its
 * columns lie next to each other, and in full. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/product/gemm.h"
#include "backends/cpu/product/matmul.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

typedef struct plan {
    fac_matmul_form m;
    fac_epilogue e;
    fac_layout a, b, y, r;
    const fac_cpu *cpu;
    bool packs;
    int64_t width, panels, padded, slabs; /* columns of a panel; N in whole vectors */
    size_t each;                          /* floats of scratch of one thread        */
} plan;

/* ---- run ---- */

typedef struct job {
    const plan *p;
    const float *b, *c, *r;
    float *y, *work;
    const uint32_t *finite; /* one for each panel; NULL: not known         */
    float *x;               /* [slab]: the factors that are not zero ...   */
    int32_t *k, *count;     /* ... their rows within the slab, how many    */
    const float *all;       /* all factors                                 */
} job;

static void panel(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_matmul_form *m = &p->m;
    const int64_t first = i * p->width,
                  room = p->padded - first < p->width ? p->padded - first : p->width;
    const int64_t columns = m->N - first < room ? m->N - first : room;
    const bool finite = j->finite && j->finite[i];
    float *sum = j->work + (size_t)thread * p->each, *slab = sum + p->width, *y = j->y + first;
    for (int64_t n = 0; n < columns; n++) sum[n] = j->c ? j->c[first + n] : 0;
    for (int64_t s = 0; s < p->slabs; s++) {
        const int64_t k = s * FAC_GEMM_DEPTH,
                      depth = m->K - k < FAC_GEMM_DEPTH ? m->K - k : FAC_GEMM_DEPTH;
        const bool fewer = finite && j->count[s] < depth;
        fac_row_panel t = { .x = fewer ? j->x + k : j->all + k,
                            .k = fewer ? j->k + k : NULL,
                            .n = fewer ? j->count[s] : depth,
                            .y = slab };
        if (p->packs) {
            t.w = j->b + first * m->K + k * room;
            t.row = room;
            t.width = room;
        } else {
            t.w = j->b + first + k * m->b_row;
            t.row = m->b_row;
            t.width = columns / p->cpu->simd->lanes * p->cpu->simd->lanes;
        }
        memset(slab, 0, (size_t)room * sizeof *slab);
        p->cpu->simd->row_sum->run(&t);
        for (int64_t n = t.width; n < columns; n++) /* b ends here */
            for (int64_t q = 0; q < depth; q++) slab[n] += t.x[q] * t.w[q * t.row + n];
        for (int64_t n = 0; n < columns; n++) sum[n] += slab[n];
    }
    for (int64_t n = 0; n < columns; n++) {
        float v = sum[n] + (j->r ? j->r[first + n] : 0);
        v = v < p->e.lo ? p->e.lo : v;
        y[n] = v > p->e.hi ? p->e.hi : v;
    }
    fac_epilogue_run(&p->e, y, (size_t)columns);
}

/* alpha x, and what of it is not zero. */
static void list(const plan *p, const float *x, job *j, float *all) {
    const fac_matmul_form *m = &p->m;
    const float alpha = (float)m->alpha;
    for (int64_t s = 0; s < p->slabs; s++) {
        const int64_t first = s * FAC_GEMM_DEPTH,
                      end = first + FAC_GEMM_DEPTH < m->K ? first + FAC_GEMM_DEPTH : m->K;
        int32_t n = 0;
        for (int64_t k = first; k < end; k++) {
            const float v = alpha * x[k * m->a_column];
            all[k] = v;
            j->x[first + n] = v;
            j->k[first + n] = (int32_t)(k - first);
            n += v != 0;
        }
        j->count[s] = n;
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const int64_t K = p->slabs * FAC_GEMM_DEPTH, threads = p->cpu->pool.threads;
    (void)d, (void)err;
    float *scratch = fac_span_packed(work), *all = scratch + (size_t)threads * p->each;
    job j = { .p = p,
              .b = p->packs ? fac_span_packed(in[1]) : fac_span_floats(in[1], &p->b),
              .c = p->m.c ? fac_span_packed(in[2]) : NULL,
              .r = p->e.residual >= 0 ? fac_span_floats(in[p->e.residual], &p->r) : NULL,
              .y = fac_span_floats(out[0], &p->y),
              .work = scratch,
              .x = all + K,
              .k = (int32_t *)(all + 2 * K),
              .count = (int32_t *)(all + 3 * K),
              .all = all };
    if (p->packs) j.finite = (const uint32_t *)(j.b + p->padded * p->m.K);
    list(p, fac_span_floats(in[0], &p->a), &j, all);
    fac_parallel(&p->cpu->pool, (int)p->panels, panel, &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

/* The kernel's own width unless narrower panels share out better, by a twentieth at least: 768
 * columns are three panels of 256, of which one of two threads has two. */
static int64_t wide_enough(const plan *p) {
    const int64_t threads = p->cpu->pool.threads;
    int64_t best = 0, least = INT64_MAX / 32;
    for (int64_t width = p->cpu->simd->row_sum->width; width >= 4 * p->cpu->simd->lanes;
         width /= 2) {
        const int64_t panels = (p->padded + width - 1) / width,
                      longest = (panels + threads - 1) / threads * width;
        if (20 * longest < 19 * least) {
            best = width;
            least = longest;
        }
    }
    return best;
}

static bool settle(plan *p, const fac_problem *problem) {
    const fac_simd *s = p->cpu->simd;
    fac_matmul_form *m = &p->m;
    if (!fac_matmul_read(problem, FAC_F32, m) || !fac_cpu_epilogue(problem, s, &p->e)) return false;
    p->packs = problem->in[1].time != FAC_RUN;
    if (m->M != 1 || m->batches != 1 || m->b_count != 1 || (!p->packs && m->b_column != 1))
        return false;
    p->padded = (m->N + s->lanes - 1) / s->lanes * s->lanes;
    p->width = wide_enough(p);
    p->panels = (p->padded + p->width - 1) / p->width;
    p->slabs = (m->K + FAC_GEMM_DEPTH - 1) / FAC_GEMM_DEPTH;
    p->each = 2 * (size_t)p->width;
    return p->panels < INT_MAX && m->K < INT_MAX / 8;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    size_t floats;
    if (!settle(&q, p) || !fac_size_mul((size_t)q.padded, (size_t)q.m.K, &floats) ||
        floats > SIZE_MAX / 8)
        return false;
    if (q.packs)
        o->packed[1] = (floats + (size_t)q.panels) * sizeof(float);
    else
        fac_want_plain(&p->in[1]);
    if (!fac_matmul_takes_a(p)) fac_want_plain(&p->in[0]);
    fac_want_plain(&p->out[0]);
    if (q.e.residual >= 0) fac_want_plain(&p->in[q.e.residual]);
    o->packed[2] = (size_t)fac_matmul_packed_c(&q.m, q.cpu->simd->lanes) * sizeof(float);
    o->work = ((size_t)q.cpu->pool.threads * q.each + (3 * FAC_GEMM_DEPTH + 1) * (size_t)q.slabs) *
              sizeof(float);
    o->seconds = fac_cpu_speeds.row_step + 4 * (double)floats / (2 * q.cpu->bandwidth);
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
/* ---- packing ---- */

static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    if (input == 2) return fac_matmul_key_c(&p->m, p->cpu->simd->lanes);
    return 3 | (uint64_t)(p->m.b_column == 1) << 2 | (uint64_t)p->cpu->simd->lanes << 8 |
           (uint64_t)p->width << 16;
}

typedef struct packing {
    const plan *p;
    const float *from;
    float *to;
    uint32_t *finite;
} packing;

/* All bits of the exponent are set in infinities and NaN only. */
static bool is_finite(const float *x, int64_t n) {
    const uint32_t exponent = 0x7F800000;
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bad |= (bits & exponent) == exponent;
    }
    return !bad;
}

static void pack_panel(void *arg, int i, int thread) {
    const packing *a = arg;
    const plan *p = a->p;
    const fac_matmul_form *m = &p->m;
    const int64_t first = i * p->width,
                  room = p->padded - first < p->width ? p->padded - first : p->width;
    const int64_t columns = m->N - first < room ? m->N - first : room;
    const float *from = a->from + first * m->b_column;
    float *to = a->to + first * m->K;
    (void)thread;
    if (m->b_column == 1)
        for (int64_t k = 0; k < m->K; k++)
            memcpy(to + k * room, from + k * m->b_row, (size_t)columns * sizeof *to);
    else
        p->cpu->simd->transpose(from, m->b_column, to, room, columns, m->K);
    for (int64_t k = 0; k < m->K && columns < room; k++)
        memset(to + k * room + columns, 0, (size_t)(room - columns) * sizeof *to);
    a->finite[i] = is_finite(to, m->K * room);
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    packing a = { p, fac_span_packed(from), fac_span_packed(to), NULL };
    (void)d, (void)err;
    if (input == 2) {
        fac_matmul_pack_c(&p->m, p->cpu->simd->lanes, a.from, a.to);
        return FAC_OK;
    }
    a.finite = (uint32_t *)(a.to + p->padded * p->m.K);
    fac_parallel(&p->cpu->pool, (int)p->panels, pack_panel, &a);
    return FAC_OK;
}

#define SOLVER(of)                                                                                 \
    .name = #of "/row", .op = &fac_op_##of, .offer = offer, .make = make, .done = fac_solver_done, \
    .pack_key = pack_key, .pack = pack, .run = run
const fac_solver fac_cpu_linear_row = { SOLVER(linear), .rank = 260 };
const fac_solver fac_cpu_matmul_row = { SOLVER(matmul), .rank = 270 };
const fac_solver fac_cpu_gemm_row = { SOLVER(gemm), .rank = 280 };
