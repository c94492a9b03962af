/* One long transform by vectors: its n = a b numbers are a matrix whose columns are transformed, as
 * many at once as a vector has lanes, then turned by twiddles and transposed, then the rows
 * (Cooley and Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965).
 * Both halves stay in the first caches. */
#include "backends/cpu/spectrum/dft.h"
#include "backends/spectrum.h"
#include "base/memory.h"
#include "ops/spectrum.h"

static int64_t vectors(const fac_cpu *c, int64_t n) {
    return (n + c->simd->lanes - 1) / c->simd->lanes;
}

static bool fft_of(const fac_cpu *c, int64_t n, fac_fft *f) {
    f->n = n;
    f->stages = fac_fft_radices(n, c->simd->fft->largest, FAC_FFT_PRIME, f->radix);
    return f->stages >= 0;
}

/* Elements of vectors that transforms of a and of n / a numbers take. */
static double elements(const fac_cpu *c, int64_t n, int64_t a) {
    return (double)(vectors(c, n / a) * a + vectors(c, a) * (n / a));
}

bool fac_dft_split_of(const fac_cpu *c, int64_t n, fac_dft_split *to, double *cost) {
    int64_t best = 1;
    for (int64_t k = 2; k * k <= n; k++) {
        if (n % k) continue;
        if (best == 1 || elements(c, n, k) < elements(c, n, best)) best = k;
        if (elements(c, n, n / k) < elements(c, n, best)) best = n / k;
    }
    *cost = elements(c, n, best);
    return best > 1 && fft_of(c, best, &to->a) && fft_of(c, n / best, &to->b);
}

static int64_t longest(const fac_dft_split *p) { return p->a.n > p->b.n ? p->a.n : p->b.n; }

int64_t fac_dft_split_room(const fac_cpu *c, const fac_dft_split *p) {
    return 2 * p->a.n * p->b.n + 4 * longest(p) * c->simd->lanes;
}

float *fac_dft_twiddles(const fac_cpu *c, const fac_dft_split *p) {
    const int64_t a = p->a.n, b = p->b.n, lanes = c->simd->lanes, groups = vectors(c, b);
    float *to = fac_alloc((size_t)(2 * groups * a * lanes), sizeof *to);
    for (int64_t g = 0; to && g < groups; g++)
        for (int64_t k = 0; k < a; k++)
            for (int64_t l = 0; l < lanes; l++) {
                const int64_t turn = (g * lanes + l) * k % (a * b);
                float *pair = to + (g * a + k) * 2 * lanes + l;
                pair[0] = (float)fac_turn_cos(turn, a * b);
                pair[lanes] = (float)-fac_turn_sin(turn, a * b);
            }
    return to;
}

static int some(int64_t left, int lanes) { return left < lanes ? (int)left : lanes; }

void fac_dft_split_run(const fac_dft_plan *s, bool inverse, const float *from, float *to,
                       float *room) {
    const fac_simd *simd = s->cpu->simd;
    const fac_dft_split *p = &s->parts;
    const int64_t a = p->a.n, b = p->b.n;
    const int lanes = simd->lanes;
    float *rows = room + 2 * a * b, *other = rows + 2 * longest(p) * lanes;
    for (int64_t j = 0; j < b; j += lanes) {
        const int columns = some(b - j, lanes);
        simd->fft_ends->bring(from + 2 * j, 2 * b, 2, rows, a, columns);
        float *v = simd->fft->transform(&p->a, inverse, rows, other);
        simd->fft_ends->twiddle(v, a, p->twiddles + 2 * j * a, inverse);
        simd->transpose(v, lanes, room + 2 * j * a, 2 * a, 2 * a, columns);
    }
    for (int64_t k = 0; k < a; k += lanes) {
        const int columns = some(a - k, lanes);
        simd->fft_ends->bring(room + 2 * k, 2 * a, 2, rows, b, columns);
        const float *v = simd->fft->transform(&p->b, inverse, rows, other);
        simd->fft_ends->take(v, b, to + 2 * k, 2 * a, 2, columns);
    }
}
