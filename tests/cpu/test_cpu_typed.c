/* Matrix products of f64 and of integers against the reference: every transpose, batches, wrapping
 * sums. */
#include "problem_check.h"

static uint64_t seed;

static void reals(void **state) {
    (void)state;
    static const char *const problems[] = {
        "matmul(f64[37,65], f64[65,41])",
        "matmul(f64[2,1,9,30], f64[3,30,17])",
        "matmul(f64[300], f64[300])",
        "linear(f64[2,7,33], f64[19,33], f64[19])",
        "gemm(f64[33,20], f64[33,25], f64[20,1]) trans_a alpha=0.5 beta=-2",
        "gemm(f64[20,33], f64[25,33], f64[20,25]) trans_b beta=3",
        "gemm(f64[33,20], f64[25,33], f64[]) trans_a trans_b alpha=-1"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        problem_everywhere(
            (problem_check){ .seed = seed + k, .lo = -1, .hi = 1, .tolerance = 1e-12 }, "typed",
            problems[k]);
}

/* The reference computes them in 64 bits and wraps. */
static void integers(void **state) {
    (void)state;
    static const char *const types[] = { "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64" };
    static const char *const forms[] = { "matmul(%s[21,40], %s[40,35])",
                                         "matmul(%s[2,5,9], %s[9,70])",
                                         "gemm(%s[40,3], %s[9,40], %s[9]) trans_a trans_b",
                                         "gemm(%s[3,40], %s[40,9], %s[3,9])" };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            char text[200];
            const double largest = types[t][1] == '8' ? 120 : types[t][1] == '1' ? 30000 : 2e9;
            snprintf(text, sizeof text, forms[k], types[t], types[t], types[t]);
            problem_everywhere((problem_check){ .seed = seed + k,
                                                .lo = types[t][0] == 'u' ? 0 : -largest,
                                                .hi = largest },
                               "typed", text);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(reals), cmocka_unit_test(integers) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
