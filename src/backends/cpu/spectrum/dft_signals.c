/* Transforms of the solver "dft/fft": signals come in, as a vector has lanes or one alone as pairs,
 * are made complex ones of n numbers, transformed, and go out. */
#include <string.h>
#include "backends/cpu/spectrum/dft.h"

typedef struct task {
    const fac_dft_plan *s;
    const fac_fft_ends *ends;
    int lanes;      /* of a complex element: 1 where signals are split */
    bool inverse;   /* of the complex transform: spectra of real signals are turned in the end */
    float *a, *b;   /* buffers of s->room complex elements */
    float *spare;   /* of a split */
    int64_t floats; /* of a complex element */
} task;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static void swap(task *k) {
    float *t = k->a;
    k->a = k->b;
    k->b = t;
}

/* ---- the transform itself ---- */

static void once(task *k, bool inverse) {
    const fac_dft_plan *s = k->s;
    if (s->split)
        fac_dft_split_run(s, inverse, k->a, k->a, k->spare);
    else if (s->cpu->simd->fft->transform(&s->fft, inverse, k->a, k->b) != k->a)
        swap(k);
}

/* Of the n elements in a. */
static void transform(task *k) {
    const fac_dft_plan *s = k->s;
    if (!s->chirps) {
        once(k, k->inverse);
        return;
    }
    k->ends->times(k->lanes, k->a, s->n, s->turn, k->inverse);
    memset(k->a + s->n * k->floats, 0, (size_t)((s->fft.n - s->n) * k->floats) * sizeof *k->a);
    once(k, k->inverse);
    k->ends->times(k->lanes, k->a, s->fft.n, s->filter, k->inverse);
    once(k, !k->inverse);
    k->ends->times(k->lanes, k->a, s->n, s->turn, k->inverse);
}

/* ---- in and out ---- */

/* x: number 0 of the first signal.  Numbers up to `wanted` are filled up with zeros. */
static void bring(task *k, const float *x, int signals, int64_t wanted) {
    const fac_dft_plan *s = k->s;
    const int64_t n = least(s->t.in, wanted), parts = s->t.cin, of_number = k->lanes * parts;
    if (s->split && s->between == 1)
        memcpy(k->a, x, (size_t)(n * parts) * sizeof *x);
    else if (s->split)
        for (int64_t i = 0; i < n; i++)
            memcpy(k->a + i * parts, x + i * s->between * parts, (size_t)parts * sizeof *x);
    else if (s->between == 1)
        s->cpu->simd->transpose(x, s->t.in * parts, k->a, k->lanes, signals, n * parts);
    else
        k->ends->bring(x, s->between * parts, (int)parts, k->a, n, signals);
    memset(k->a + n * of_number, 0, (size_t)((wanted - n) * of_number) * sizeof *k->a);
}

static void take(task *k, float *y, int signals) {
    const fac_dft_plan *s = k->s;
    const int64_t n = s->t.out, parts = s->t.cout;
    if (s->split && s->between == 1)
        memcpy(y, k->a, (size_t)(n * parts) * sizeof *y);
    else if (s->split)
        for (int64_t i = 0; i < n; i++)
            memcpy(y + i * s->between * parts, k->a + i * parts, (size_t)parts * sizeof *y);
    else if (s->between == 1)
        s->cpu->simd->transpose(k->a, k->lanes, y, n * parts, n * parts, signals);
    else
        k->ends->take(k->a, n, y, s->between * parts, (int)parts, signals);
}

/* From what came in to n complex numbers. */
static void made_complex(task *k) {
    const fac_dft_plan *s = k->s;
    const bool spectrum = s->t.inverse && s->t.onesided;
    if (spectrum && s->t.cin == 1) k->ends->widen(k->lanes, k->a, s->t.n / 2 + 1);
    if (spectrum && s->half) {
        k->ends->join(k->lanes, k->a, k->b, s->n, s->apart, (float)(1 / (double)s->t.n));
        swap(k);
    } else if (spectrum) {
        k->ends->mirror(k->lanes, k->a, s->n);
    } else if (s->t.cin == 1 && !s->half) {
        k->ends->widen(k->lanes, k->a, s->n);
    }
}

static void made_result(task *k) {
    const fac_dft_plan *s = k->s;
    const bool spectrum = s->t.inverse && s->t.onesided;
    if (s->half && !spectrum) {
        k->ends->apart(k->lanes, k->a, k->b, s->t.out, s->n, s->apart);
        swap(k);
    } else if (spectrum && !s->half) {
        k->ends->narrow(k->lanes, k->a, s->n);
    }
    if (!s->t.inverse || (s->half && spectrum)) return; /* scaled already */
    const float by = (float)(1 / (double)s->t.n), turned = k->inverse ? by : -by;
    const int64_t pairs = s->t.cout == 2 ? s->t.out : (s->t.out + 1) / 2;
    k->ends->scale(k->lanes, k->a, pairs, by, turned);
}

void fac_dft_signals(const fac_dft_plan *s, const float *x, float *y, int64_t before, int64_t first,
                     int signals, float *a) {
    const fac_transform *t = &s->t;
    const bool spectrum = t->inverse && t->onesided;
    const int lanes = s->split ? 1 : s->cpu->simd->lanes;
    const int64_t buffer = 2 * lanes * s->room;
    task k = {
        s,          s->cpu->simd->fft_ends, lanes,    t->inverse && (t->cin == 2 || spectrum), a,
        a + buffer, a + 2 * buffer,         2 * lanes
    };
    const bool alone = s->between == 1; /* each signal is a row */
    const int64_t step_x = alone ? t->in : 1;
    const int64_t step_y = alone ? t->out : 1;
    const int64_t at_x = before * t->in * s->between + first * step_x;
    const int64_t at_y = before * t->out * s->between + first * step_y;
    bring(&k, x + at_x * t->cin, signals, spectrum ? t->n / 2 + 1 : t->n);
    made_complex(&k);
    transform(&k);
    made_result(&k);
    take(&k, y + at_y * t->cout, signals);
}
