/* What a tally's cells tell: quantiles, histograms, what integers of few bits would do to the
 * numbers. */
#include <math.h>
#include "report/tensors/stats.h"

static double within(double x, double lo, double hi) {
    if (x < lo) return lo;
    return x > hi ? hi : x;
}

/* The number at place q (n - 1) of all in order; those of a cell lie evenly in it. */
static double quantile(const fac_tally *t, fac_sketch_walk *next, double q, double min,
                       double max) {
    const double rank = q * (double)(t->finite - 1);
    double before = 0;
    fac_cell c;
    if (q >= 1 || !t->finite) return max;
    for (int at = 0; next(&t->sketch, &at, &c); before += (double)c.n)
        if (rank < before + (double)c.n)
            return within(c.lo + (c.hi - c.lo) * (rank - before + 0.5) / (double)c.n, min, max);
    return max;
}

double fac_tally_quantile(const fac_tally *t, double q) {
    return q <= 0 ? t->s.min : quantile(t, fac_sketch_next, q, t->s.min, t->s.max);
}

static double largest(const fac_tally *t) { return fmax(fabs(t->s.min), fabs(t->s.max)); }
static double smallest(const fac_tally *t) {
    if (t->s.min > 0) return t->s.min;
    return t->s.max < 0 ? -t->s.max : 0;
}

double fac_tally_magnitude(const fac_tally *t, double q) {
    return quantile(t, fac_sketch_next_size, q, smallest(t), largest(t));
}

/* ---- histogram ---- */

void fac_tally_histogram(const fac_tally *t, double lo, double hi, int n, double *counts) {
    const double width = (hi - lo) / n;
    fac_cell c;
    for (int k = 0; k < n; k++) counts[k] = 0;
    for (int at = 0; width > 0 && fac_sketch_next(&t->sketch, &at, &c);) {
        c.lo = within(c.lo, t->s.min, t->s.max);
        c.hi = within(c.hi, t->s.min, t->s.max);
        if (c.hi < lo || c.lo > hi) continue;
        const int first = (int)within((c.lo - lo) / width, 0, n - 1),
                  last = (int)within((c.hi - lo) / width, 0, n - 1);
        for (int k = first; k <= last; k++) {
            const double from = fmax(c.lo, lo + k * width), to = fmin(c.hi, lo + (k + 1) * width);
            counts[k] +=
                first == last ? (double)c.n : (double)c.n * fmax(0, to - from) / (c.hi - c.lo);
        }
    }
}

/* ---- integers ---- */

/* The integral of (u - round(u))^2 from 0 to u. */
static double sawtooth(double u) {
    const double whole = round(u), rest = u - whole;
    return whole / 12 + rest * rest * rest / 3;
}

/* Mean of the squared error over a cell whose numbers lie evenly in it. */
static double error_of(const fac_cell *c, double clip, double step) {
    const double width = c->hi - c->lo, lo = c->lo - clip, hi = c->hi - clip;
    if (width <= 0) return 0;
    if (lo + hi > 0) return (hi * hi + hi * lo + lo * lo) / 3; /* of (x - clip)^2 */
    return step * step * step * (sawtooth(c->hi / step) - sawtooth(c->lo / step)) / width;
}

static fac_quantization at_clip(const fac_tally *t, int bits, double clip) {
    const bool is_signed = t->s.min < 0;
    const double levels = is_signed ? ldexp(1, bits - 1) - 1 : ldexp(1, bits) - 1,
                 step = clip / levels;
    double signal = 0, error = 0;
    fac_cell c;
    for (int at = 0; fac_sketch_next_size(&t->sketch, &at, &c);) {
        const double x = (c.lo + c.hi) / 2;
        signal += (double)c.n * x * x;
        error += (double)c.n * error_of(&c, clip, step);
    }
    return (fac_quantization){ is_signed, clip, step,
                               error > 0 ? 10 * log10(signal / error) : INFINITY };
}

fac_quantization fac_tally_quantize(const fac_tally *t, int bits, double clip) {
    enum { TRIES = 64 };
    const double most = largest(t);
    if (!(most > 0) || bits < 2 || bits > 16)
        return (fac_quantization){ .is_signed = t->s.min < 0, .sqnr = INFINITY };
    if (clip > 0) return at_clip(t, bits, clip);
    fac_quantization best = at_clip(t, bits, most);
    for (int k = 1; k < TRIES * 2;
         k++) { /* down to an eighth in equal ratios: the error has one wide valley */
        const fac_quantization q = at_clip(t, bits, most * exp2(-3.0 * k / (2 * TRIES)));
        if (q.sqnr > best.sqnr) best = q;
    }
    return best;
}
