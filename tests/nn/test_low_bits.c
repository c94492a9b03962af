/* Quantizers of few bits: levels and bases against published numbers, gradients against the
 * formulas of the papers. */
#include "low_bits_check.h"

enum { MANY = 40001 };

/* ---- the fixed points of QEM ---- */

/* The normal distribution by evenly spaced quantiles; positive: what a relu leaves of it. */
static float *normal(bool positive) {
    float *x = malloc(MANY * sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < MANY; i++) {
        const double p = (i + 0.5) / MANY;
        double low = -9, high = 9;
        for (int k = 0; k < 60; k++) {
            const double middle = (low + high) / 2;
            if (0.5 * erfc(-middle / sqrt(2)) < p)
                low = middle;
            else
                high = middle;
        }
        x[i] = (float)(positive && low < 0 ? 0 : low);
    }
    return x;
}

static void converges(bool positive, int bits, const double *want, double error) {
    float v[4], *x = normal(positive), *y = malloc(MANY * sizeof *y);
    const fac_basis_opts o = { .positive = positive };
    assert_non_null(y);
    for (int j = 0; j < bits; j++) v[j] = 0.4f * (float)(1 << j);
    for (int step = 0; step < 300; step++) {
        fac_graph *g = fac_graph_new();
        fac_value *in = param(g, "x", fac_shape(MANY), x),
                  *basis = param(g, "v", fac_shape(bits), v);
        if (step == 299)
            eval(fac_quantize_basis(in, basis, &o), y, MANY);
        else
            eval(fac_fit_basis(in, basis, &o), v, (size_t)bits);
        fac_graph_free(g);
    }
    double mse = 0;
    for (int i = 0; i < MANY; i++) mse += (double)(x[i] - y[i]) * (x[i] - y[i]) / MANY;
    for (int j = 0; j < bits; j++)
        if (fabs(v[j] - want[j]) > 2e-3)
            fail_msg("bits %d: v[%d] is %g, not %g", bits, j, (double)v[j], want[j]);
    if (fabs(mse - error) > 2e-4) fail_msg("bits %d: the error is %g, not %g", bits, mse, error);
    free(x);
    free(y);
}

static void bases_converge_to_those_of_the_normal_distribution(void **state) {
    (void)state;
    converges(false, 1, (double[]){ 0.7979 }, 0.36335);
    converges(false, 2, (double[]){ 0.5288, 0.9815 }, 0.11746);
    converges(false, 3, (double[]){ 0.3010, 0.6069, 1.1576 }, 0.03692);
    converges(true, 1, (double[]){ 1.2240 }, 0.09507);
    converges(true, 2, (double[]){ 0.6521, 1.2998 }, 0.02342);
    converges(true, 3, (double[]){ 0.3524, 0.7034, 1.4179 }, 0.00644);
}

/* ---- gradients ---- */

/* d sum(y k) / d x, k = 1, 2, 3... */
static void gradient(fac_value *y, fac_value *x, float *to, size_t n) {
    fac_graph *g = fac_value_graph(y);
    float k[16];
    fac_value *dx;
    const fac_dims d = fac_value_type(y).dims;
    for (int i = 0; i < 16; i++) k[i] = (float)(i + 1);
    fac_value *loss = fac_sum(fac_mul(y, param(g, "k", d, k)), (fac_dims){ 0 }, false);
    fac_grad(loss, 1, &x, &dx);
    eval(dx, to, n);
}

typedef fac_value *make(fac_value *x);
static void passes(make *f, int n, const float *x, const float *want) {
    float got[16];
    fac_graph *g = fac_graph_new();
    fac_value *in = param(g, "x", fac_shape(n), x);
    gradient(f(in), in, got, (size_t)n);
    for (int i = 0; i < n; i++)
        if (fabsf(got[i] - want[i] * (float)(i + 1)) > 1e-5f)
            fail_msg("at %g the gradient is %g, not %g", (double)x[i],
                     (double)(got[i] / (float)(i + 1)), (double)want[i]);
    fac_graph_free(g);
}

static fac_value *lq_positive(fac_value *x) {
    const float v[] = { 0.5f, 1 };
    return fac_quantize_lq(x, param(fac_value_graph(x), "v", fac_shape(2), v),
                           &(fac_basis_opts){ .positive = true });
}
static fac_value *lq_signed(fac_value *x) {
    const float v[] = { 0.5f, 1 };
    return fac_quantize_lq(x, param(fac_value_graph(x), "v", fac_shape(2), v), NULL);
}
static fac_value *clipped(fac_value *x) { return fac_binarize_through(x, FAC_SIGN_CLIP); }
static fac_value *approx(fac_value *x) { return fac_binarize_through(x, FAC_SIGN_APPROX); }
static fac_value *identity(fac_value *x) { return fac_binarize_through(x, FAC_SIGN_IDENTITY); }
static fac_value *dorefa(fac_value *x) { return fac_quantize_dorefa(x, 2); }

