/* Tallies against plain recomputation in long double, against sorted numbers, and without memory.
 */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "allocations.h"
#include "facula/op.h"
#include "tally_check.h"

/* ---- moments and counts ---- */

typedef struct plain {
    long double sum, squares, magnitude;
    double lo, hi;
    int64_t n, zeros, negative, nan, infinite, denormals;
} plain;

static void recompute(plain *p, const double *x, int64_t n, double normal) {
    for (int64_t i = 0; i < n; i++) {
        p->nan += isnan(x[i]) != 0;
        p->infinite += isinf(x[i]) != 0;
        if (!isfinite(x[i])) continue;
        p->lo = p->n ? fmin(p->lo, x[i]) : x[i];
        p->hi = p->n ? fmax(p->hi, x[i]) : x[i];
        p->sum += x[i];
        p->magnitude += fabs(x[i]);
        p->zeros += x[i] == 0;
        p->negative += x[i] < 0;
        p->denormals += x[i] != 0 && fabs(x[i]) < normal;
        p->n++;
    }
}

static void expect_stats(const fac_tally *t, const plain *p, int64_t count) {
    const fac_stats s = fac_tally_stats(t);
    assert_int_equal(s.count, count);
    assert_int_equal(s.zeros, p->zeros);
    assert_int_equal(s.negative, p->negative);
    assert_int_equal(s.nan, p->nan);
    assert_int_equal(s.infinite, p->infinite);
    assert_int_equal(s.denormals, p->denormals);
    assert_true(s.min == p->lo && s.max == p->hi);
    near(s.mean, p->n ? (double)(p->sum / p->n) : 0, 1e-12);
    near(s.abs_mean, p->n ? (double)(p->magnitude / p->n) : 0, 1e-12);
    near(s.std, p->n ? (double)sqrtl(p->squares / p->n) : 0, 1e-9);
}

/* Two tensors of each type and size into one tally: of odd sizes around the blocks, far from zero,
 * with everything that floats can be. */
static void moments_are_those_of_the_numbers(void **state) {
    static const struct {
        fac_dtype dtype;
        double normal;
    } types[] = { { FAC_F32, 0x1p-126 },  { FAC_F64, 0x1p-1022 }, { FAC_F16, 0x1p-14 },
                  { FAC_BF16, 0x1p-126 }, { FAC_I8, 0 },          { FAC_I64, 0 },
                  { FAC_U16, 0 },         { FAC_BOOL, 0 } };
    static const int64_t sizes[] = { 0, 1, 2, 511, 512, 513, 3001 };
    static const double shifts[] = { 0, 1000 };
    (void)state;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            for (int shift = 0; shift < 2; shift++) {
                fac_tally *t = NULL;
                plain p = { 0 };
                double *all[2];
                const int64_t n = sizes[j];
                OK(fac_tally_new(&t, err));
                for (int turn = 0; turn < 2; turn++) {
                    float *x = drawn((size_t)n, 10 * k + (uint64_t)turn, -3 + shifts[shift],
                                     100 + shifts[shift]);
                    if (n > 500 && types[k].normal > 0 && !shift) {
                        const float odd[] = { NAN,       INFINITY,  -INFINITY, 0, -0.0f,
                                              0x1p-130f, -0x1p-20f, 5,         -5 };
                        memcpy(x + 7 * turn, odd, sizeof odd);
                    }
                    fac_tensor *f = tensor_of(fac_shape(n), x), *as = NULL, *wide = NULL;
                    OK(fac_tensor_convert(f, types[k].dtype, &as, err));
                    OK(fac_tensor_convert(as, FAC_F64, &wide, err));
                    OK(fac_tally_add(t, as, -1, err));
                    all[turn] = malloc((size_t)(n + 1) * sizeof(double));
                    OK(fac_tensor_read(wide, all[turn], (size_t)n * sizeof(double), err));
                    recompute(&p, all[turn], n, types[k].normal);
                    fac_tensor_free(f), fac_tensor_free(as), fac_tensor_free(wide);
                    free(x);
                }
                for (int turn = 0; turn < 2; turn++) {
                    for (int64_t i = 0; i < n; i++)
                        if (isfinite(all[turn][i]))
                            p.squares +=
                                (all[turn][i] - p.sum / p.n) * (all[turn][i] - p.sum / p.n);
                    free(all[turn]);
                }
                expect_stats(t, &p, 2 * n);
                fac_tally_free(t);
            }
}

