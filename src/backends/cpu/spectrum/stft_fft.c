/* Solver "stft/fft": short-time spectra of real f32 signals by fast transforms, as many frames at
 * once as a vector has lanes, so each frame is computed alone: whatever its neighbours are, it has
 * the same bits.  Frames of even length are taken for half as many complex elements.  Lengths with
 * other prime factors than 2, 3 and 5 are left to the product that the op expands to.
 *
 * Floor: a frame of N samples is 2.5 N log2 N operations; on AVX-512 of 2.5 GHz, 512 samples are
 * 0.15 us.  Error against f64: some 2^-24 sqrt(log2 N) of the largest bin. */
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/spectrum.h"

enum { X, WINDOW, STEP, LENGTH, SHARES = 4, LONGEST = 1 << 24 };

typedef struct plan {
    const fac_cpu *cpu;
    fac_layout x, window, y;
    bool half;                  /* frames of even length */
    int64_t length, wide, step; /* samples of a frame, of its window, between frames */
    int64_t batch, samples, bins, frames, groups; /* groups of frames in a signal */
    size_t work;                                  /* bytes of a thread */
    fac_fft fft;
    float *apart; /* turns that halves are put together with */
} plan;

/* ---- what it takes ---- */

static int64_t known(const fac_operand *o) {
    return o->known && o->known->n == 1 ? o->known->v[0] : -1;
}

/* false: another prime factor. */
static bool factors(int64_t n, int largest, fac_fft *f) {
    const int eights = largest < 8 ? 4 : 8, radix[] = { 5, 3, eights, 4, 2 };
    f->n = n;
    f->stages = 0;
    for (int k = 0; k < 5; k++)
        while (n % radix[k] == 0 && f->stages < FAC_FFT_STAGES) {
            f->radix[f->stages++] = radix[k];
            n /= radix[k];
        }
    return n == 1;
}

static bool build(fac_device *d, const fac_problem *p, plan *s) {
    const fac_dims *x = &p->in[X].type.dims, *y = &p->out[0].type.dims;
    const fac_cpu *c = fac_cpu_of(d);
    const bool windowed = p->in[WINDOW].type.dtype != FAC_NONE;
    if (x->n != 2) return false;
    *s = (plan){ .cpu = c,
                 .x = p->in[X].layout,
                 .window = p->in[WINDOW].layout,
                 .y = p->out[0].layout,
                 .step = known(&p->in[STEP]),
                 .batch = x->d[0],
                 .samples = x->d[1],
                 .bins = y->d[2],
                 .frames = y->d[3] };
    s->wide = windowed ? p->in[WINDOW].type.dims.d[0] : -1;
    s->length = p->in[LENGTH].type.dtype != FAC_NONE ? known(&p->in[LENGTH]) : s->wide;
    if (!windowed) s->wide = s->length;
    if (s->length < 1 || s->length > LONGEST || s->step < 1 || s->wide < 1) return false;
    s->half = s->length % 2 == 0;
    s->groups = (s->frames + c->simd->lanes - 1) / c->simd->lanes;
    const int64_t elements = s->half ? s->length / 2 : s->length;
    s->work = 2 * (size_t)(2 * elements * c->simd->lanes) * sizeof(float);
    return factors(elements, c->simd->fft->largest, &s->fft);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    plan s;
    if (p->in[X].type.dtype != FAC_F32 || p->node->body[0]) return false;
    fac_want_plain(&p->in[X]);
    if (p->in[WINDOW].type.dtype != FAC_NONE) fac_want_plain(&p->in[WINDOW]);
    fac_want_plain(&p->out[0]);
    if (!build(d, p, &s)) return false;
    const double lanes = (double)(s.batch * s.groups * c->simd->lanes), n = (double)s.length;
    const double work = lanes * n * (2.5 * log2(n + 1) + 10);
    o->work = s.work * (size_t)c->pool.threads;
    o->own = s.work <= c->l2;
    o->seconds = fac_cpu_seconds(c, work, 0.2, 4 * lanes * (double)(2 * s.bins + s.step));
    *FAC_DRAFT(o, plan) = s;
    return true;
}

/* ---- tables ---- */

