/* The solver "stft/fft" against the reference kernels in f64: lengths of any small prime factors,
 * odd ones, windows, hops and numbers of frames at all edges of a vector; other lengths are left to
 * the product; and a frame has the same bits whatever its neighbours are. */
#include "problem_check.h"

static uint64_t seed;

/* |error| of a transform in f32: 2^-24 times a few for each doubling, times the length of the frame
 * as a vector, whose samples are within 1. */
static double bound(int n) { return ldexp(4, -24) * (log2(n) + 2) * sqrt(n); }

static void check(const char *problem, int n) {
    problem_everywhere((problem_check){ .seed = seed, .lo = -1, .hi = 1, .tolerance = bound(n) },
                       "stft/fft", problem);
}

static void edges(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        int n;
    } all[] = {
        { "stft(f32[1,1], -, i64{1}, i64{1}) onesided", 1 },
        { "stft(f32[2,5], -, i64{3}, i64{2})", 2 },
        { "stft(f32[1,3], f32[3], i64{9}, -) onesided", 3 },
        { "stft(f32[3,40], f32[4], i64{1}, -)", 4 },
        { "stft(f32[1,70], f32[5], i64{2}, i64{5})", 5 },
        { "stft(f32[1,30], f32[5], i64{4}, i64{9}) onesided", 9 },
        { "stft(f32[1,66], f32[1], i64{7}, i64{10}) onesided", 10 },
        { "stft(f32[2,1800], f32[400], i64{90}, -) onesided", 400 },
        { "stft(f32[1,5000], f32[320], i64{101}, i64{512}) onesided", 512 },
        { "stft(f32[1,3000], f32[375], i64{55}, -)", 375 },
        { "stft(f32[1,2600], f32[2048], i64{512}, -) onesided", 2048 },
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) check(all[k].problem, all[k].n);
}

static int drawn(uint64_t *at, int most) {
    return (int)(fac_random_uniform(seed, 5, (*at)++) * most);
}

/* Every radix, in any order, with any number of frames. */
static void any_length(void **state) {
    (void)state;
    static const int factors[] = { 2, 2, 2, 3, 5, 4, 8, 7, 11, 13 };
    uint64_t at = 0;
    for (int k = 0; k < 30; k++) {
        enum { WORK = 1000000 }; /* of the reference, for each signal */
        char problem[160];
        int n = 1;
        while (n < 8 + drawn(&at, 300)) n *= factors[drawn(&at, 10)];
        const int most = 1 + WORK / (n * n), wide = 1 + drawn(&at, n), hop = 1 + drawn(&at, n);
        const int frames = 1 + drawn(&at, most < 50 ? most : 50);
        const int rest = drawn(&at, hop), batch = 1 + drawn(&at, 3);
        snprintf(problem, sizeof problem, "stft(f32[%d,%d], f32[%d], i64{%d}, i64{%d})%s", batch,
                 n + (frames - 1) * hop + rest, wide, hop, n, k % 2 ? " onesided" : "");
        check(problem, n);
    }
}

static fac_graph *spectra(int samples, int n, int hop) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1, samples));
    fac_value *size = fac_number(g, FAC_I64, n);
    fac_value *w = fac_signal_window(size, FAC_WINDOW_HANN, false, FAC_F32);
    fac_output(g, "y", fac_stft(x, w, fac_number(g, FAC_I64, hop), size, true));
    return g;
}

/* [2, bins, frames] of these samples, and which solver made them. */
static float *computed(fac_device *d, const float *x, int samples, int n, int hop, char used[64]) {
    fac_error err = { 0 };
    fac_graph *g = spectra(samples, n, hop);
    fac_program *p = NULL;
    fac_tensor *in = NULL, *out = NULL;
    fac_step_stat steps[8] = { { 0 } };
    if (fac_tensor_new(NULL, FAC_F32, fac_shape(1, samples), &in, &err) ||
        fac_tensor_write(in, x, (size_t)samples * sizeof *x, &err) ||
        fac_program_new(g, d, NULL, &p, &err) || fac_program_run(p, &in, &out, &err))
        fail_msg("%s", err.text);
    const fac_type t = fac_tensor_type(out);
    float *y = malloc(fac_type_bytes(&t) + 1);
    memcpy(y, fac_tensor_data(out), fac_type_bytes(&t));
    const size_t count = fac_program_steps(p, steps, 8);
    snprintf(used, 64, "%s", count ? steps[count - 1].solver : "");
    fac_tensor_free(in);
    fac_tensor_free(out);
    fac_program_free(p);
    fac_graph_free(g);
    return y;
}

