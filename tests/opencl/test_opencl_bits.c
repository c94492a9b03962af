/* Convolutions of few bits on OpenCL: the very sums and codes of the formula, on fresh random
 * problems of whole numbers. */
#include "codes_check.h"
#include "opencl_check.h"

enum { PROBLEMS = 6, GRAPHS = 12 };
static fac_device *dev;

static int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return opencl_open(&dev, &(fac_error){ 0 }); /* without one the tests are skipped */
}
static int close_device(void **state) {
    (void)state;
    fac_device_free(dev);
    return 0;
}

static void same(const char *problem) {
    size_t n, m;
    float *want = results(problem, "cpu", "portable", "ref", &n);
    float *got = results(problem, "opencl", NULL, "conv2d_basis/count", &m);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("%s (seed %llu): element %zu is %.9g, not %.9g", problem,
                     (unsigned long long)seed, i, (double)got[i], (double)want[i]);
    free(got);
    free(want);
}

static void random_problems_are_exact(void **state) {
    (void)state;
    if (!dev) skip();
    uint64_t s = seed;
    for (int k = 0; k < PROBLEMS; k++) {
        char problem[400];
        random_problem(&s, problem, sizeof problem);
        same(problem);
    }
}

static void rows_and_borders(void **state) {
    (void)state;
    if (!dev) skip();
    same("conv2d_basis(f32[37,65,1,1], u8[1,33,9], f32[33], -, f32[1,33]) dims=33,65,1,1");
    same("conv2d_basis(f32[1,5,5,5], u8[1,4,16], -, -, f32[1,4]) pad=7,7,7,7 dims=4,5,5,5");
}

/* Codes in and out, thresholds in whole numbers and floats, max pools: none falls back. */
static void random_codes_are_exact(void **state) {
    (void)state;
    if (!dev) skip();
    uint64_t s = seed;
    for (int k = 0; k < GRAPHS; k++) {
        char text[1200];
        results_of want, got;
        const int channels = random_text(&s, text, sizeof text);
        run_text(text, "cpu", "portable", "ref", channels, &want);
        run_text(text, "opencl", NULL, NULL, channels, &got);
        for (int i = 0; i < got.n; i++) {
            if (got.bytes[i] != want.bytes[i] || memcmp(got.of[i], want.of[i], got.bytes[i]))
                fail_msg("output %d (seed %llu):\n%s", i, (unsigned long long)seed, text);
            free(got.of[i]);
            free(want.of[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_problems_are_exact),
                                        cmocka_unit_test(random_codes_are_exact),
                                        cmocka_unit_test(rows_and_borders) };
    return cmocka_run_group_tests_name("opencl bits", tests, open_device, close_device);
}
