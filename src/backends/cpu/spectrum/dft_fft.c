/* Solver "dft/fft": Fourier transforms of f32 along any axis, of any length.  Of many signals as
 * many are taken at once as a vector has lanes; a long one alone is split in two (dft_split.c).
 * Real signals of even length are half as many complex numbers, and lengths with prime factors
 * above 13 are convolutions with chirps (src/ops/dft_parts.c).
 *
 * Floor: 5 n log2 n operations of n complex numbers.  Error against f64: some 2^-24 sqrt(log2 n) of
 * the largest number of a spectrum, three times that with chirps. */
#include <math.h>
#include "backends/draft.h"
#include "backends/spectrum.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "backends/cpu/spectrum/dft.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/constant.h"

enum { X, LENGTH, AXIS, LONGEST = 1 << 24, SHARES = 4 };

/* ---- what it takes ---- */

static bool given(const fac_operand *o, int64_t none, int64_t *to) {
    *to = none;
    if (o->type.dtype == FAC_NONE) return true;
    if (!o->known || o->known->n != 1) return false;
    *to = o->known->v[0];
    return true;
}

/* The signals along an axis; of one number after another they are all `before`. */
static bool signals_of(const fac_problem *p, fac_dft_plan *s) {
    const fac_dims *x = &p->in[X].type.dims, *y = &p->out[0].type.dims;
    int64_t length, axis;
    if (!given(&p->in[LENGTH], -1, &length) || !given(&p->in[AXIS], -2, &axis)) return false;
    const int at = fac_axis(axis, x->n);
    if (at < 0 || at >= x->n - 1) return false;
    if (!fac_transform_of(p->node->attrs, x, y, at, length, &s->t)) return false;
    s->before = fac_dims_part(x, 0, at);
    s->between = fac_dims_part(x, at + 1, x->n - 1);
    return s->t.n <= LONGEST;
}

static bool stages_of(fac_dft_plan *s, int64_t n) {
    s->fft.n = n;
    s->fft.stages = fac_fft_radices(n, s->cpu->simd->fft->largest, FAC_FFT_PRIME, s->fft.radix);
    return s->fft.stages >= 0;
}

/* The transforms of n complex numbers, or of the least good size that a convolution fits in. */
static void sizes_of(fac_dft_plan *s) {
    const bool real = s->t.cin == 1 || (s->t.inverse && s->t.onesided);
    s->half = real && s->t.n % 2 == 0;
    s->n = s->half ? s->t.n / 2 : s->t.n;
    s->chirps = !stages_of(s, s->n);
    if (!s->chirps) return;
    int64_t step = 1;
    if (s->n >= 64) step = s->n < 1024 ? 16 : 64;
    int64_t size = (2 * s->n - 2 + step) / step * step;
    while (!stages_of(s, size)) size += step;
}

static int64_t groups_of(const fac_dft_plan *s) {
    const int lanes = s->split ? 1 : s->cpu->simd->lanes;
    const int64_t side = s->between == 1 ? s->before : s->between;
    return (side + lanes - 1) / lanes;
}

/* Splits cost shuffles, and picks of numbers of signals side by side; vectors of signals memory. */
static double seconds_of(fac_dft_plan *s) {
    const fac_cpu *c = s->cpu;
    const int lanes = c->simd->lanes;
    const int64_t n = s->fft.n, times = s->between == 1 ? 1 : s->before;
    const double stage = log2((double)n + 1) * 0.7 + 3, all = (double)(s->before * s->between);
    double split = 0;
    const bool splits = n >= 4 * lanes && fac_dft_split_of(c, n, &s->parts, &split);
    const double bytes = 16. * (double)(s->room * lanes);
    double slower = bytes > (double)c->l1 ? 1.3 : 1;
    if (bytes > (double)c->l2) slower = 2.5;
    double best = (double)(times * groups_of(s)) * (double)n * stage * slower;
    split *= all * (stage + 4) * (s->between == 1 ? 0.6 : 1.5);
    s->split = splits && split < best;
    if (s->split) best = split;
    return fac_cpu_seconds(c, best * (s->chirps ? 2.5 : 1) * lanes * 3, 0.2, 0);
}

