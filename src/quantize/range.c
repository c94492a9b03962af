/* From what an activation was to the range of its bytes. */
#include <float.h>
#include <math.h>
#include "base/memory.h"
#include "quantize/quantize.h"

/* ---- entropy ---- */

enum { BINS = 2048, FEWEST = 256, LEVELS = 128, ENOUGH = 64 };

/* Bins of few numbers would differ by chance, as if they had to be told apart. */
static int bins_for(double numbers) {
    int n = BINS;
    while (n > FEWEST && numbers < (double)n * ENOUGH) n /= 2;
    return n;
}

/* The divergence of the first n bins, what lies beyond added to the last one, from the same numbers
 * in LEVELS levels, each spread evenly over its bins that are not empty. */
static double divergence(const double *bins, int n, double beyond, double all) {
    double sum = 0;
    for (int level = 0; level < LEVELS; level++) {
        const int from = level * n / LEVELS, to = (level + 1) * n / LEVELS;
        double count = 0;
        int filled = 0;
        for (int i = from; i < to; i++) {
            count += bins[i];
            filled += bins[i] > 0 || (i == n - 1 && beyond > 0);
        }
        for (int i = from; i < to; i++) {
            const double p = (bins[i] + (i == n - 1 ? beyond : 0)) / all;
            const double q = filled ? fmax(count / filled, 1e-9) / (all - beyond) : 0;
            if (p > 0) sum += p * log(p / q);
        }
    }
    return sum;
}

/* Numbers of |x| in bins of equal width up to `most`. */
static void magnitudes(const fac_tally *t, double most, int n, double *bins, double *half) {
    fac_tally_histogram(t, 0, most, n, bins);
    fac_tally_histogram(t, -most, 0, n, half);
    for (int i = 0; i < n; i++) bins[i] += half[n - 1 - i];
}

double fac_entropy_limit(const fac_tally *t) {
    const double most = fac_tally_magnitude(t, 1);
    double *bins = fac_alloc(2 * BINS, sizeof *bins);
    if (!bins || most <= 0) {
        fac_release(bins);
        return most;
    }
    const fac_stats s = fac_tally_stats(t);
    const int count = bins_for((double)(s.count - s.zeros));
    magnitudes(t, most, count, bins, bins + BINS);
    bins[0] = fmax(bins[0] - 2 * (double)s.zeros, 0); /* exact, and counted on either side */
    double all = 0, inside = 0, least = INFINITY;
    int best = count;
    for (int i = 0; i < count; i++) all += bins[i];
    for (int n = 1; n <= count && all > 0; n++) {
        inside += bins[n - 1];
        if (n < LEVELS || inside <= 0) continue;
        const double d = divergence(bins, n, fmax(all - inside, 0), all);
        if (d >= least) continue;
        least = d;
        best = n;
    }
    fac_release(bins);
    return most * best / count;
}

/* ---- steps ---- */

fac_step fac_step_between(double lo, double hi, bool is_signed) {
    lo = fmin(lo, 0);
    hi = fmax(hi, 0);
    const float scale = (float)((hi - lo) / 255);
    const int first = is_signed ? -128 : 0;
    if (!(scale >= FLT_MIN)) return (fac_step){ 1, is_signed ? 0 : first };
    const double zero = nearbyint(first - lo / (double)scale);
    return (fac_step){ (double)scale, (int)fmin(fmax(zero, first), first + 255) };
}

fac_step fac_step_of(const fac_calibrator *c, const fac_value *v) {
    while (fac_slot_of(c, v)->like) v = fac_slot_of(c, v)->like;
    const fac_tally *t = fac_slot_of(c, v)->tally;
    const double most = c->how.percentile > 0 ? c->how.percentile / 100 : 0.99999;
    double lo = fac_tally_quantile(t, 0), hi = fac_tally_quantile(t, 1);
    if (c->how.calibration == FAC_CALIBRATE_PERCENTILE) {
        lo = fac_tally_quantile(t, (1 - most) / 2);
        hi = fac_tally_quantile(t, (1 + most) / 2);
    } else if (c->how.calibration == FAC_CALIBRATE_ENTROPY) {
        const double limit = fac_entropy_limit(t);
        lo = fmax(lo, -limit);
        hi = fmin(hi, limit);
    }
    return fac_step_between(lo, hi, c->how.is_signed);
}
