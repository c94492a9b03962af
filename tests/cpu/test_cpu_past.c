/* Results that go past the caches, against the reference in f64: rows that begin and end inside
 * lines, blocks of all sizes, and what may not go there, such as results that lie where an operand
 * does. */
#include "problem_check.h"

static uint64_t seed;

typedef struct form {
    const char *solver, *problem;
} form;

static void run_all(const form *f, size_t n, double tolerance) {
    for (size_t k = 0; k < n; k++)
        problem_everywhere((problem_check){ .seed = seed + k,
                                            .lo = -3,
                                            .hi = 3,
                                            .tolerance = tolerance,
                                            .all_out = true,
                                            .past = true },
                           f[k].solver, f[k].problem);
}

static void elementwise(void **state) {
    (void)state;
    static const form forms[] = { { "fused", "relu(f32[7,1001])" },
                                  { "fused", "add(f32[3,5000], f32[3,5000])" },
                                  { "fused", "gelu(f32[65,33])" },
                                  { "fused", "mul(f32[13,1,70], f32[1,40,70])" },
                                  { "fused", "sigmoid(f32[1])" },
                                  { "fused", "add(f32[9,17], f32[])" },
                                  { "fused", "where(bool[50,31], f32[50,31], f32[50,1])" } };
    run_all(forms, sizeof forms / sizeof *forms, 1e-5);
}

static void lines(void **state) {
    (void)state;
    static const form forms[] = { { "norm", "layer_norm(f32[37,101], f32[101], f32[101]) axis=-1" },
                                  { "norm", "layer_norm(f32[2,9000]) axis=-1" },
                                  { "norm", "rms_norm(f32[5,1030], f32[1030]) axis=-1" },
                                  { "norm", "layer_norm(f32[3,2500], -, f32[2500]) axis=-1" },
                                  { "norm", "group_norm(f32[2,6,7,13], f32[6], f32[6]) groups=3" },
                                  { "norm", "instance_norm(f32[2,3,40,41], f32[3], f32[3])" },
                                  { "softmax", "softmax(f32[9,77]) axis=-1" },
                                  { "softmax", "log_softmax(f32[3,4096]) axis=-1" },
                                  { "softmax", "softmax(f32[2,5000]) axis=-1" },
                                  { "softmax", "softmax(f32[4,9,21]) axis=1" } };
    run_all(forms, sizeof forms / sizeof *forms, 1e-5);
}

/* A transpose that is a result is a view and a reorder; copies move bits. */
static void copies(void **state) {
    (void)state;
    static const form forms[] = { { "reorder", "transpose(f32[33,70]) perm=1,0" },
                                  { "reorder", "transpose(f32[64,48]) perm=1,0" },
                                  { "reorder", "transpose(f32[5,80,96]) perm=2,1,0" },
                                  { "reorder", "transpose(f32[3,40,100]) perm=1,0,2" },
                                  { "reorder", "transpose(f32[3,16,32]) perm=0,2,1" },
                                  { "reorder", "transpose(f32[1490,1509]) perm=1,0" },
                                  { "reorder", "transpose(f32[35,65536]) perm=1,0" },
                                  { "reorder", "transpose(f64[31,70]) perm=1,0" },
                                  { "concat", "concat(f32[9,65], f32[9,200]) axis=1" } };
    run_all(forms, sizeof forms / sizeof *forms, 1e-7);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(elementwise), cmocka_unit_test(lines),
                                        cmocka_unit_test(copies) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
