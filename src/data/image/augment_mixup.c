/* Mixup (Zhang et al. 2018): share x_i + (1 - share) x_j, and the labels likewise; share from
 * Beta(alpha, alpha). */
#include <math.h>
#include "base/rng.h"
#include "data/image/augment.h"
#include "data/sets/dataset_internal.h"

int64_t fac_mixup_partner(const fac_dataset *d, const fac_drawn *s) {
    return fac_permute(s->seed, fac_stream(s->epoch, FAC_STREAM_PARTNER), d->count, s->sample);
}

/* The logarithm of a number from Gamma(alpha), number `which` of the sample.  Marsaglia & Tsang
 * 2000: d v with v = (1 + c n)^3, n normal, is accepted if log u < n^2 / 2 + d - d v + d log v;
 * below 1, Gamma(alpha) is Gamma(alpha + 1) u^(1 / alpha). */
static double log_gamma(double alpha, const fac_drawn *s, int which) {
    enum { TRIES = 31, EACH = TRIES + 1 }; /* nineteen in twenty are accepted */
    const uint64_t at = ((uint64_t)s->sample * 2 + (uint64_t)which) * EACH;
    const uint64_t even = fac_stream(s->epoch, FAC_STREAM_MIXUP),
                   normal = fac_stream(s->epoch, FAC_STREAM_MIXUP_NORMAL);
    const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * d);
    double v = 1;
    for (uint64_t k = 0; k < TRIES; k++) {
        const double n = fac_random_normal(s->seed, normal, at + k),
                     u = 1 - fac_random_uniform(s->seed, even, at + k);
        v = 1 + c * n;
        v = v > 0 ? v * v * v : 0;
        if (v > 0 && log(u) < n * n / 2 + d - d * v + d * log(v)) break;
        v = 1;
    }
    const double log_u = log(1 - fac_random_uniform(s->seed, even, at + TRIES));
    return log(d * v) + (alpha < 1 ? log_u / alpha : 0);
}

/* X / (X + Y) of two numbers from Gamma(alpha); by logarithms, for a small alpha makes numbers that
 * are 0 otherwise. */
double fac_mixup_share(double alpha, const fac_drawn *s) {
    return 1 / (1 + exp(log_gamma(alpha, s, 1) - log_gamma(alpha, s, 0)));
}