static void neighbours_change_nothing(void **state) {
    (void)state;
    enum { N = 240, HOP = 80, FRAMES = 37, SAMPLES = N + (FRAMES - 1) * HOP, BINS = N / 2 + 1 };
    fac_error err = { 0 };
    float x[SAMPLES];
    char used[64];
    fac_random_fill(seed, 3, -1, 1, SAMPLES, x);
    for (const char *const *isa = problem_isas; *isa; isa++) {
        fac_device *d = NULL;
        const fac_device_opts o = { .isa = *isa, .threads = 2 };
        if (fac_device_open("cpu", &o, &d, &err)) continue;
        float *all = computed(d, x, SAMPLES, N, HOP, used);
        assert_string_equal(used, "stft/fft");
        for (int t = 0; t < FRAMES; t += 5) {
            const int many = t % 2 ? 1 : 2;
            const int size = N + (many - 1) * HOP;
            float *one = computed(d, x + t * HOP, size, N, HOP, used);
            for (int k = 0; k < 2 * BINS && t + many <= FRAMES; k++)
                assert_memory_equal(&one[k * many], &all[k * FRAMES + t], (size_t)many * 4);
            free(one);
        }
        free(all);
        fac_device_free(d);
    }
}

/* Parseval: the powers of all bins are n times that of the windowed frame, and of half of the bins,
 * the middle ones twice.  An impulse has its window's value in every bin. */
static void what_transforms_are(void **state) {
    (void)state;
    enum { N = 360, AT = 77, BINS = N / 2 + 1 };
    fac_error err = { 0 };
    fac_device *d = NULL;
    char used[64];
    float x[N];
    double have = 0, want = 0;
    fac_random_fill(seed, 6, -1, 1, N, x);
    if (fac_device_open("cpu", NULL, &d, &err)) fail_msg("%s", err.text);
    float *y = computed(d, x, N, N, N, used);
    for (int k = 0; k < BINS; k++) {
        const double twice = k && 2 * k < N ? 2 : 1, re = y[k], im = y[BINS + k];
        have += twice * (re * re + im * im);
    }
    for (int i = 0; i < N; i++) {
        const double w = 0.5 - 0.5 * cos(2 * 3.14159265358979323846 * i / N);
        want += w * x[i] * w * x[i];
    }
    assert_true(fabs(have / N - want) < 1e-5 * want);
    free(y);
    memset(x, 0, sizeof x);
    x[AT] = 1;
    y = computed(d, x, N, N, N, used);
    const double w = 0.5 - 0.5 * cos(2 * 3.14159265358979323846 * AT / N);
    for (int k = 0; k < BINS; k++) assert_true(fabs(hypot(y[k], y[BINS + k]) - w) < 1e-6);
    free(y);
    fac_device_free(d);
}

static void others_are_products(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_device *d = NULL;
    char used[64];
    float x[2000];
    fac_random_fill(seed, 4, -1, 1, 2000, x);
    if (fac_device_open("cpu", NULL, &d, &err)) fail_msg("%s", err.text);
    free(computed(d, x, 2000, 2 * 7 * 17, 50, used));
    assert_string_not_equal(used, "stft/fft");
    assert_string_not_equal(used, "ref");
    free(computed(d, x, 2000, 2 * 3 * 25, 50, used));
    assert_string_equal(used, "stft/fft");
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(edges), cmocka_unit_test(any_length),
                                        cmocka_unit_test(neighbours_change_nothing),
                                        cmocka_unit_test(what_transforms_are),
                                        cmocka_unit_test(others_are_products) };
    seed = fresh_seed();
    return cmocka_run_group_tests_name("cpu stft", tests, NULL, NULL);
}