/* A window with strides counts what it shows. */
static void windows_are_looked_through(void **state) {
    (void)state;
    const float x[] = { 1, 100, 2, 100, 3, 100 };
    fac_tensor *t = tensor_of(fac_shape(6), x), *view = NULL;
    fac_tally *s = NULL;
    OK(fac_tensor_view(t, fac_shape(3), (int64_t[]){ 2 }, 0, &view, err));
    OK(fac_tally_new(&s, err));
    OK(fac_tally_add(s, view, -1, err));
    assert_true(fac_tally_stats(s).max == 3 && fac_tally_stats(s).count == 3);
    near(fac_tally_stats(s).mean, 2, 0);
    fac_tally_free(s);
    fac_tensor_free(view);
    fac_tensor_free(t);
}

/* ---- how they are spread ---- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void quantiles_are_near(void **state) {
    enum { N = 4001 };
    static const double at[] = { 0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999, 1 };
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        float *x = drawn(N, (uint64_t)kind + 40, -1, 1);
        double *sorted = malloc(N * sizeof *sorted), *sizes = malloc(N * sizeof *sizes);
        for (int i = 0; i < N; i++) {
            if (kind == 1)
                x[i] = (float)(x[i] *
                               pow(10, 60 * fabs((double)x[i]) - 30)); /* 60 orders of magnitude */
            if (kind == 2) x[i] = fmaxf(x[i], 0);                      /* as after a ReLU */
            if (kind == 3) x[i] = -fabsf(x[i]) - 1;
            sorted[i] = x[i];
            sizes[i] = fabs((double)x[i]);
        }
        qsort(sorted, N, sizeof *sorted, ascending);
        qsort(sizes, N, sizeof *sizes, ascending);
        fac_tensor *t = tensor_of(fac_shape(N), x);
        fac_tally *s = NULL;
        OK(fac_tally_new(&s, err));
        OK(fac_tally_add(s, t, -1, err));
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            const int rank = (int)lround(at[k] * (N - 1));
            const double q = fac_tally_quantile(s, at[k]), m = fac_tally_magnitude(s, at[k]);
            const int low = rank ? rank - 1 : 0,
                      high = rank < N - 1 ? rank + 1 : N - 1; /* ranks are rounded */
            assert_true(q >= sorted[low] - fabs(sorted[low]) / 64 &&
                        q <= sorted[high] + fabs(sorted[high]) / 64);
            assert_true(m >= sizes[low] * (1 - 1.0 / 64) && m <= sizes[high] * (1 + 1.0 / 64));
        }
        assert_true(fac_tally_quantile(s, 0) == sorted[0] &&
                    fac_tally_quantile(s, 1) == sorted[N - 1]);
        assert_true(fac_tally_magnitude(s, 1) == sizes[N - 1]);
        double counts[10], all = 0, exact[10] = { 0 };
        const double lo = sorted[0], hi = sorted[N - 1];
        fac_tally_histogram(s, lo, hi, 10, counts);
        for (int i = 0; i < N; i++) exact[(int)fmin(9, (sorted[i] - lo) / (hi - lo) * 10)]++;
        for (int k = 0; k < 10; k++) {
            all += counts[k];
            assert_true(fabs(counts[k] - exact[k]) <= 0.03 * N);
        }
        near(all, N, 1e-9);
        fac_tally_free(s);
        fac_tensor_free(t);
        free(x), free(sorted), free(sizes);
    }
}

