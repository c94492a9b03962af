/* Quantizers of few bits: levels and bases against published numbers, gradients against the
 * formulas of the papers, schemes of whole networks, and the same network without quantizers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"

enum { MANY = 40001 };
static fac_device *dev;

static int open_device(void **state) {
    (void)state;
    return fac_device_open("cpu", NULL, &dev, NULL);
}
static int close_device(void **state) {
    (void)state;
    fac_device_free(dev);
    return 0;
}

static fac_tensor *tensor_of(fac_dims d, const float *x) {
    fac_tensor *t;
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, d, &t, NULL), FAC_OK);
    assert_int_equal(fac_tensor_write(t, x, (size_t)fac_dims_count(&d) * sizeof *x, NULL), FAC_OK);
    return t;
}
static fac_value *param(fac_graph *g, const char *name, fac_dims d, const float *x) {
    fac_tensor *t = tensor_of(d, x);
    fac_value *v = fac_param(g, name, t);
    fac_tensor_free(t);
    return v;
}
static void eval(fac_value *v, float *to, size_t n) {
    fac_tensor *t;
    fac_error err = { 0 };
    if (fac_eval(v, dev, &t, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_read(t, to, n * sizeof *to, NULL), FAC_OK);
    fac_tensor_free(t);
}

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

/* ---- networks ---- */

static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 5);
    const fac_nn_conv2d_opts o = { .pad = 1 };
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 1, 8, 8));
    for (int k = 0; k < 3; k++) {
        char name[16], bn[16];
        snprintf(name, sizeof name, "conv%d", k + 1);
        snprintf(bn, sizeof bn, "bn%d", k + 1);
        x = fac_relu(fac_nn_batch_norm(fac_nn_conv2d(x, name, 8, 3, &o), bn, 0));
    }
    fac_output(g, "logits", fac_nn_linear(fac_flatten(fac_max_pool2d(x, 2, 2, NULL), 1), "fc", 3));
    return g;
}

static fac_graph *quantized(fac_graph *g, int n, const char *const *schemes, int want) {
    fac_graph *q;
    fac_error err = { 0 };
    int changed;
    if (fac_graph_quantize(g, &(fac_quantizing){ .n = n, .schemes = schemes }, &q, &changed, &err))
        fail_msg("%s: %s", schemes[0], err.text);
    assert_int_equal(changed, want);
    return q;
}

static int count(const fac_graph *g, const char *op) {
    char *text = NULL, *at;
    size_t size;
    int n = 0;
    FILE *f = open_memstream(&text, &size);
    assert_int_equal(fac_graph_write(g, f, NULL), FAC_OK);
    fclose(f);
    for (at = strstr(text, op); at; at = strstr(at + 1, op)) n++;
    free(text);
    return n;
}

static void first_and_last_layers_stay_and_patterns_choose(void **state) {
    (void)state;
    fac_graph *g = network();
    fac_graph *all = quantized(g, 1, (const char *[]){ "lq:w1a2" }, 2);
    fac_graph *one = quantized(g, 1, (const char *[]){ "conv2=lq:w2a2" }, 1);
    fac_graph *signs = quantized(g, 1, (const char *[]){ "xnor" }, 2);
    fac_graph *bent = quantized(g, 1, (const char *[]){ "reactnet" }, 2);
    assert_int_equal(count(all, "quantize_basis("), 4);
    assert_int_equal(count(one, "quantize_basis("), 2);
    assert_int_equal(count(all, " relu("), 5); /* two are of gradients */
    /* in front of fc, which is no layer of signs */
    assert_int_equal(count(signs, " relu("), 1);
    assert_int_equal(count(bent, " prelu("), 2);
    fac_graph_free(bent);
    fac_graph_free(signs);
    fac_graph_free(one);
    fac_graph_free(all);
    fac_graph_free(g);
}

static void what_is_no_scheme_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *scheme, *says;
    } bad[] = { { "lq", "no such scheme" },
                { "lq:w9a1", "out of range" },
                { "lq:w1", "wWaA" },
                { "", "no such scheme" },
                { "lsq:w1a2", "one bit" },
                { "lq:w1a2x", "wWaA" },
                { "head*=lq:w1a2", "matches no layer" } };
    fac_graph *g = network(), *q;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        fac_error err = { 0 };
        const fac_quantizing how = { .n = 1, .schemes = &bad[k].scheme };
        assert_int_equal(fac_graph_quantize(g, &how, &q, NULL, &err), FAC_E_ARGUMENT);
        if (!strstr(err.text, bad[k].says)) fail_msg("\"%s\": %s", bad[k].scheme, err.text);
    }
    fac_graph_free(g);
}

