/* The vectorisable functions of base/mathf.h against the C library's doubles: over all exponents
 * and both signs, a dense walk and fresh random floats; and the values that must be exact. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "base/mathf.h"
#include "base/rng.h"

typedef struct function {
    const char *name;
    float (*f)(float);
    double (*exact)(double);
    double ulps;
} function;

static float expf_(float x) { return fac_expf(x); }
static float expm1f_(float x) { return fac_expm1f(x); }
static float logf_(float x) { return fac_logf(x); }
static float log1pf_(float x) { return fac_log1pf(x); }
static float tanhf_(float x) { return fac_tanhf(x); }
static float erff_(float x) { return fac_erff(x); }
static float sigmoidf_(float x) { return fac_sigmoidf(x); }
static double sigmoid(double x) { return x < -88 ? 0 : 1 / (1 + exp(-x)); }

/* The bounds that the head of mathf.h promises. */
static const function functions[] = {
    { "exp", expf_, exp, 1 },
    { "log", logf_, log, 1 },
    { "expm1", expm1f_, expm1, 3.5 },
    { "log1p", log1pf_, log1p, 3 },
    { "tanh", tanhf_, tanh, 1.5 },
    { "erf", erff_, erf, 5 },
    { "sigmoid", sigmoidf_, sigmoid, 2.5 },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Distance in units of the last place of the exact result; below the smallest normal number the
 * unit stays the same. */
static double ulps(float got, double want) {
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    if (isnan(got)) return INFINITY;
    if (isinf(got) || isinf((float)want)) return got == (float)want ? 0 : INFINITY;
    int e;
    frexp(want, &e);
    return fabs(got - want) / ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

static void check(const function *f, float x) {
    double e = ulps(f->f(x), f->exact(x));
    if (!(e <= f->ulps))
        fail_msg("%s(%.9g) is %.9g, not %.9g: %.2f ulp", f->name, x, f->f(x), f->exact(x), e);
}

/* One float in 4,099 of all 2^32, denormals, infinities and NaN among them. */
static void all_exponents(void **state) {
    (void)state;
    for (int k = 0; k < FUNCTIONS; k++)
        for (uint64_t i = 0; i < (uint64_t)1 << 32; i += 4099)
            check(&functions[k], fac_float_of_bits((int32_t)(uint32_t)i));
}

static void random_floats(void **state) {
    (void)state;
    uint64_t seed = fresh_seed();
    for (int k = 0; k < FUNCTIONS; k++)
        for (uint64_t i = 0; i < 300000; i++) {
            check(&functions[k],
                  fac_float_of_bits((int32_t)(uint32_t)fac_random_bits(seed, (uint64_t)k, i)));
            check(&functions[k], (float)(fac_random_uniform(seed, 99, i) * 40 - 20));
        }
}

/* Where a function changes from one formula to the next, over- or underflows: every float around.
 */
static void borders(void **state) {
    static const float at[] = {
        3.9192059f,  0.34655f,      0.3465f, 0.625f,     1,           4,    0.70710678f,
        1.41421356f, 88.72284f,     89,      -87.33655f, -103.97208f, -104, 1.17549435e-38f,
        0,           3.4028235e38f, 8388608, 1e-7f
    };
    (void)state;
    for (int k = 0; k < FUNCTIONS; k++)
        for (size_t i = 0; i < sizeof at / sizeof *at; i++)
            for (int32_t d = -2000; d <= 2000; d++) {
                float x = fac_float_of_bits(fac_bits_of_float(at[i]) + d);
                check(&functions[k], x);
                check(&functions[k], -x);
            }
}

/* GELU and its slope where they bend, every millionth, and far away. */
static void gelu(void **state) {
    (void)state;
    double worst = 0, slope = 0;
    for (int i = -8000000; i <= 8000000; i++) {
        const float x = (float)i * 1e-6f;
        const double a = (double)x, below = 0.5 * erfc(-a / sqrt(2)),
                     bell = exp(-a * a / 2) / sqrt(2 * acos(-1));
        worst = fmax(worst, fabs((double)fac_geluf(x) - a * below));
        slope = fmax(slope, fabs((double)fac_gelu_slopef(x) - (below + a * bell)));
    }
    if (worst > 1.3e-6 || slope > 4e-7)
        fail_msg("GELU is wrong by %g, its slope by %g", worst, slope);
    for (float x = 8; x < 1e30f; x *= 1.5f) {
        assert_true(fac_geluf(x) == x && fac_geluf(-x) == 0);
        assert_true(fac_gelu_slopef(x) == 1 && fac_gelu_slopef(-x) == 0);
    }
    assert_true(fac_geluf(0) == 0 && fac_gelu_slopef(0) == 0.5f && isnan(fac_geluf(NAN)) &&
                isnan(fac_gelu_slopef(NAN)));
    assert_true(fac_geluf(INFINITY) == INFINITY && fac_gelu_slopef(INFINITY) == 1 &&
                fac_gelu_slopef(-INFINITY) == 0);
}

static void exact_values(void **state) {
    (void)state;
    assert_true(fac_expf(0) == 1 && fac_expf(-0.0f) == 1 && fac_expf(-INFINITY) == 0 &&
                fac_expf(INFINITY) == INFINITY);
    assert_true(fac_expf(100) == INFINITY && fac_expf(-200) == 0);
    assert_true(fac_logf(1) == 0 && fac_logf(0) == -INFINITY && fac_logf(-0.0f) == -INFINITY &&
                fac_logf(INFINITY) == INFINITY);
    assert_true(isnan(fac_logf(-1)) && isnan(fac_logf(-INFINITY)) && isnan(fac_logf(-1e-45f)));
    assert_true(fac_tanhf(INFINITY) == 1 && fac_tanhf(-INFINITY) == -1 && fac_tanhf(20) == 1);
    assert_true(fac_erff(INFINITY) == 1 && fac_erff(-INFINITY) == -1 && fac_erff(5) == 1);
    assert_true(fac_expm1f(-INFINITY) == -1 && fac_expm1f(INFINITY) == INFINITY);
    assert_true(fac_log1pf(-1) == -INFINITY && fac_log1pf(INFINITY) == INFINITY &&
                isnan(fac_log1pf(-2)));
    for (int k = 0; k < FUNCTIONS; k++) {
        assert_true(isnan(functions[k].f(NAN)));
        if (functions[k].exact(0) == 0 && functions[k].f != logf_)
            assert_true(signbit(functions[k].f(-0.0f)) && !signbit(functions[k].f(0)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_exponents), cmocka_unit_test(random_floats), cmocka_unit_test(borders),
        cmocka_unit_test(exact_values),  cmocka_unit_test(gelu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
