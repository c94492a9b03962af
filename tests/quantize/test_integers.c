/* Trained models in integers: each scheme against the floats, what each layer is said to lose, the
 * kernels that take the result, ranges of samples, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/report/activations.h"
#include "facula/facula.h"
#include "base/rng.h"
#include "quantize/quantize.h"
#include "fresh_seed.h"

static fac_device *dev;
static fac_error err;
static uint64_t seed, at;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s", err.text);                                                        \
    } while (0)

static int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", NULL, &dev, NULL);
}
static int close_device(void **state) {
    (void)state;
    fac_device_free(dev);
    return 0;
}

/* Evenly within [0, 1). */
static double next_unit(void) { return fac_random_uniform(seed, 0, at++); }

/* ---- models ---- */

static fac_tensor *drawn(fac_dims d, double size) {
    fac_tensor *t;
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, &err));
    float *to = (float *)(uintptr_t)fac_tensor_data(t);
    for (int64_t k = 0; k < fac_dims_count(&d); k++) to[k] = (float)(size * (2 * next_unit() - 1));
    return t;
}

static fac_value *param(fac_graph *g, const char *name, fac_dims d, double size) {
    fac_tensor *t = drawn(d, size);
    fac_value *v = fac_param(g, name, t);
    fac_tensor_free(t);
    return v;
}

static fac_value *conv(fac_graph *g, fac_value *x, const char *name, fac_dims d, int64_t groups) {
    char text[64];
    const fac_conv2d_opts o = { .pad = { 1, 1, 1, 1 }, .groups = groups };
    snprintf(text, sizeof text, "%s.weight", name);
    fac_value *w = param(g, text, d, 2 / sqrt((double)(d.d[1] * 9)));
    snprintf(text, sizeof text, "%s.bias", name);
    fac_graph_push(g, name);
    fac_value *y = fac_conv2d(x, w, param(g, text, fac_shape(d.d[0]), 0.3), &o);
    fac_graph_pop(g);
    return y;
}

/* A residual block, a depthwise convolution, means and a last layer. */
static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, 13, 11));
    fac_value *a = fac_relu(conv(g, x, "first", fac_shape(8, 3, 3, 3), 1));
    fac_value *b = fac_relu(conv(g, a, "second", fac_shape(8, 8, 3, 3), 1));
    fac_value *c = conv(g, b, "third", fac_shape(8, 1, 3, 3), 8);
    fac_value *sum = fac_relu(fac_add(c, a));
    fac_value *mean = fac_mean(sum, fac_shape(2, 3), true);
    fac_value *w = param(g, "last.weight", fac_shape(5, 8), 0.6);
    fac_graph_push(g, "last");
    fac_output(g, "y", fac_linear(fac_flatten(mean, 1), w, param(g, "last.bias", fac_shape(5), 1)));
    fac_graph_pop(g);
    OK(fac_graph_check(g, &err));
    return g;
}

/* Products of three dims, and one of two activations. */
static fac_graph *products(void) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 5, 40));
    fac_value *bias = param(g, "a.bias", fac_shape(33), 1);
    fac_value *a = fac_linear(x, param(g, "a.weight", fac_shape(33, 40), 0.3), bias);
    fac_value *b = fac_matmul(x, param(g, "b.weight", fac_shape(40, 33), 0.3));
    fac_value *scores = fac_matmul(a, fac_transpose(b, fac_shape(0, 2, 1)));
    fac_value *w = param(g, "c.weight", fac_shape(7, 33), 0.1);
    fac_output(g, "y", fac_linear(fac_matmul(scores, a), w, NULL));
    OK(fac_graph_check(g, &err));
    return g;
}

static fac_tensor *answer(const fac_graph *g, fac_tensor *x, bool no_fuse) {
    const fac_program_opts o = { .no_fuse = no_fuse };
    fac_program *p;
    fac_tensor *y = NULL, *f32;
    OK(fac_program_new(g, dev, &o, &p, &err));
    OK(fac_program_run(p, &x, &y, &err));
    OK(fac_tensor_convert(y, FAC_F32, &f32, &err));
    fac_tensor_free(y);
    fac_program_free(p);
    return f32;
}