static void gradients_take_the_paths_of_the_papers(void **state) {
    (void)state;
    const float x[] = { -1.5f, -0.75f, -0.25f, 0.25f, 0.5f, 1.25f, 2 };
    passes(lq_positive, 7, x, (float[]){ 1, 1, 1, 1, 1, 1, 0 });
    passes(lq_signed, 7, x, (float[]){ 1, 1, 1, 1, 1, 1, 1 });
    passes(clipped, 7, x, (float[]){ 0, 1, 1, 1, 1, 0, 0 });
    passes(approx, 7, x, (float[]){ 0, 0.5f, 1.5f, 1.5f, 1, 0, 0 });
    passes(identity, 7, x, (float[]){ 1, 1, 1, 1, 1, 1, 1 });
    passes(dorefa, 7, x, (float[]){ 0, 0, 0, 1, 1, 0, 0 });
}

/* (1/n) sign(w_i) sum_j g_j sign(w_j) + g_i alpha 1[|w_i| <= 1] */
static void scaled_signs_have_the_whole_gradient(void **state) {
    (void)state;
    const float w[] = { 0.5f, -0.25f, 1.5f, -2, 0.125f, 0.75f };
    float got[6], y[6];
    fac_graph *g = fac_graph_new();
    fac_value *in = param(g, "w", fac_shape(2, 3), w),
              *out = fac_binarize_scaled(in, FAC_SIGN_CLIP);
    eval(out, y, 6);
    gradient(out, in, got, 6);
    for (int i = 0; i < 6; i++) {
        float alpha = 0, along = 0;
        const int row = i / 3 * 3;
        for (int j = row; j < row + 3; j++) {
            alpha += fabsf(w[j]) / 3;
            along += (float)(j + 1) * (w[j] < 0 ? -1.0f : 1.0f) / 3;
        }
        const float sign = w[i] < 0 ? -1 : 1;
        const float want = sign * along + (fabsf(w[i]) <= 1 ? (float)(i + 1) * alpha : 0);
        assert_float_equal(y[i], sign * alpha, 1e-6);
        assert_float_equal(got[i], want, 1e-5);
    }
    fac_graph_free(g);
}

/* dy/ds = -x/s + round(x/s) inside, -Qn or Qp beside, times 1 / sqrt(count Qp). */
static void the_step_of_lsq_is_learned(void **state) {
    (void)state;
    const float x[] = { -1.5f, -0.375f, 0.125f, 0.3125f, 0.9f }, s = 0.25f;
    float got, dx[5];
    fac_graph *g = fac_graph_new();
    fac_value *in = param(g, "x", fac_shape(5), x), *step = param(g, "s", fac_shape(1), &s);
    fac_value *y = fac_quantize_lsq(in, step, 2, false);
    gradient(y, step, &got, 1);
    double want = 0;
    for (int i = 0; i < 5; i++) {
        const double c = (double)x[i] / 0.25;
        double d = nearbyint(c) - c;
        if (c <= -2) d = -2;
        if (c >= 1) d = 1;
        want += d * (i + 1);
    }
    assert_float_equal(got, want / sqrt(5.0), 1e-5);
    fac_graph_free(g);
    g = fac_graph_new();
    in = param(g, "x", fac_shape(5), x);
    gradient(fac_quantize_lsq(in, param(g, "s", fac_shape(1), &s), 2, false), in, dx, 5);
    for (int i = 0; i < 5; i++) assert_float_equal(dx[i], i == 0 || i >= 3 ? 0 : i + 1, 1e-5);
    fac_graph_free(g);
}

