/* max_pool_codes/bits: the largest level of each window, 32 channels a word.
 *
 * A code becomes a bit for each threshold that its level exceeds; the largest of some levels
 * exceeds what any of them does, so these bits are or-ed and become a code again. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/bits/bits_internal.h"
#include "backends/cpu/device/blocked.h"
#include "cpu_solvers.h"
#include "op_list.h"
#include "ops/max_pool_codes.h"

typedef struct plan {
    const fac_cpu *cpu;
    fac_pool_geom g;
    int planes;
    bool sign;
} plan;

typedef struct job {
    const plan *p;
    const uint32_t *x;
    uint32_t *y;
    fac_basis levels;
} job;

/* The channels of a word whose level is above number k. */
static uint32_t exceeding(const fac_basis *b, const uint32_t *code, int k) {
    uint32_t any = 0;
    for (int i = k + 1; i < b->levels; i++) {
        uint32_t all = ~0u;
        for (int j = 0; j < b->bits; j++) all &= b->code[i] >> j & 1 ? code[j] : ~code[j];
        any |= all;
    }
    return any;
}

/* Bits of thresholds as bits of digits. */
static void put_code(const fac_basis *b, const uint32_t *above, uint32_t *to, int64_t plane) {
    for (int j = 0; j < b->bits; j++) {
        uint32_t word = b->code[0] >> j & 1 ? ~0u : 0;
        for (int k = 0; k + 1 < b->levels; k++)
            if ((b->code[k] ^ b->code[k + 1]) >> j & 1) word ^= above[k];
        to[j * plane] = word;
    }
}

typedef struct window {
    int64_t rows, columns, row, column;
} window; /* taps; the first pixel */

static void pool_word(const job *j, const uint32_t *x, int64_t plane, const window *at,
                      uint32_t *above) {
    const fac_window *h = &j->p->g.window[1], *w = &j->p->g.window[2];
    const int64_t words = j->p->g.C;
    memset(above, 0, (size_t)(j->levels.levels - 1) * sizeof *above);
    for (int64_t r = 0; r < at->rows; r++)
        for (int64_t s = 0; s < at->columns; s++) {
            const int64_t row = at->row + r * h->dilation, column = at->column + s * w->dilation;
            const uint32_t *from = x + (row * w->in + column) * words;
            uint32_t code[FAC_BASIS_BITS];
            for (int i = 0; i < j->p->planes; i++) code[i] = from[i * plane];
            for (int k = 0; k + 1 < j->levels.levels; k++)
                above[k] |= exceeding(&j->levels, code, k);
        }
}

/* A row of an image. */
static void row_of(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_pool_geom *g = &j->p->g;
    const fac_window *h = &g->window[1], *w = &g->window[2];
    const int64_t image = i / h->out, row = i % h->out, words = g->C;
    const int64_t in = g->N * h->in * w->in * words, out = g->N * h->out * w->out * words;
    const uint32_t *x = j->x + image * h->in * w->in * words;
    uint32_t *y = j->y + i * w->out * words, above[FAC_BASIS_LEVELS];
    int64_t r0, r1, s0, s1;
    (void)thread;
    fac_window_taps(h, row, &r0, &r1);
    for (int64_t q = 0; q < w->out; q++) {
        fac_window_taps(w, q, &s0, &s1);
        const window at = { r1 - r0, s1 - s0, row * h->stride + r0 * h->dilation - h->pad,
                            q * w->stride + s0 * w->dilation - w->pad };
        for (int64_t k = 0; k < words; k++) {
            pool_word(j, x + k, in, &at, above);
            put_code(&j->levels, above, y + q * words + k, out);
        }
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    double v[FAC_BASIS_BITS] = { 1 };
    const float *basis = fac_span_packed(in[1]);
    job j = { .p = p,
              .x = (const uint32_t *)(const void *)fac_span_packed(in[0]),
              .y = (uint32_t *)(void *)fac_span_packed(out[0]) };
    (void)d;
    (void)work;
    (void)err;
    for (int k = 0; !p->sign && k < p->planes; k++) v[k] = basis[k];
    fac_basis_of(v, 1, p->planes, !p->sign, true, &j.levels);
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->g.window[1].out), row_of, &j);
    return FAC_OK;
}

static bool settle(fac_device *d, const fac_problem *p, plan *q) {
    q->cpu = fac_cpu_of(d);
    q->planes = (int)p->in[0].type.dims.d[0];
    q->sign = p->in[1].type.dtype == FAC_NONE;
    if (!fac_max_pool_codes_geometry(p->node, &q->g)) return false;
    return q->g.N * q->g.window[1].out < INT_MAX;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { 0 };
    const bool floats = p->in[1].type.dtype == FAC_F32 || p->in[1].type.dtype == FAC_NONE;
    if (p->node->body[0] || !floats || p->in[0].type.dtype != FAC_U32) return false;
    if (!settle(d, p, &q)) return false;
    const double words = (double)fac_dims_count(&p->in[0].type.dims);
    const double taps = (double)(q.g.window[1].kernel * q.g.window[2].kernel);
    if (words <= 0) return false;
    for (int k = 0; k < p->nin; k++)
        if (p->in[k].type.dtype != FAC_NONE) fac_want_plain(&p->in[k]);
    fac_want_plain(&p->out[0]);
    o->seconds = fac_cpu_seconds(q.cpu, words * taps * 4, 0.1, 8 * words);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    return fac_draft_plan(p, sizeof(plan), out, err);
}
const fac_solver fac_cpu_max_pool_codes = { .name = "max_pool_codes/bits",
                                            .op = &fac_op_max_pool_codes,
                                            .rank = 980,
                                            .offer = offer,
                                            .make = make,
                                            .done = fac_solver_done,
                                            .run = run };