static double decibels(const fac_tensor *was, const fac_tensor *is) {
    const fac_type t = fac_tensor_type(was);
    const float *a = fac_tensor_data(was), *b = fac_tensor_data(is);
    double signal = 0, error = 0;
    for (int64_t k = 0; k < fac_dims_count(&t.dims); k++) {
        signal += a[k] * a[k];
        error += (a[k] - b[k]) * (a[k] - b[k]);
    }
    return fac_decibels(signal, error);
}

/* first: one of the samples, or NULL. */
static fac_graph *made(const fac_graph *g, const fac_integers *how, fac_dims shape,
                       fac_tensor *first, fac_calibrator **out) {
    fac_graph *q;
    OK(fac_calibrator_new(g, dev, how, out, &err));
    for (int k = 0; k < 5; k++) {
        fac_tensor *x = k || !first ? drawn(shape, 1) : fac_tensor_retain(first);
        OK(fac_calibrator_add(*out, &x, &err));
        fac_tensor_free(x);
    }
    OK(fac_calibrator_finish(*out, &q, &err));
    return q;
}

/* ---- each scheme ---- */

static void check_scheme(const fac_graph *g, const fac_integers *how, fac_dims shape,
                         double least) {
    fac_calibrator *c;
    fac_tensor *x = drawn(shape, 1), *was = answer(g, x, false);
    fac_graph *q = made(g, how, shape, x, &c);
    fac_tensor *is = answer(q, x, false);
    fac_tensor *slow = answer(q, x, true);
    if (decibels(was, is) < least || decibels(slow, is) < least)
        fail_msg("%s calibration %d: %.1f dB, from its own floats %.1f", how->scheme,
                 (int)how->calibration, decibels(was, is), decibels(slow, is));
    const fac_integer_layer *l;
    int n = 0;
    for (; (l = fac_calibrator_layer(c, n)); n++) {
        const bool smaller = l->weight_sqnr > 10 && l->bytes < l->bytes_before;
        if (!l->kept && !smaller) fail_msg("%s", l->name);
        if (!(l->output_sqnr > fmin(least, 8))) fail_msg("%s: %.1f dB", l->name, l->output_sqnr);
    }
    assert_true(n >= 3);
    fac_tensor *all[] = { x, was, is, slow };
    for (int k = 0; k < 4; k++) fac_tensor_free(all[k]);
    fac_graph_free(q);
    fac_calibrator_free(c);
}

static void schemes_give_nearly_the_same(void **state) {
    (void)state;
    fac_graph *g = network(), *p = products();
    const fac_dims image = fac_shape(2, 3, 13, 11), rows = fac_shape(2, 5, 40);
    for (int k = 0; fac_integers_scheme(k); k++) {
        if (!fac_integers_known(fac_integers_scheme(k), NULL)) continue; /* lq:wWaA: test_lq.c */
        const bool few = strstr(fac_integers_scheme(k), "int4") != NULL;
        for (int way = 0; way < 12; way++) {
            const fac_integers how = { .scheme = fac_integers_scheme(k),
                                       .calibration = way % 3,
                                       .is_signed = way / 3 % 2,
                                       .per_tensor = way / 6,
                                       .reduce_range = way / 6 };
            const bool clips = how.calibration == FAC_CALIBRATE_ENTROPY;
            const bool tails = how.calibration == FAC_CALIBRATE_PERCENTILE; /* are cut */
            const double least = few || tails ? 8 : 20;
            check_scheme(g, &how, image, clips ? 5 : least + 4);
            check_scheme(p, &how, rows, clips ? 3 : least);
        }
    }
    fac_graph_free(g);
    fac_graph_free(p);
}

/* Half a step of what a block's 15 steps span. */
static double half_step(const float *w, int64_t n) {
    double lo = 0, hi = 0;
    for (int64_t k = 0; k < n; k++) {
        lo = fmin(lo, w[k]);
        hi = fmax(hi, w[k]);
    }
    return (hi - lo) / 30;
}

