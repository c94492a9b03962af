/* Tensors of drawn numbers, for the tests of what tensors hold. */
#ifndef TALLY_CHECK_H
#define TALLY_CHECK_H
#include <math.h>
#include "base/rng.h"
#include "program_check.h"

static inline fac_tensor *tensor_of(fac_dims d, const float *x) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, err));
    OK(fac_tensor_write(t, x, (size_t)fac_dims_count(&d) * sizeof *x, err));
    return t;
}

static inline float *drawn(size_t n, uint64_t stream, double lo, double hi) {
    float *x = malloc((n + 1) * sizeof *x);
    fac_random_fill(3, stream, lo, hi, n, x);
    return x;
}

static inline void near(double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
        fail_msg("%.17g, expected %.17g", got, want);
}
#endif
