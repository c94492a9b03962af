/* Matrix products of f64 and of integers, and convolutions of f64, against the reference: every
 * transpose, batches, wrapping sums; groups, strides, dilations, padding, odd sizes, several slabs
 * of taps. */
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
            double largest = 2e9;
            if (types[t][1] == '8') largest = 120;
            if (types[t][1] == '1') largest = 30000; /* 16 bits */
            snprintf(text, sizeof text, forms[k], types[t], types[t], types[t]);
            problem_everywhere((problem_check){ .seed = seed + k,
                                                .lo = types[t][0] == 'u' ? 0 : -largest,
                                                .hi = largest },
                               "typed", text);
        }
}

static void convolutions(void **state) {
    (void)state;
    static const struct {
        const char *solver, *problem;
    } all[] = {
        { "conv2d/typed", "conv2d(f64[1,3,9,11], f64[5,3,3,3]) pad=1,1,1,1" },
        { "conv2d/typed", "conv2d(f64[2,6,13,7], f64[10,3,3,2], f64[10]) groups=2 stride=2,1" },
        { "conv2d/typed", "conv2d(f64[1,97,5,6], f64[19,97,3,3], f64[19]) pad=2,0,1,3" },
        { "conv2d/typed", "conv2d(f64[3,40,7,9], f64[33,40,1,1], f64[33])" },
        { "conv2d/typed", "conv2d(f64[1,4,17,19], f64[4,1,5,3]) groups=4 dilation=2,3 stride=3,2" },
        { "conv2d/typed", "conv2d(f64[1,2,3,3], f64[1,2,3,3], f64[1])" },
        { "conv2d/typed", "conv2d(f64[1,1,1,70], f64[2,1,1,40]) pad=0,20,0,60" },
        { "conv3d/typed", "conv3d(f64[1,3,5,6,7], f64[4,3,3,2,3], f64[4]) pad=1,0,1,1,1,1" },
        { "conv3d/typed", "conv3d(f64[2,4,4,5,9], f64[6,2,1,2,2]) groups=2 stride=1,2,3" },
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (int params = 0; params < 2; params++)
            problem_everywhere(
                (problem_check){
                    .seed = seed + k, .lo = -1, .hi = 1, .tolerance = 1e-12, .params = params },
                all[k].solver, all[k].problem);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(reals), cmocka_unit_test(integers),
                                        cmocka_unit_test(convolutions) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
