/* Solvers of gradients along lines against the reference in f64, which computes what they expand
 * into, near and past the caches. */
#include "line_bounds.h"
#include "problem_check.h"
#include "backends/cpu/device/streams.h"

static uint64_t seed;
static const double MOST = 2; /* of the magnitudes of all numbers */

static void run(const char *solver, size_t k, const char *problem, double tolerance) {
    for (int form = 0; form < 4; form++)
        problem_everywhere((problem_check){ .seed = seed + k,
                                            .lo = -MOST,
                                            .hi = MOST,
                                            .tolerance = tolerance,
                                            .all_out = form % 2,
                                            .past = form / 2 },
                           solver, problem);
}

/* dx = y (dy - s), s = sum dy y.  That s is off counts y times.  Rounded are s, the difference and
 * the product: with |y s| <= |dx| + |y dy| they lose u (3 |dx| + |y dy|). */
static double softmax_bound(int64_t n) { return MOST * dot_error(n, MOST) + (3 + MOST * MOST) * U; }

static void softmaxes(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        int64_t n;
    } c[] = { { "softmax_grad(f32[3,5], f32[3,5]) axis=-1", 5 },
              { "softmax_grad(f32[40,1], f32[40,1]) axis=1", 1 },
              { "softmax_grad(f32[2,3,77], f32[2,3,77]) axis=2", 77 },
              { "softmax_grad(f32[300,64], f32[300,64]) axis=-1", 64 },
              { "softmax_grad(f32[2,9001], f32[2,9001]) axis=1", 9001 } };
    for (size_t k = 0; k < sizeof c / sizeof *c; k++)
        run("softmax_grad", k, c[k].problem, softmax_bound(c[k].n));
}

/* dx = dy - e^y s, s = sum dy in f64.  Off are e^y by 3 u (exp2.h), s and the product by u each,
 * and the difference by u; with |e^y s| <= |dx| + |dy| that is u (5 (|dx| + |dy|) + |dx|). */
static const double LOG_BOUND = (6 + 5 * 2) * 0x1p-24;

static void log_softmaxes(void **state) {
    (void)state;
    static const char *const problems[] = { "log_softmax_grad(f32[3,5], f32[3,5]) axis=-1",
                                            "log_softmax_grad(f32[40,1], f32[40,1]) axis=1",
                                            "log_softmax_grad(f32[2,3,77], f32[2,3,77]) axis=2",
                                            "log_softmax_grad(f32[300,64], f32[300,64]) axis=-1",
                                            "log_softmax_grad(f32[2,9001], f32[2,9001]) axis=1" };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        run("log_softmax_grad", k, problems[k], LOG_BOUND);
}

/* dx = r (g - a - hat b) with hat = (x - mean) r, g = dy scale, and the means a of g and b of g
 * hat.  epsilon = 0.1 bounds r = 1 / sqrt(var + epsilon) by 3.2; |g|, |a| and |b| are at most 4,
 * since hat^2 is 1 on average, and |hat| at most 2.3 on such lines.  Each of g, a and hat b is
 * rounded six times until it is in dx: 6 r (4 + 4 + 2.3 4) u = 330 u.  mean, which is at most 2, is
 * rounded once: r^2 |b| 2 u = 82 u.  b is a mean of products of such hats: r |hat| 4 (4 u) = 118 u.
 * The sums of dy and dy hat over 300 lines lose no more: of a part of them in f32, and of numbers
 * with errors of both signs. */
static const double NORM_BOUND = (330 + 82 + 118) * 0x1p-24;