/* No weight of 4 bits is off by more than half a step, so no sum by more than all of these. */
static void four_bits_have_a_bound(void **state) {
    (void)state;
    enum { ROWS = 6, TERMS = 70, OUTPUTS = 33, BLOCK = 32 };
    for (int round = 0; round < 8; round++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(ROWS, TERMS));
        fac_value *w = param(g, "w", fac_shape(OUTPUTS, TERMS), round % 2 ? 0.3 : 1e-3);
        fac_output(g, "y", fac_linear(x, w, param(g, "b", fac_shape(OUTPUTS), 1)));
        OK(fac_graph_check(g, &err));
        fac_calibrator *c;
        fac_graph *q =
            made(g, &(fac_integers){ .scheme = "int4:block32" }, fac_shape(ROWS, TERMS), NULL, &c);
        fac_tensor *in = drawn(fac_shape(ROWS, TERMS), 3);
        fac_tensor *was = answer(g, in, true), *is = answer(q, in, false);
        const float *a = fac_tensor_data(was), *b = fac_tensor_data(is),
                    *from = fac_tensor_data(in);
        const float *weights = fac_tensor_data(fac_value_tensor(w));
        for (int k = 0; k < ROWS * OUTPUTS; k++) {
            const float *row = weights + k % OUTPUTS * TERMS, *of = from + k / OUTPUTS * TERMS;
            double bound = 1e-5 * (1 + fabs((double)a[k])); /* of sums in f32 */
            for (int t = 0; t < TERMS; t++) {
                const int first = t / BLOCK * BLOCK, left = TERMS - first;
                bound += fabs((double)of[t]) * half_step(row + first, left < BLOCK ? left : BLOCK);
            }
            if (!(fabs((double)a[k] - (double)b[k]) <= bound))
                fail_msg("output %d: %g became %g, the bound is %g", k, a[k], b[k], bound);
        }
        fac_tensor *all[] = { in, was, is };
        for (int k = 0; k < 3; k++) fac_tensor_free(all[k]);
        fac_graph_free(q);
        fac_calibrator_free(c);
        fac_graph_free(g);
    }
}

/* What one finds of another op's kernels in a plan. */
static int steps_by(const fac_graph *g, fac_tensor *x, const char *op) {
    enum { MOST = 64 };
    fac_step_stat steps[MOST];
    fac_program *p;
    fac_tensor *y = NULL;
    int found = 0;
    OK(fac_program_new(g, dev, NULL, &p, &err));
    fac_program_profile(p, true);
    OK(fac_program_run(p, &x, &y, &err));
    const size_t n = fac_program_steps(p, steps, MOST);
    for (size_t k = 0; k < n && k < MOST; k++) found += !strcmp(steps[k].op, op);
    fac_tensor_free(y);
    fac_program_free(p);
    return found;
}

static void static_models_run_in_integers(void **state) {
    (void)state;
    const fac_integers how = { .scheme = "int8:static" };
    fac_graph *g = network();
    fac_calibrator *c;
    fac_graph *q = made(g, &how, fac_shape(2, 3, 13, 11), NULL, &c);
    fac_tensor *x = drawn(fac_shape(1, 3, 13, 11), 1);
    assert_int_equal(steps_by(q, x, "qlinear_conv"), 3);
    assert_int_equal(steps_by(q, x, "qlinear_add"), 1);
    assert_int_equal(steps_by(q, x, "qlinear_matmul"), 1);
    assert_int_equal(steps_by(q, x, "conv2d"), 0);
    fac_tensor_free(x);
    fac_graph_free(q);
    fac_calibrator_free(c);
    fac_graph_free(g);
}

static void layers_can_stay_floats(void **state) {
    (void)state;
    const char *keep[] = { "first", "op:linear" };
    const fac_integers how = { .scheme = "int8:static", .nkeep = 2, .keep = keep };
    fac_graph *g = network();
    fac_calibrator *c;
    fac_graph *q = made(g, &how, fac_shape(1, 3, 13, 11), NULL, &c);
    fac_tensor *x = drawn(fac_shape(1, 3, 13, 11), 1);
    assert_true(fac_calibrator_layer(c, 0)->kept);
    assert_false(fac_calibrator_layer(c, 1)->kept);
    assert_true(fac_calibrator_layer(c, 3)->kept);
    assert_null(fac_calibrator_layer(c, 4));
    assert_int_equal(steps_by(q, x, "qlinear_conv"), 2);
    fac_tensor_free(x);
    fac_graph_free(q);
    fac_calibrator_free(c);
    fac_graph_free(g);
}