/* Against numbers that are quantized one by one. */
static void quantization_is_predicted(void **state) {
    enum { N = 20000 };
    (void)state;
    for (int positive = 0; positive < 2; positive++) {
        float *x = drawn(N, 60, -1, 1);
        for (int i = 0; i < N; i++)
            x[i] = positive ? x[i] * x[i] * x[i] * x[i] : x[i] * x[i] * x[i];
        fac_tensor *t = tensor_of(fac_shape(N), x);
        fac_tally *s = NULL;
        OK(fac_tally_new(&s, err));
        OK(fac_tally_add(s, t, -1, err));
        for (int bits = 2; bits <= 8; bits += 2) {
            const fac_quantization best = fac_tally_quantize(s, bits, 0),
                                   whole = fac_tally_quantize(s, bits, 1);
            const double levels = positive ? (1 << bits) - 1 : (1 << (bits - 1)) - 1;
            assert_true(best.is_signed == !positive && best.sqnr >= whole.sqnr - 0.05 &&
                        best.clip <= 1);
            near(best.scale * levels, best.clip, 1e-12);
            double signal = 0, error = 0;
            for (int i = 0; i < N; i++) {
                const double q =
                    fmin(levels, fmax(positive ? 0 : -levels, nearbyint(x[i] / best.scale))) *
                    best.scale;
                signal += (double)x[i] * x[i];
                error += (x[i] - q) * (x[i] - q);
            }
            assert_true(fabs(10 * log10(signal / error) - best.sqnr) < 0.3);
        }
        assert_true(fac_tally_quantize(s, 2, 0).clip <
                    0.9); /* few levels are better spent on the many small numbers */
        fac_tally_free(s);
        fac_tensor_free(t);
        free(x);
    }
}

/* ---- channels ---- */

static void dead_channels_are_counted(void **state) {
    (void)state;
    float x[2][3][4] = { { { 0 }, { 1, 0, 0, -7 }, { 0 } }, { { 0 }, { 0 }, { 0, 0, 5, 0 } } };
    fac_tensor *t = tensor_of(fac_shape(2, 3, 4), &x[0][0][0]);
    fac_tally *s = NULL;
    fac_channel c;
    OK(fac_tally_new(&s, err));
    OK(fac_tally_add(s, t, 1, err));
    assert_true(fac_tally_stats(s).channels == 3 && fac_tally_stats(s).dead == 1);
    assert_true(fac_tally_channel(s, 1, &c) && c.min == -7 && c.max == 1 && c.zeros == 6);
    near(c.mean, -0.75, 0);
    assert_false(fac_tally_channel(s, 3, &c));
    x[1][0][2] = NAN; /* alive, if not well */
    OK(fac_tensor_write(t, x, sizeof x, err));
    OK(fac_tally_add(s, t, 1, err));
    assert_int_equal(fac_tally_stats(s).dead, 0);
    OK(fac_tally_add(s, t, 2, err)); /* four of them now: no longer told apart */
    assert_true(fac_tally_stats(s).channels == 0 && !fac_tally_channel(s, 0, &c));
    fac_tally_free(s);
    OK(fac_tally_new(&s, err));
    OK(fac_tally_add(s, t, 2, err)); /* the last axis */
    assert_true(fac_tally_stats(s).channels == 4 && fac_tally_stats(s).dead == 1);
    fac_tally_free(s);
    fac_tensor_free(t);
}
/* ---- without memory ---- */

static void memory_runs_out(void **state) {
    (void)state;
    float *x = drawn(3 * 64, 9, -1, 1);
    fac_tensor *in = tensor_of(fac_shape(1, 3, 8, 8), x);
    fac_status status = FAC_E_NOMEM;
    for (long n = 0; status; n++) {
        fac_tally *t = NULL;
        fac_error e = { 0 };
        allocations_left = n;
        status = fac_tally_new(&t, &e);
        if (!status) status = fac_tally_add(t, in, 1, &e);
        allocations_left = -1;
        assert_true(!status || (status == FAC_E_NOMEM && *e.text));
        fac_tally_free(t);
    }
    fac_tensor_free(in);
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_those_of_the_numbers),
        cmocka_unit_test(windows_are_looked_through),
        cmocka_unit_test(quantiles_are_near),
        cmocka_unit_test(quantization_is_predicted),
        cmocka_unit_test(dead_channels_are_counted),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}
