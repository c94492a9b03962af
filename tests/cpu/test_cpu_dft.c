/* The solver "dft/fft" against the reference kernels in f64: lengths of every kind of factor,
 * primes, signals one after another and side by side, at all edges of a vector, cut and filled up,
 * from and to halves of spectra. */
#include "problem_check.h"

static uint64_t seed;

/* |error| of a transform in f32: 2^-24 times a few for each doubling, more with chirps, times the
 * length of a signal as a vector, whose numbers are within 1. */
static double bound(int n) { return ldexp(8, -24) * (log2(n) + 3) * sqrt(n); }

static void check(const char *problem, int n) {
    problem_everywhere((problem_check){ .seed = seed, .lo = -1, .hi = 1, .tolerance = bound(n) },
                       "dft/fft", problem);
}

static void edges(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        int n;
    } all[] = {
        { "dft(f32[1,1,1])", 1 },
        { "dft(f32[3,2,1]) onesided", 2 },
        { "dft(f32[3,2,2]) inverse onesided", 2 },
        { "dft(f32[3,1,2], i64{1}, -) inverse onesided", 1 },
        { "dft(f32[3,5,1], i64{8}, -) inverse onesided",
          8 }, /* a spectrum without imaginary parts */
        { "dft(f32[3,5,1], i64{9}, -) inverse onesided", 9 },
        { "dft(f32[2,9,1]) inverse", 9 },
        { "dft(f32[17,12,1]) inverse", 12 },
        { "dft(f32[2,9,2]) onesided", 9 },
        { "dft(f32[9,3,16,2], -, i64{0})", 9 },
        { "dft(f32[2,13,33,1], -, i64{1}) onesided", 13 },
        { "dft(f32[2,7,8,2], i64{12}, i64{1}) inverse onesided", 12 },
        { "dft(f32[3,0,2], i64{6}, -)", 6 },
        { "dft(f32[40,30,2], i64{11}, -)", 11 },
        { "dft(f32[1,1009,2])", 1009 },
        { "dft(f32[1,1009,1]) onesided", 1009 },
        { "dft(f32[1,505,2], i64{1009}, -) inverse onesided", 1009 },
        { "dft(f32[1,507,2], i64{1012}, -) inverse onesided", 1012 },
        { "dft(f32[20,1012,1])", 1012 },
        { "dft(f32[1,1024,2]) inverse", 1024 },
        { "dft(f32[1,1024,1]) onesided", 1024 },
        { "dft(f32[1,1000,1])", 1000 },
        { "dft(f32[1,501,2]) inverse onesided", 1000 },
        { "dft(f32[1001,3,2], -, i64{0})", 1001 },
        { "dft(f32[0,4,1])", 4 },
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) check(all[k].problem, all[k].n);
}

static int drawn(uint64_t *at, int most) {
    return (int)(fac_random_uniform(seed, 5, (*at)++) * most);
}

/* Every radix in any order, and primes, with any number of signals of any form. */
static void any_length(void **state) {
    (void)state;
    static const int factors[] = { 2, 2, 2, 3, 5, 4, 7, 8, 11, 13 };
    uint64_t at = 0;
    for (int k = 0; k < 80; k++) {
        enum { WORK = 1000000 }; /* of the reference */
        char problem[160];
        int n = 1;
        if (k % 4)
            while (n < 4 + drawn(&at, 400)) n *= factors[drawn(&at, 10)];
        else
            n = 1 + drawn(&at, 300);
        const int most = 1 + WORK / (n * n), signals = 1 + drawn(&at, most < 60 ? most : 60);
        const bool inverse = drawn(&at, 2), onesided = drawn(&at, 2), aside = drawn(&at, 2);
        const bool real = !inverse && (onesided || drawn(&at, 2));
        const int all = inverse && onesided ? n / 2 + 1 : n;
        const int in = drawn(&at, 3) ? all : 1 + drawn(&at, 2 * n), before = 1 + drawn(&at, 3);
        static const char *const words[] = { "", "onesided", "inverse", "inverse onesided" };
        const char *how = words[2 * inverse + onesided];
        if (aside)
            snprintf(problem, sizeof problem, "dft(f32[%d,%d,%d,%d], i64{%d}, i64{1}) %s", before,
                     in, signals, real ? 1 : 2, n, how);
        else
            snprintf(problem, sizeof problem, "dft(f32[%d,%d,%d], i64{%d}, i64{-2}) %s", signals,
                     in, real ? 1 : 2, n, how);
        check(problem, n);
    }
}

/* A wave of whole periods is one number of its spectrum; there and back is what it was. */
static void long_ones(void **state) {
    (void)state;
    static const int sizes[] = { 4099, 65536, 30030, 19 * 1024, 100003 };
    fac_error err = { 0 };
    for (const char *const *isa = problem_isas; *isa; isa++) {
        fac_device *d = NULL;
        const fac_device_opts o = { .isa = *isa, .threads = 2 };
        if (fac_device_open("cpu", &o, &d, &err)) continue;
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const int n = sizes[k], wave = n / 3;
            fac_graph *g = fac_graph_new();
            fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1, n, 1));
            fac_value *length = fac_ints(g, fac_shape(n)), *axis = fac_ints(g, fac_shape(1));
            fac_value *y = fac_dft(x, length, axis, false, true);
            fac_output(g, "y", y);
            fac_output(g, "z", fac_dft(y, length, axis, true, true));
            float *from = malloc((size_t)n * sizeof *from);
            for (int i = 0; i < n; i++)
                from[i] = (float)cos(6.28318530717958647692 * fmod((double)wave * i, n) / n);
            fac_program *p = NULL;
            fac_tensor *in = NULL, *out[2] = { NULL, NULL };
            const fac_program_opts only = { .solver = "dft/fft" };
            if (fac_tensor_new(NULL, FAC_F32, fac_shape(1, n, 1), &in, &err) ||
                fac_tensor_write(in, from, (size_t)n * sizeof *from, &err) ||
                fac_program_new(g, d, &only, &p, &err) || fac_program_run(p, &in, out, &err))
                fail_msg("%s", err.text);
            const float *spectrum = fac_tensor_data(out[0]), *back = fac_tensor_data(out[1]);
            for (int i = 0; i <= n / 2; i++) {
                const double want = i == wave ? n / 2. : 0;
                if (hypot(spectrum[2 * i] - want, spectrum[2 * i + 1]) > 1e-6 * n)
                    fail_msg("%d: number %d is %g, %g", n, i, spectrum[2 * i], spectrum[2 * i + 1]);
            }
            for (int i = 0; i < n; i++) assert_true(fabs(back[i] - from[i]) < 2e-6);
            free(from);
            fac_tensor_free(in);
            for (int i = 0; i < 2; i++) fac_tensor_free(out[i]);
            fac_program_free(p);
            fac_graph_free(g);
        }
        fac_device_free(d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(edges), cmocka_unit_test(any_length),
                                        cmocka_unit_test(long_ones) };
    seed = fresh_seed();
    return cmocka_run_group_tests_name("cpu dft", tests, NULL, NULL);
}
