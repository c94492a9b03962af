/* Solvers of gradients along lines against the reference in f64, which computes what they expand into, near and past the
 * caches. */
#include "problem_check.h"

static uint64_t seed;

static void run_all(const char *solver, const char *const *problems, double tolerance) {
    for (size_t k = 0; problems[k]; k++)
        for (int form = 0; form < 4; form++)
            problem_everywhere((problem_check){ .seed = seed + k, .lo = -2, .hi = 2, .tolerance = tolerance, .all_out = form % 2,
                                                .past = form / 2 }, solver, problems[k]);
}

static void softmaxes(void **state) {
    (void)state;
    static const char *const problems[] = {
        "softmax_grad(f32[3,5], f32[3,5]) axis=-1", "softmax_grad(f32[40,1], f32[40,1]) axis=1",
        "softmax_grad(f32[2,3,77], f32[2,3,77]) axis=2", "softmax_grad(f32[300,64], f32[300,64]) axis=-1",
        "softmax_grad(f32[2,9001], f32[2,9001]) axis=1", NULL };
    run_all("softmax_grad", problems, 3e-5);
}

static void log_softmaxes(void **state) {
    (void)state;
    static const char *const problems[] = {
        "log_softmax_grad(f32[3,5], f32[3,5]) axis=-1", "log_softmax_grad(f32[40,1], f32[40,1]) axis=1",
        "log_softmax_grad(f32[2,3,77], f32[2,3,77]) axis=2", "log_softmax_grad(f32[300,64], f32[300,64]) axis=-1",
        "log_softmax_grad(f32[2,9001], f32[2,9001]) axis=1", NULL };
    run_all("log_softmax_grad", problems, 3e-5);
}

static void layer_norms(void **state) {
    (void)state;
    static const char *const problems[] = {
        "layer_norm_grad(f32[3,5], f32[3,5], f32[5]) axis=-1 epsilon=1e-3",
        "layer_norm_grad(f32[300,33], f32[300,33], -) axis=1 epsilon=1e-3",
        "layer_norm_grad(f32[7,6,10], f32[7,6,10], f32[6,10]) axis=1 epsilon=1e-3",
        "layer_norm_grad(f32[9,2050], f32[9,2050], f32[2050]) axis=-1 epsilon=1e-3",
        "layer_norm_grad(f32[4,100], f32[4,100], f32[4,100]) axis=0 epsilon=1e-3", NULL };
    run_all("layer_norm_grad", problems, 1e-4);
}

static void rms_norms(void **state) {
    (void)state;
    static const char *const problems[] = {
        "rms_norm_grad(f32[3,5], f32[3,5], f32[5]) axis=-1 epsilon=1e-3",
        "rms_norm_grad(f32[300,33], f32[300,33], -) axis=1 epsilon=1e-3",
        "rms_norm_grad(f32[7,6,10], f32[7,6,10], f32[6,10]) axis=1 epsilon=1e-3",
        "rms_norm_grad(f32[9,2050], f32[9,2050], f32[2050]) axis=-1 epsilon=1e-3",
        "rms_norm_grad(f32[4,100], f32[4,100], f32[4,100]) axis=0 epsilon=1e-3", NULL };
    run_all("rms_norm_grad", problems, 1e-4);
}

/* Not the last axis: left to what it expands into. */
static void others(void **state) {
    (void)state;
    problem_everywhere((problem_check){ .seed = seed, .lo = -2, .hi = 2, .tolerance = 1e-5 }, NULL,
                       "softmax_grad(f32[3,5,7], f32[3,5,7]) axis=1");
    problem_everywhere((problem_check){ .seed = seed, .lo = -2, .hi = 2, .tolerance = 1e-5 }, NULL,
                       "log_softmax_grad(f32[3,5,7], f32[3,5,7]) axis=1");
}

/* The gradient of a sum of products begins with ones, by which nothing is multiplied. */
static void two_steps(fac_value *(*op)(fac_value *x, int64_t axis), const char *solver) {
    fac_error err = { 0 };
    fac_device *d;
    fac_program *p;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(300, 500)), *dy = fac_input(g, "dy", FAC_F32, fac_shape(300, 500)), *dx;
    fac_grad(fac_sum(fac_mul(op(x, -1), dy), (fac_dims){ 0 }, false), 1, &x, &dx);
    fac_output(g, "dx", dx);
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    if (fac_program_new(g, d, NULL, &p, &err)) fail_msg("%s", err.text);
    fac_tensor *in[2], *out[1] = { NULL };
    for (int k = 0; k < 2; k++) {
        assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(300, 500), &in[k], &err), FAC_OK);
        problem_fill(&(problem_check){ .seed = seed, .lo = -1, .hi = 1 }, k, in[k]);
    }
    if (fac_program_run(p, in, out, &err)) fail_msg("%s", err.text);
    fac_step_stat s[8];
    assert_int_equal(fac_program_steps(p, s, 8), 2);
    assert_string_equal(s[1].solver, solver);
    for (int k = 0; k < 2; k++) fac_tensor_free(in[k]);
    fac_tensor_free(out[0]);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
}

static void ones(void **state) {
    (void)state;
    two_steps(fac_softmax, "softmax_grad");
    two_steps(fac_log_softmax, "log_softmax_grad");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(softmaxes), cmocka_unit_test(log_softmaxes),
                                        cmocka_unit_test(layer_norms), cmocka_unit_test(rms_norms), cmocka_unit_test(others), cmocka_unit_test(ones) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
