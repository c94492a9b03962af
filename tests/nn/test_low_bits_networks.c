/* Schemes of few bits for whole networks: what is quantized, what a step learns, and the same
 * network without quantizers. */
#include "low_bits_check.h"

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
        cmocka_unit_test(first_and_last_layers_stay_and_patterns_choose),
        cmocka_unit_test(what_is_no_scheme_is_refused),
        cmocka_unit_test(a_step_moves_bases_to_the_fit),
        cmocka_unit_test(networks_without_quantizers_give_the_same),
    };
    return cmocka_run_group_tests_name("low bits of networks", tests, open_device, close_device);
}
