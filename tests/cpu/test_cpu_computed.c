/* Products whose matrices were both computed in the run: sizes about every edge, slabs of the sum,
 * transposes, batches, bodies. */
#include "problem_check.h"
#include "base/optional.h"

static uint64_t seed;

static int pick(uint64_t i, int most) {
    return 1 + (int)(fac_random_uniform(seed, i, 0) * most) % most;
}

/* One row, a tile, many tiles; a column, a vector, a panel; a few terms, whole vectors of them,
 * several slabs. */
static int size(uint64_t i) {
    static const int edges[] = { 1, 2, 7, 8, 13, 14, 15, 16, 17, 28, 31, 32, 33, 48, 64, 65, 96 };
    const int n = (int)(sizeof edges / sizeof *edges);
    return pick(i, 2) == 1 ? edges[pick(i + 1000, n) - 1] : pick(i + 2000, 150);
}

/* Sums of so many products of numbers in +-1, each rounded to f32 after every term.
 *
 * Products are 1/3 in the root mean square, the sum of the first i is sqrt(i) / 3, and its rounding
 * is off by 2^-24 / sqrt(3) of it: errors of all terms together are sigma = terms 2^-24 / (3
 * sqrt(6)).  A sum that went far on its way is off by more, so the tail is exp(-1.1 t) beyond t
 * sigma, not a bell's: 4 terms 2^-24 are 29 sigma, and one of 1e13 sums is beyond.  Eight terms
 * more are for factors, c and the body.  (Largest of 200 seeds: 0.18 of it.)  A missing product is
 * 500 times that. */
static void check(const char *solver, int terms, const char *problem) {
    const double tolerance = 4 * (terms + 8) * 0x1p-24;
    problem_everywhere((problem_check){ .seed = seed, .lo = -1, .hi = 1, .tolerance = tolerance },
                       solver, problem);
}

static void gemm(void **state) {
    (void)state;
    char text[300];
    static const char *const bodies[] = { "", " {relu}", " {silu}" }, *const factors[] = {
        "", " alpha=0.5 beta=-2"
    };
    for (uint64_t k = 0; k < 32; k++) {
        const int M = size(10 * k), N = size(10 * k + 1),
                  K = k % 8 == 7 ? 1000 + pick(k, 1200) : size(10 * k + 2);
        const bool ta = k & 1, tb = k & 2;
        char c[5][32] = { "-", "", "", "f32[1]" };
        snprintf(c[1], sizeof c[1], "f32[%d]", N), snprintf(c[2], sizeof c[2], "f32[%d,1]", M);
        snprintf(c[4], sizeof c[4], "f32[%d,%d]", M, N);
        const int a[2][2] = { { M, K }, { K, M } }, b[2][2] = { { K, N }, { N, K } };
        snprintf(text, sizeof text, "gemm(f32[%d,%d], f32[%d,%d], %s)%s%s%s%s", a[ta][0], a[ta][1],
                 b[tb][0], b[tb][1], c[k / 4 % 5], fac_text_if(ta, " trans_a"),
                 fac_text_if(tb, " trans_b"), factors[k / 3 % 2], bodies[k % 3]);
        check("gemm/computed", K, text);
    }
}

static void batches(void **state) {
    (void)state;
    static const struct {
        int terms;
        const char *text;
    } problems[] = { { 20, "matmul(f32[3,70,20], f32[3,20,90])" },
                     { 30, "matmul(f32[2,1,9,30], f32[3,30,17])" },
                     { 65, "matmul(f32[4,33,65], f32[65,64])" },
                     { 64, "matmul(f32[2,3,40,64], f32[3,64,40]) {relu}" },
                     { 65, "matmul(f32[65], f32[5,65,48])" },
                     { 48, "matmul(f32[2,29,48], f32[48])" },
                     { 33, "linear(f32[2,50,33], f32[70,33], f32[70]) {relu}" },
                     { 64, "linear(f32[300,64], f32[100,64])" } };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        check(problems[k].text[0] == 'l' ? "linear/computed" : "matmul/computed", problems[k].terms,
              problems[k].text);
}

/* As many tiles, panels and slabs as make several of everything. */
static void large(void **state) {
    (void)state;
    check("matmul/computed", 1100, "matmul(f32[600,1100], f32[1100,130])");
    check("gemm/computed", 1040, "gemm(f32[1040,230], f32[300,1040]) trans_a trans_b");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(gemm), cmocka_unit_test(batches),
                                        cmocka_unit_test(large) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