static void layer_norms(void **state) {
    (void)state;
    static const char *const problems[] = {
        "layer_norm_grad(f32[3,5], f32[3,5], f32[5]) axis=-1 epsilon=0.1",
        "layer_norm_grad(f32[300,33], f32[300,33], -) axis=1 epsilon=0.1",
        "layer_norm_grad(f32[7,6,10], f32[7,6,10], f32[6,10]) axis=1 epsilon=0.1",
        "layer_norm_grad(f32[9,2050], f32[9,2050], f32[2050]) axis=-1 epsilon=0.1",
        "layer_norm_grad(f32[4,100], f32[4,100], f32[4,100]) axis=0 epsilon=0.1"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        run("layer_norm_grad", k, problems[k], NORM_BOUND);
}

static void rms_norms(void **state) {
    (void)state;
    static const char *const problems[] = {
        "rms_norm_grad(f32[3,5], f32[3,5], f32[5]) axis=-1 epsilon=0.1",
        "rms_norm_grad(f32[300,33], f32[300,33], -) axis=1 epsilon=0.1",
        "rms_norm_grad(f32[7,6,10], f32[7,6,10], f32[6,10]) axis=1 epsilon=0.1",
        "rms_norm_grad(f32[9,2050], f32[9,2050], f32[2050]) axis=-1 epsilon=0.1",
        "rms_norm_grad(f32[4,100], f32[4,100], f32[4,100]) axis=0 epsilon=0.1"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        run("rms_norm_grad", k, problems[k], NORM_BOUND);
}

/* Products of both signs, whose sum is small against them: what f32 loses of it must be what short
 * parts lose. */
static double dot_of(const char *isa, const float *x, const float *y, int64_t n) {
    fac_error err = { 0 };
    fac_device *d;
    const fac_device_opts o = { .isa = isa, .threads = 1 };
    if (fac_device_open("cpu", &o, &d, &err)) fail_msg("%s", err.text);
    const double sum = ((fac_cpu *)d)->simd->streams->grads->dot(x, y, n);
    fac_device_free(d);
    return sum;
}

static void dots(void **state) {
    enum { N = 10007, LINES = 40, ISAS = sizeof problem_isas / sizeof *problem_isas - 1 };
    static float x[N], y[N];
    double squares[ISAS] = { 0 };
    (void)state;
    for (uint64_t line = 0; line < LINES; line++) {
        double want = 0;
        for (uint64_t k = 0; k < N; k++) {
            x[k] = (float)(MOST * (2 * fac_random_uniform(seed, 2 * line, k) - 1));
            y[k] = (float)(MOST * (2 * fac_random_uniform(seed, 2 * line + 1, k) - 1));
            want += (double)x[k] * (double)y[k];
        }
        for (int i = 0; i < ISAS; i++) {
            const double off = dot_of(problem_isas[i], x, y, N) - want;
            squares[i] += off * off;
        }
    }
    for (int i = 0; i < ISAS; i++) /* a third is more than one standard deviation: 1.7 */
        if (sqrt(squares[i] / LINES) > dot_error(N, MOST) / 4)
            fail_msg("%s: sums of products are off by %g", problem_isas[i],
                     sqrt(squares[i] / LINES));
}

/* Equal numbers are rounded the same way over and over: dbias = sum dy over very many lines.  Parts
 * of 256 of them in f32 lose u (256 + 1) / 2 of it at most, since the sum before the k-th addition
 * is k times the number. */
static void many_lines(void **state) {
    (void)state;
    problem_everywhere(
        (problem_check){ .lo = 0.3, .hi = 0.3, .all_out = true, .tolerance = 130 * U },
        "layer_norm_grad",
        "layer_norm_grad(f32[100000,1], f32[100000,1], f32[1]) axis=-1 epsilon=0.1");
}

/* The same of attention's gradients: dv[key] = sum over queries of dy p.  Blocks of 128 queries add
 * up in f32 (u 129 / 2), and then the blocks (u 783 / 2).  q is 0, so that dk is. */
static void many_queries(void **state) {
    (void)state;
    problem_everywhere(
        (problem_check){
            .lo = 0.3, .hi = 0.3, .zeros = 1, .all_out = true, .tolerance = (129 + 783) / 2 * U },
        "attention_grad",
        "attention_grad(f32[1,1,100000,1], f32[1,1,2,1], f32[1,1,2,1], "
        "f32[1,1,100000,1], f32[1,1,100000,1], f32[1,1,100000])");
}

/* Not the last axis: left to what it expands into. */
static void others(void **state) {
    (void)state;
    problem_everywhere(
        (problem_check){ .seed = seed, .lo = -2, .hi = 2, .tolerance = softmax_bound(5) }, NULL,
        "softmax_grad(f32[3,5,7], f32[3,5,7]) axis=1");
    problem_everywhere((problem_check){ .seed = seed, .lo = -2, .hi = 2, .tolerance = LOG_BOUND },
                       NULL, "log_softmax_grad(f32[3,5,7], f32[3,5,7]) axis=1");
}

/* The gradient of a sum of products begins with ones, by which nothing is multiplied. */
static void two_steps(fac_value *(*op)(fac_value *x, int64_t axis), const char *solver) {
    fac_error err = { 0 };
    fac_device *d;
    fac_program *p;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(300, 500)),
              *dy = fac_input(g, "dy", FAC_F32, fac_shape(300, 500)), *dx;
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmaxes),    cmocka_unit_test(log_softmaxes),
        cmocka_unit_test(layer_norms),  cmocka_unit_test(rms_norms),
        cmocka_unit_test(dots),         cmocka_unit_test(many_lines),
        cmocka_unit_test(many_queries), cmocka_unit_test(others),
        cmocka_unit_test(ones)
    };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
