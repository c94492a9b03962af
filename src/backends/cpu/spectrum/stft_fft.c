/* Solver "stft/fft": short-time spectra of real f32 signals by fast transforms, as many frames at
 * once as a vector has lanes, so each frame is computed alone: whatever its neighbours are, it has
 * the same bits.  Frames of even length are taken for half as many complex elements.  Lengths with
 * other prime factors than 2 to 13 are left to the product that the op expands to.
 *
 * Floor: a frame of N samples is 2.5 N log2 N operations; on AVX-512 of 2.5 GHz, 512 samples are
 * 0.15 us.  Error against f64: some 2^-24 sqrt(log2 N) of the largest bin. */
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/spectrum.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { X = FAC_STFT_X, WINDOW = FAC_STFT_WINDOW, SHARES = 4 };

typedef struct plan {
    const fac_cpu *cpu;
    fac_layout x, window, y;
    fac_stft_sizes sizes;
    bool half;      /* frames of even length */
    int64_t groups; /* of frames in a signal */
    size_t work;    /* bytes of a thread */
    fac_fft fft;
    float *table, *apart; /* apart: in the table, turns that halves are put together with */
} plan;

_Static_assert((int)FAC_FFT_RADICES <= (int)FAC_FFT_STAGES, "kernels have room for all radices");

/* ---- what it takes ---- */

static bool build(fac_device *d, const fac_problem *p, plan *s) {
    const fac_cpu *c = fac_cpu_of(d);
    *s = (plan){
        .cpu = c, .x = p->in[X].layout, .window = p->in[WINDOW].layout, .y = p->out[0].layout
    };
    if (!fac_stft_sizes_of(p, &s->sizes) || s->sizes.complex) return false;
    s->half = s->sizes.length % 2 == 0;
    s->groups = (s->sizes.frames + c->simd->lanes - 1) / c->simd->lanes;
    const int64_t elements = s->half ? s->sizes.length / 2 : s->sizes.length;
    s->work = 2 * (size_t)(2 * elements * c->simd->lanes) * sizeof(float);
    s->fft.n = elements;
    s->fft.stages = fac_fft_radices(elements, c->simd->fft->largest, FAC_FFT_PRIME, s->fft.radix);
    return s->fft.stages >= 0;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    plan s;
    if (p->in[X].type.dtype != FAC_F32 || p->node->body[0]) return false;
    fac_want_plain(&p->in[X]);
    if (p->in[WINDOW].type.dtype != FAC_NONE) fac_want_plain(&p->in[WINDOW]);
    fac_want_plain(&p->out[0]);
    if (!build(d, p, &s)) return false;
    const fac_stft_sizes *z = &s.sizes;
    const double lanes = (double)(z->batch * s.groups * c->simd->lanes), n = (double)z->length;
    const double work = lanes * n * (2.5 * log2(n + 1) + 10);
    o->work = s.work * (size_t)c->pool.threads;
    o->own = s.work <= c->l2;
    o->seconds = fac_cpu_seconds(c, work, 0.2, 4 * lanes * (double)(2 * z->bins + z->step));
    *FAC_DRAFT(o, plan) = s;
    return true;
}

/* ---- tables ---- */

static void done(fac_device *d, void *arg) {
    plan *s = arg;
    (void)d;
    fac_release(s->table);
    fac_release(s);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *s = fac_draft_copy(p, sizeof *s, err);
    size_t bytes = 0;
    if (!s) return FAC_E_NOMEM;
    s->y = p->out[0].layout;
    s->table = fac_fft_table(s->fft.n, s->fft.stages, s->fft.radix, FAC_F32, &bytes);
    if (!s->table) {
        done(d, s);
        return fac_raise(err, FAC_E_NOMEM, "stft/fft: no memory for its tables");
    }
    s->fft.turns = s->table;
    s->apart = s->table + fac_fft_turns(s->fft.n, s->fft.stages, s->fft.radix);
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
    const fac_stft_sizes *z = &s->sizes;
    const int width = s->cpu->simd->lanes;
    const int64_t from = (z->length - z->wide) / 2, end = from + z->wide;
    float *inner = a + from * width;
    memset(a, 0, (size_t)(from * width) * sizeof *a);
    memset(a + end * width, 0, (size_t)((z->length - end) * width) * sizeof *a);
    s->cpu->simd->transpose(signal + first * z->step + from, z->step, inner, width, lanes, z->wide);
    if (j->window) s->cpu->simd->fft->window(inner, j->window, z->wide);
    if (!s->half) s->cpu->simd->fft->widen(a, z->length);
}

static void group(const job *j, int64_t unit, float *a) {
    const plan *s = j->s;
    const fac_stft_sizes *z = &s->sizes;
    const fac_fft_kernels *f = s->cpu->simd->fft;
    const int64_t n = s->fft.n;
    const int width = s->cpu->simd->lanes;
    const int64_t b = unit / s->groups, first = unit % s->groups * width, left = z->frames - first;
    const int lanes = left < width ? (int)left : width;
    float *y = j->y + b * 2 * z->bins * z->frames + first;
    const fac_fft_out o = { y, y + z->bins * z->frames, z->bins, z->frames, lanes };
    take(j, j->x + b * z->samples, first, lanes, a);
    const float *v = f->transform(&s->fft, false, a, a + 2 * n * width);
    if (s->half)
        f->halves(&o, v, n, s->apart);
    else
        f->whole(&o, v);
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
    const int64_t units = s->sizes.batch * s->groups;
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