/* After a relu, of up to 4 bits: the nearest level, halves to the lower one; gradients as above. */
static void steps_after_a_relu_are_a_basis(void **state) {
    (void)state;
    const float x[] = { -0.5f, 0.125f, 0.3f, 0.45f, 0.6f, 0.9f }, s = 0.25f;
    const float want[] = { 0, 0, 0.25f, 0.5f, 0.5f, 0.75f };
    float y[6], dx[6], got;
    for (int bits = 2; bits <= 5; bits++) {
        fac_graph *g = fac_graph_new();
        fac_value *in = param(g, "x", fac_shape(6), x), *step = param(g, "s", fac_shape(1), &s);
        fac_value *q = fac_quantize_lsq(in, step, bits, true);
        const double most = ldexp(1, bits) - 1;
        double along = 0;
        eval(q, y, 6);
        gradient(q, step, &got, 1);
        for (int i = 0; i < 6; i++) {
            const double c = (double)x[i] / 0.25;
            double d = nearbyint(c) - c;
            if (c <= 0) d = 0;
            if (c >= most) d = most;
            along += d * (i + 1);
            const bool is_top = i == 5 && bits > 2;
            assert_float_equal(y[i], is_top ? 1.0f : want[i], 1e-6);
        }
        assert_float_equal(got, along / sqrt(6 * most), 1e-5);
        fac_graph_free(g);
        g = fac_graph_new();
        in = param(g, "x", fac_shape(6), x);
        step = param(g, "s", fac_shape(1), &s);
        gradient(fac_quantize_lsq(in, step, bits, true), in, dx, 6);
        for (int i = 0; i < 6; i++)
            assert_float_equal(dx[i], i == 0 || (i == 5 && bits == 2) ? 0 : i + 1, 1e-5);
        fac_graph_free(g);
    }
}

/* More bases come closer, and alpha is the least squares: the rest is orthogonal to each plane. */
static void more_bases_of_abc_come_closer(void **state) {
    (void)state;
    float w[64], y[64];
    double last = INFINITY;
    for (int i = 0; i < 64; i++) w[i] = sinf((float)(i * i)) * 0.3f + 0.05f;
    for (int bases = 1; bases <= 5; bases += 2) {
        fac_graph *g = fac_graph_new();
        eval(fac_quantize_abc_weight(param(g, "w", fac_shape(8, 8), w), bases), y, 64);
        double rest = 0;
        for (int i = 0; i < 64; i++) rest += (double)(w[i] - y[i]) * (w[i] - y[i]);
        if (!(rest < last)) fail_msg("%d bases: %g, fewer had %g", bases, rest, last);
        last = rest;
        fac_graph_free(g);
    }
}

static void gradients_of_abc_reach_shifts_and_scales(void **state) {
    (void)state;
    const float x[] = { -0.25f, 0.125f, 0.75f, 1.5f }, shift[] = { 0, 0.25f },
                scale[] = { 0.5f, 2 };
    float got[4], two[2], y[4];
    /* k times the scales whose windows hold x */
    const float want[] = { 2, 2 * 2.5f, 3 * 2.5f, 0 };
    for (int part = 0; part < 3; part++) {
        fac_graph *g = fac_graph_new();
        fac_value *v[] = { param(g, "x", fac_shape(4), x), param(g, "shift", fac_shape(2), shift),
                           param(g, "scale", fac_shape(2), scale) };
        fac_value *out = fac_quantize_abc(v[0], v[1], v[2]);
        if (part == 0) eval(out, y, 4);
        if (part)
            gradient(out, v[part], two, 2);
        else
            gradient(out, v[part], got, 4);
        if (part == 0)
            for (int i = 0; i < 4; i++) assert_float_equal(got[i], want[i], 1e-5);
        /* x in the first window: 2, 3; in the second: 1, 2, 3 */
        if (part == 1) {
            assert_float_equal(two[0], 0.5f * 5, 1e-5);
            assert_float_equal(two[1], 2.0f * 6, 1e-5);
        }
        /* signs of x + shift - 1/2: --++, --++ */
        if (part == 2) {
            assert_float_equal(two[0], -1 - 2 + 3 + 4, 1e-5);
            assert_float_equal(two[1], -1 - 2 + 3 + 4, 1e-5);
        }
        fac_graph_free(g);
    }
    assert_float_equal(y[0], -2.5f, 1e-6);
    assert_float_equal(y[3], 2.5f, 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bases_converge_to_those_of_the_normal_distribution),
        cmocka_unit_test(gradients_take_the_paths_of_the_papers),
        cmocka_unit_test(scaled_signs_have_the_whole_gradient),
        cmocka_unit_test(the_step_of_lsq_is_learned),
        cmocka_unit_test(steps_after_a_relu_are_a_basis),
        cmocka_unit_test(more_bases_of_abc_come_closer),
        cmocka_unit_test(gradients_of_abc_reach_shifts_and_scales),
    };
    return cmocka_run_group_tests_name("low bits", tests, open_device, close_device);
}