static int64_t turns_of(const fac_fft *f) {
    int64_t n = f->n, all = 0;
    for (int k = 0; k < f->stages; k++) {
        n /= f->radix[k];
        all += 2 * n * (f->radix[k] - 1);
    }
    return all;
}

static float *turn(float *to, int64_t k, int64_t n) {
    *to++ = (float)fac_turn_cos(k % n, n);
    *to++ = (float)-fac_turn_sin(k % n, n);
    return to;
}

static void fill_turns(const fac_fft *f, float *to) {
    int64_t n = f->n;
    for (int k = 0; k < f->stages; k++) {
        const int64_t m = n / f->radix[k];
        for (int64_t p = 0; p < m; p++)
            for (int j = 1; j < f->radix[k]; j++) to = turn(to, p * j, n);
        n = m;
    }
}

static void done(fac_device *d, void *arg) {
    plan *s = arg;
    (void)d;
    fac_release((void *)(uintptr_t)s->fft.turns);
    fac_release(s->apart);
    fac_release(s);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *s = fac_draft_copy(p, sizeof *s, err);
    if (!s) return FAC_E_NOMEM;
    s->y = p->out[0].layout;
    float *turns = fac_alloc((size_t)turns_of(&s->fft) + 1, sizeof *turns);
    s->fft.turns = turns;
    s->apart = fac_alloc((size_t)s->length + 4, sizeof *s->apart);
    if (!turns || !s->apart) {
        done(d, s);
        return fac_raise(err, FAC_E_NOMEM, "stft/fft: no memory for its tables");
    }
    fill_turns(&s->fft, turns);
    float *to = s->apart;
    for (int64_t k = 0; s->half && k <= s->fft.n; k++) to = turn(to, k, s->length);
    *out = s;
    return FAC_OK;
}

/* ---- running ---- */

typedef struct job {
    const plan *s;
    const float *x, *window;
    float *y;
    char *work;
} job;

/* Frames first .. of one signal, as rows of lanes; what the window leaves out is zero. */
static void take(const job *j, const float *signal, int64_t first, int lanes, float *a) {
    const plan *s = j->s;
    const int width = s->cpu->simd->lanes;
    const int64_t from = (s->length - s->wide) / 2, end = from + s->wide;
    float *inner = a + from * width;
    memset(a, 0, (size_t)(from * width) * sizeof *a);
    memset(a + end * width, 0, (size_t)((s->length - end) * width) * sizeof *a);
    s->cpu->simd->turn(signal + first * s->step + from, s->step, inner, width, lanes, s->wide);
    if (j->window) s->cpu->simd->fft->window(inner, j->window, s->wide);
    if (!s->half) s->cpu->simd->fft->widen(a, s->length);
}

static void group(const job *j, int64_t unit, float *a) {
    const plan *s = j->s;
    const fac_fft_kernels *f = s->cpu->simd->fft;
    const int width = s->cpu->simd->lanes;
    const int64_t b = unit / s->groups, first = unit % s->groups * width, left = s->frames - first;
    const int lanes = left < width ? (int)left : width;
    float *y = j->y + b * 2 * s->bins * s->frames + first;
    const fac_fft_out o = { y, y + s->bins * s->frames, s->bins, s->frames, lanes };
    take(j, j->x + b * s->samples, first, lanes, a);
    const float *z = f->transform(&s->fft, a, a + 2 * s->fft.n * width);
    if (s->half)
        f->halves(&o, z, s->fft.n, s->apart);
    else
        f->whole(&o, z);
}

static void run_groups(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    float *a = (float *)(void *)(j->work + (size_t)thread * j->s->work);
    for (int64_t unit = first; unit < last; unit++) group(j, unit, a);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *s = arg;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    const int64_t units = s->batch * s->groups;
    (void)err;
    job j = { s, fac_span_floats(in[X], &s->x), NULL, fac_span_floats(out[0], &s->y),
              (char *)work.memory + work.at };
    if (in[WINDOW].memory) j.window = fac_span_floats(in[WINDOW], &s->window);
    const int shares = units > 1 ? SHARES * pool->threads : 1;
    if (units) fac_parallel_ranges(pool, units, shares, run_groups, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_stft = { .name = "stft/fft",
                                  .op = &fac_op_stft,
                                  .rank = 800,
                                  .offer = offer,
                                  .make = make,
                                  .done = done,
                                  .run = run };