static bool build(fac_device *d, const fac_problem *p, fac_dft_plan *s, double *seconds) {
    const fac_cpu *c = fac_cpu_of(d);
    *s = (fac_dft_plan){ .cpu = c, .x = p->in[X].layout, .y = p->out[0].layout };
    if (!signals_of(p, s)) return false;
    sizes_of(s);
    s->room = s->fft.n;
    if (s->room <= s->n) s->room = s->n + 1;
    if (s->room < s->t.out) s->room = s->t.out;
    *seconds = seconds_of(s);
    const int64_t lanes = s->split ? 1 : c->simd->lanes;
    int64_t floats = 4 * lanes * s->room;
    if (s->split) floats += fac_dft_split_room(c, &s->parts);
    s->work = (size_t)floats * sizeof(float);
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    fac_dft_plan s;
    if (p->in[X].type.dtype != FAC_F32 || p->node->body[0]) return false;
    fac_want_plain(&p->in[X]);
    fac_want_plain(&p->out[0]);
    if (!build(d, p, &s, &o->seconds)) return false;
    o->work = s.work * (size_t)s.cpu->pool.threads;
    o->own = s.work <= s.cpu->l2;
    *FAC_DRAFT(o, fac_dft_plan) = s;
    return true;
}

/* ---- tables ---- */

static void done(fac_device *d, void *arg) {
    fac_dft_plan *s = arg;
    (void)d;
    for (int k = 0; k < 6; k++) fac_release(s->tables[k]);
    fac_release(s);
}

static const float *kept(fac_dft_plan *s, int k, void *table) { return s->tables[k] = table; }

static bool chirps(fac_dft_plan *s) {
    const int64_t n = s->n, size = s->fft.n;
    const size_t count = 2 * (size_t)(n + size);
    double *exact = fac_alloc(count, sizeof *exact);
    float *table = exact ? fac_alloc(count, sizeof *table) : NULL;
    s->turn = kept(s, 0, table);
    bool good = table && fac_transform_chirps(exact, exact + 2 * n, n, size, false);
    for (size_t k = 0; good && k < count; k++) table[k] = (float)exact[k];
    if (good) s->filter = table + 2 * n;
    fac_release(exact);
    return good;
}

static bool turns(fac_dft_plan *s, fac_fft *f, int k) {
    size_t bytes;
    f->turns = kept(s, k, fac_fft_table(f->n, f->stages, f->radix, FAC_F32, &bytes));
    return f->turns;
}

static bool tables(fac_dft_plan *s) {
    size_t bytes;
    if (s->chirps && !chirps(s)) return false;
    if (s->half) {
        s->apart = kept(s, 1, fac_fft_table(s->n, 0, NULL, FAC_F32, &bytes));
        if (!s->apart) return false;
    }
    if (!s->split) return turns(s, &s->fft, 2);
    s->parts.twiddles = s->tables[3] = fac_dft_twiddles(s->cpu, &s->parts);
    return s->parts.twiddles && turns(s, &s->parts.a, 4) && turns(s, &s->parts.b, 5);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    fac_dft_plan *s = fac_draft_copy(p, sizeof *s, err);
    if (!s) return FAC_E_NOMEM;
    s->y = p->out[0].layout;
    if (tables(s)) return fac_solver_made(FAC_OK, d, s, done, out);
    done(d, s);
    return fac_raise(err, FAC_E_NOMEM, "dft/fft: no memory for its tables");
}

/* ---- running ---- */

typedef struct job {
    const fac_dft_plan *s;
    const float *x;
    float *y;
    char *work;
} job;

static void run_groups(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const fac_dft_plan *s = j->s;
    float *a = (float *)(void *)(j->work + (size_t)thread * s->work);
    const int lanes = s->split ? 1 : s->cpu->simd->lanes;
    const int64_t groups = groups_of(s), side = s->between == 1 ? s->before : s->between;
    for (int64_t unit = first; unit < last; unit++) {
        const int64_t at = unit % groups * lanes, left = side - at;
        fac_dft_signals(s, j->x, j->y, unit / groups, at, left < lanes ? (int)left : lanes, a);
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const fac_dft_plan *s = arg;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    const int64_t units = groups_of(s) * (s->between == 1 ? 1 : s->before);
    (void)err;
    job j = { s, fac_span_floats(in[X], &s->x), fac_span_floats(out[0], &s->y),
              (char *)work.memory + work.at };
    const int shares = units > 1 ? SHARES * pool->threads : 1;
    if (units) fac_parallel_ranges(pool, units, shares, run_groups, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_dft = { .name = "dft/fft",
                                 .op = &fac_op_dft,
                                 .rank = 800,
                                 .offer = offer,
                                 .make = make,
                                 .done = done,
                                 .run = run };
