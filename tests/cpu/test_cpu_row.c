/* One row times a matrix, where rows of the matrix that meet a zero are left out: exact, and not
 * for infinite weights. */
#include "problem_check.h"

static uint64_t seed;

static const char *const problems[][2] = {
    { "linear/row", "linear(f32[1,700], f32[333,700], f32[333])" },
    { "linear/row", "linear(f32[19], f32[1,19])" },
    { "linear/row", "linear(f32[1,1,1100], f32[77,1100]) {relu}" },
    { "gemm/row", "gemm(f32[1,300], f32[530,300], f32[530]) trans_b alpha=0.5 beta=-2" },
    { "gemm/row", "gemm(f32[300,1], f32[300,64], f32[]) trans_a {silu}" },
    { "matmul/row", "matmul(f32[1,513], f32[513,1030])" },
    { "matmul/row", "matmul(f32[64], f32[64,47])" }
};

static void check_all(problem_check c) {
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        problem_everywhere(c, problems[k][0], problems[k][1]);
}

static void any_density(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++)
        check_all((problem_check){ .seed = seed + (uint64_t)k,
                                   .lo = -1,
                                   .hi = 1,
                                   .tolerance = 4e-5,
                                   .zeros = k / 3.0,
                                   .params = true });
}

/* 0 inf and 0 NaN are NaN: such panels are summed in full. */
static void infinite_weights(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++)
        problem_everywhere((problem_check){ .seed = seed + (uint64_t)k,
                                            .lo = -1,
                                            .hi = 1,
                                            .tolerance = 4e-5,
                                            .zeros = 0.7,
                                            .params = true,
                                            .infinite = 2 },
                           "linear/row", "linear(f32[1,90], f32[700,90])");
}

/* Computed matrices are read where they lie. */
static void computed(void **state) {
    (void)state;
    problem_check c = {
        .seed = seed, .lo = -1, .hi = 1, .tolerance = 4e-5, .zeros = 0.5, .infinite = 2
    };
    problem_everywhere(c, "matmul/row", "matmul(f32[1,513], f32[513,1030])");
    problem_everywhere(c, "matmul/row", "matmul(f32[64], f32[64,47])");
    problem_everywhere(c, "gemm/row", "gemm(f32[300,1], f32[300,5], f32[5]) trans_a");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(any_density),
                                        cmocka_unit_test(infinite_weights),
                                        cmocka_unit_test(computed) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