/* A step on random numbers. */
static void step(fac_graph *g, int steps) {
    fac_trainer *t;
    fac_tensor *x, *labels;
    fac_error err = { 0 };
    float pixels[4 * 64];
    int64_t classes[] = { 0, 1, 2, 1 };
    for (int i = 0; i < 256; i++) pixels[i] = sinf((float)(i * 7 % 50));
    if (fac_trainer_new(g, dev, NULL, &t, &err)) fail_msg("%s", err.text);
    x = tensor_of(fac_shape(4, 1, 8, 8), pixels);
    assert_int_equal(fac_tensor_new(NULL, FAC_I64, fac_shape(4), &labels, NULL), FAC_OK);
    assert_int_equal(fac_tensor_write(labels, classes, sizeof classes, NULL), FAC_OK);
    for (int i = 0; i < steps; i++)
        if (fac_trainer_step(t, x, labels, 1e-3, NULL, &err)) fail_msg("%s", err.text);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    fac_trainer_free(t);
}

static void read_state(fac_graph *g, const char *name, float *to, size_t n) {
    fac_value *v = fac_graph_find(g, name);
    assert_non_null(v);
    assert_int_equal(fac_tensor_read(fac_value_tensor(v), to, n * sizeof *to, NULL), FAC_OK);
}

/* The first step takes the fit itself (the average has no past), whatever the basis began as. */
static void a_step_moves_bases_to_the_fit(void **state) {
    (void)state;
    fac_graph *plain = network(), *g = quantized(plain, 1, (const char *[]){ "lq:w2a2" }, 2);
    float before[16], fit[16], after[16], second[16];
    fac_value *w = fac_graph_find(g, "conv2.weight"),
              *basis = fac_graph_find(g, "conv2.weight.basis");
    fac_graph *aside = fac_graph_new();
    read_state(g, "conv2.weight.basis", before, 16);
    fac_value *copy = fac_param(aside, "w", fac_value_tensor(w)),
              *v = param(aside, "v", fac_shape(2, 8), before);
    eval(fac_fit_basis(copy, v, NULL), fit, 16);
    fac_graph_free(aside);
    step(g, 1);
    read_state(g, "conv2.weight.basis", after, 16);
    for (int i = 0; i < 16; i++) assert_float_equal(after[i], fit[i], 1e-6);
    step(g, 3);
    read_state(g, "conv2.weight.basis", second, 16);
    assert_true(memcmp(second, after, sizeof after) != 0 && basis != NULL);
    fac_graph_free(g);
    fac_graph_free(plain);
}

static void run(fac_graph *g, float *to) {
    fac_program *p;
    fac_error err = { 0 };
    fac_tensor *y = NULL, *x;
    float pixels[2 * 64];
    for (int i = 0; i < 128; i++) pixels[i] = cosf((float)(i * 3 % 41));
    fac_graph *quiet = fac_graph_inference(g);
    if (fac_program_new(quiet, dev, NULL, &p, &err)) fail_msg("%s", err.text);
    x = tensor_of(fac_shape(2, 1, 8, 8), pixels);
    if (fac_program_run(p, &x, &y, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_read(y, to, 6 * sizeof *to, NULL), FAC_OK);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(quiet);
}

static void networks_without_quantizers_give_the_same(void **state) {
    (void)state;
    static const char *const schemes[] = { "lq:w1a2",  "lq:w3a3",  "dorefa:w2a2", "dorefa:w1a1",
                                           "lsq:w2a2", "abc:w3a2", "bnn",         "xnor",
                                           "bwn",      "bireal",   "reactnet",    "lq:w32a2",
                                           "lq:w2a32" };
    for (size_t k = 0; k < sizeof schemes / sizeof *schemes; k++) {
        fac_graph *plain = network(), *g = quantized(plain, 1, &schemes[k], 2), *without;
        fac_error err = { 0 };
        float a[6], b[6];
        step(g, 2);
        if (fac_graph_dequantize(g, &without, &err)) fail_msg("%s: %s", schemes[k], err.text);
        if (count(without, "quantize_basis(")) {
            fac_graph_write(without, stderr, NULL);
            fail_msg("%s still quantizes", schemes[k]);
        }
        assert_int_equal(count(without, "surrogate("), 0);
        run(g, a);
        run(without, b);
        for (int i = 0; i < 6; i++)
            if (fabsf(a[i] - b[i]) > 1e-5f)
                fail_msg("%s: %g and %g", schemes[k], (double)a[i], (double)b[i]);
        fac_graph_free(without);
        fac_graph_free(g);
        fac_graph_free(plain);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bases_converge_to_those_of_the_normal_distribution),
        cmocka_unit_test(gradients_take_the_paths_of_the_papers),
        cmocka_unit_test(scaled_signs_have_the_whole_gradient),
        cmocka_unit_test(the_step_of_lsq_is_learned),
        cmocka_unit_test(more_bases_of_abc_come_closer),
        cmocka_unit_test(gradients_of_abc_reach_shifts_and_scales),
        cmocka_unit_test(first_and_last_layers_stay_and_patterns_choose),
        cmocka_unit_test(what_is_no_scheme_is_refused),
        cmocka_unit_test(a_step_moves_bases_to_the_fit),
        cmocka_unit_test(networks_without_quantizers_give_the_same)
    };
    return cmocka_run_group_tests_name("low bits", tests, open_device, close_device);
}