/* ---- ranges ---- */

static void steps_hold_their_range(void **state) {
    (void)state;
    for (int k = 0; k < 1000; k++) {
        const double lo = 10 * next_unit() - 7, hi = lo + 8 * next_unit();
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            const fac_step s = fac_step_between(lo, hi, is_signed);
            const int first = is_signed ? -128 : 0;
            assert_in_range(s.zero - first, 0, 255);
            const double low = (first - s.zero) * s.scale, high = (first + 255 - s.zero) * s.scale;
            assert_true(low <= fmin(lo, 0) + s.scale && high >= fmax(hi, 0) - s.scale);
        }
    }
    assert_true(fac_step_between(0, 0, false).scale == 1);
}

/* Few numbers far out: they are cut off, the others are not; even ones stay as they are. */
static void entropy_cuts_tails_alone(void **state) {
    (void)state;
    enum { N = 400000 };
    fac_tally *t, *even;
    fac_tensor *x = drawn(fac_shape(N), 1), *y = drawn(fac_shape(N), 1);
    float *to = (float *)(uintptr_t)fac_tensor_data(x);
    for (int k = 0; k < N; k++) to[k] = k % 2 ? 0 : to[k]; /* zeros say nothing of a range */
    to[0] = 40;
    OK(fac_tally_new(&t, &err));
    OK(fac_tally_new(&even, &err));
    OK(fac_tally_add(t, x, -1, &err));
    OK(fac_tally_add(even, y, -1, &err));
    const double limit = fac_entropy_limit(t), whole = fac_entropy_limit(even);
    if (limit < 0.9 || limit > 8) fail_msg("a tail of one number: %g", limit);
    if (whole < 0.9) fail_msg("even numbers: %g", whole);
    fac_tally_free(t);
    fac_tally_free(even);
    fac_tensor_free(x);
    fac_tensor_free(y);
}

/* ---- what is refused ---- */

static void refuse(const fac_graph *g, const fac_integers *how, const char *says) {
    fac_calibrator *c;
    assert_int_equal(fac_calibrator_new(g, dev, how, &c, &err), FAC_E_ARGUMENT);
    if (!strstr(err.text, says)) fail_msg("\"%s\" lacks \"%s\"", err.text, says);
    err = (fac_error){ 0 };
}

static void bad_wishes_are_refused(void **state) {
    (void)state;
    fac_graph *g = network(), *none = fac_graph_new(), *q;
    fac_calibrator *c;
    fac_output(none, "y", fac_relu(fac_input(none, "x", FAC_F32, fac_shape(3))));
    const char *keep[] = { "nobody" }, *all[] = { "*" };
    refuse(g, &(fac_integers){ .scheme = "int9" }, "no scheme \"int9\"");
    refuse(g, &(fac_integers){ .scheme = NULL }, "no scheme");
    refuse(g, &(fac_integers){ .scheme = "int8:static", .percentile = 7 }, "percentile");
    refuse(g, &(fac_integers){ .scheme = "int8:static", .nkeep = 1, .keep = keep }, "nobody");
    refuse(g, &(fac_integers){ .scheme = "int8:static", .nkeep = 1, .keep = all }, "nothing to");
    refuse(none, &(fac_integers){ .scheme = "int8:dynamic" }, "nothing to quantize: of 0 layers");
    OK(fac_calibrator_new(g, dev, &(fac_integers){ .scheme = "int8:static" }, &c, &err));
    assert_int_equal(fac_calibrator_finish(c, &q, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "needs samples"));
    fac_calibrator_free(c);
    fac_graph_free(g);
    fac_graph_free(none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemes_give_nearly_the_same),  cmocka_unit_test(four_bits_have_a_bound),
        cmocka_unit_test(static_models_run_in_integers), cmocka_unit_test(layers_can_stay_floats),
        cmocka_unit_test(steps_hold_their_range),        cmocka_unit_test(entropy_cuts_tails_alone),
        cmocka_unit_test(bad_wishes_are_refused),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
