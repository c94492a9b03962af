/* Solvers that walk lines of f32 against the reference in f64: places of extremes, short rows,
 * statistics of norms, long rows. */
#include "line_bounds.h"
#include "problem_check.h"

static uint64_t seed;

/* Many zeros make many equals, which are the largest or the smallest; an infinite element and a NaN
 * are both.  Long rows are of several blocks. */
static void places(void **state) {
    (void)state;
    static const char *const problems[] = {
        "arg_max(f32[37,100]) axis=1",   "arg_min(f32[5,300,33]) axis=1",
        "arg_max(f32[700]) axis=0 keep", "arg_min(f32[70,3]) axis=-1",
        "arg_max(f32[9,31]) axis=0",     "arg_max(f32[2,40,300]) axis=1 keep",
        "arg_min(f32[17,1]) axis=1",     "arg_max(f32[3,1000]) axis=1",
        "arg_max(f32[3,9001]) axis=1",   "arg_min(f32[2,8192]) axis=1"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        for (int variant = 0; variant < 8; variant++) {
            const int kind = variant / 2;
            problem_check c = { .seed = seed + k,
                                .lo = kind == 1 ? 0 : -3,
                                .hi = kind == 2 ? 0 : 3,
                                .zeros = kind ? 0.45 : 0,
                                .infinite = kind == 3 };
            char text[200];
            snprintf(text, sizeof text, "%s%s", problems[k],
                     variant % 2 ? " select_last_index" : "");
            problem_everywhere(c, "arg", text);
        }
}

/* Sums and products in f64, which are rounded once. */
static void short_rows(void **state) {
    (void)state;
    static const char *const problems[] = {
        "sum(f32[3000,5], i64{1})",        "reduce_max(f32[40,25,16], i64{2})",
        "mean(f32[1500,7], i64{-1}) keep", "reduce_prod(f32[1000,3], i64{1})",
        "sum(f32[1237,8], i64{1})",        "mean(f32[1501,16], i64{1})",
        "sum(f32[519,24], i64{1})",        "sum(f32[61,17,64], i64{2})",
        "reduce_min(f32[601,64], i64{1})", "sum(f32[700,63], i64{1})",
        "sum(f32[511,5], i64{1})"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        for (int special = 0; special < 2; special++)
            problem_everywhere((problem_check){ .seed = seed + k,
                                                .lo = -2,
                                                .hi = 2,
                                                .tolerance = 1.01 * U,
                                                .infinite = special },
                               "reduce", problems[k]);
}

/* Of many columns, with infinities and NaN here and there. */
static void extremes_of_columns(void **state) {
    (void)state;
    static const char *const problems[] = { "reduce_max(f32[303,1101], i64{0})",
                                            "reduce_min(f32[131,5,259], i64{0})",
                                            "reduce_max(f32[3,700], i64{0})",
                                            "reduce_min(f32[4,68,400], i64{1})" };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        for (int special = 0; special < 2; special++)
            problem_everywhere(
                (problem_check){ .seed = seed + k, .lo = -2, .hi = 2, .infinite = special },
                "reduce", problems[k]);
}

/* y = (x - mean) r scale + bias, where r is about 0.9, |(x - mean) r| at most 2.5 and |scale|,
 * |bias| 2: the product is rounded four times (5 4 u) and the sum once (7 u), mean loses u 2 r
 * scale and r, whose variance is a sum of squares in parts of 64 terms, some u: less than 34 u. A
 * mean that is large against the spread must not spoil the variance: between 1000 and 1002 r is
 * 1.75, and what remains is the rounding of the mean. */
static void norms(void **state) {
    (void)state;
    static const char *const problems[] = {
        "layer_norm(f32[37,100], f32[100], f32[100]) axis=-1 epsilon=1e-5",
        "layer_norm(f32[3,5,7], f32[5,7]) axis=1 epsilon=1e-3",
        "layer_norm(f32[2,9000]) axis=-1 epsilon=1e-5",
        "rms_norm(f32[37,100], f32[100]) axis=-1 epsilon=1e-5"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
        problem_check c = {
            .seed = seed + k, .lo = -2, .hi = 2, .tolerance = 34 * U, .all_out = true
        };
        problem_everywhere(c, "norm", problems[k]);
        c.lo = 1000;
        c.hi = 1002;
        c.tolerance = (1002 * 1.75 + 34) * U;
        if (k == 2) problem_everywhere(c, "norm", problems[k]);
    }
}

/* softmax: see softmax.c, where numbers differ the sum is off by 2 u.  log_softmax: x - top, which
 * is at most |y| + log sum, loses u of that, log sum loses u log sum and what the sum is off, the
 * difference u |y|, and log sum is less than 10. */
static void long_rows(void **state) {
    (void)state;
    static const char *const problems[] = { "softmax(f32[3,20000]) axis=-1",
                                            "log_softmax(f32[3,20001]) axis=-1",
                                            "softmax(f32[9,1]) axis=1",
                                            "softmax(f32[5,17]) axis=1" };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        problem_everywhere((problem_check){ .seed = seed + k,
                                            .lo = -30,
                                            .hi = 30,
                                            .tolerance = (k == 1 ? 2 + 2 * 10 + 6 : 8) * U },
                           "softmax", problems[k]);
}

/* Products of few rows: of a long sum of equal terms a lane adds up 512 in f32 (u 513 / 2), and
 * then there are up to 147 parts (u 148 / 2), and eight lanes more (u 8). */
static void long_products(void **state) {
    (void)state;
    problem_everywhere((problem_check){ .lo = 0.3, .hi = 0.3, .tolerance = 340 * U }, "linear/thin",
                       "linear(f32[2,300000], f32[3,300000])");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(places),
                                        cmocka_unit_test(short_rows),
                                        cmocka_unit_test(extremes_of_columns),
                                        cmocka_unit_test(norms),
                                        cmocka_unit_test(long_rows),
                                        cmocka_unit_test(long_products) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
