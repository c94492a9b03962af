/* lq:wWaA without training: bases that fit, what stays floats, files of the result, and what is
 * refused. */
#include "lq_net.h"

/* ---- tests ---- */

static void levels_of_weights_are_found(void **state) {
    (void)state;
    static const char *const schemes[] = { NULL, "lq:w1a2", "lq:w2a2" };
    for (int bits = 1; bits <= 2; bits++) {
        fac_calibrator *c;
        fac_graph *g = network(1 << bits, true), *q = quantized(g, schemes[bits], &c);
        for (int k = 0; k < 4; k++) {
            const fac_integer_layer *l = fac_calibrator_layer(c, k);
            assert_int_equal(l->kept, k == 0 || k == 3);
            if (l->kept) continue;
            assert_true(l->weight_sqnr > 80);
            assert_true(l->bytes == CHANNELS * bits * (CHANNELS * 9.0 / 8 + (double)sizeof(float)));
        }
        assert_int_equal(quantizers(q, false), 2);
        assert_int_equal(quantizers(q, true), 2);
        fac_graph_free(q);
        fac_calibrator_free(c);
        fac_graph_free(g);
    }
}

/* The best scale of signs is the mean of |w|. */
static void one_bit_is_as_good_as_can_be(void **state) {
    (void)state;
    fac_calibrator *c;
    fac_graph *g = network(0, true), *q = quantized(g, "lq:w1a32", &c);
    const float *w = NULL;
    double signal = 0, error = 0;
    for (int k = 0; k < fac_graph_params(g); k++)
        if (!strcmp(fac_value_name(fac_graph_param(g, k)), "second.weight"))
            w = fac_tensor_data(fac_graph_param(g, k)->tensor);
    assert_non_null(w);
    for (int r = 0; r < CHANNELS; r++) {
        double squares = 0, sum = 0;
        for (int k = 0; k < CHANNELS * 9; k++) {
            squares += (double)*w * *w;
            sum += fabs((double)*w++);
        }
        signal += squares;
        error += squares - sum * sum / (CHANNELS * 9);
    }
    assert_true(fabs(fac_calibrator_layer(c, 1)->weight_sqnr - 10 * log10(signal / error)) < 0.01);
    assert_int_equal(quantizers(q, true), 0);
    fac_graph_free(q);
    fac_calibrator_free(c);
    fac_graph_free(g);
}

static void more_bits_lose_less(void **state) {
    (void)state;
    static const char *const schemes[] = { "lq:w1a1", "lq:w2a2", "lq:w3a3", "lq:w4a4" };
    fac_graph *g = network(0, true);
    double before = -100;
    for (int k = 0; k < 4; k++) {
        const uint64_t here = at;
        fac_calibrator *c;
        fac_graph *q = quantized(g, schemes[k], &c);
        const double now = fac_calibrator_layer(c, 2)->output_sqnr;
        assert_true(now > before + 2);
        before = now;
        at = here;
        fac_graph_free(q);
        fac_calibrator_free(c);
    }
    fac_graph_free(g);
}

static void inputs_below_zero_stay_floats(void **state) {
    (void)state;
    fac_calibrator *c;
    fac_graph *g = network(0, false), *q = quantized(g, "lq:w2a2", &c);
    assert_int_equal(quantizers(q, false), 2);
    assert_int_equal(quantizers(q, true), 1);
    fac_graph_free(q);
    fac_calibrator_free(c);
    fac_graph_free(g);
}

/* ---- products ---- */

enum { FEATURES = 24, FORMS = 4 };

/* w[o,i], or its transpose. */
static fac_value *product_weight(fac_graph *g, const char *name, const fac_tensor *w,
                                 bool columns) {
    const float *from = fac_tensor_data(w);
    fac_tensor *t;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(FEATURES, FEATURES), &t, &err));
    float *to = (float *)(uintptr_t)fac_tensor_data(t);
    for (int o = 0; o < FEATURES; o++)
        for (int i = 0; i < FEATURES; i++)
            to[columns ? i * FEATURES + o : o * FEATURES + i] = from[o * FEATURES + i];
    fac_value *v = fac_param(g, name, t);
    fac_tensor_free(t);
    return v;
}

/* x w' + b as a linear layer, a gemm of rows, one of columns, a matmul and an add. */
static fac_value *product(fac_value *x, fac_value *w, fac_value *b, int form) {
    switch (form) {
    case 0:
        return fac_linear(x, w, b);
    case 1:
        return fac_gemm(x, w, b, &(fac_gemm_opts){ .trans_b = true });
    case 2:
        return fac_gemm(x, w, b, NULL);
    default:
        return fac_add(fac_matmul(x, w), b);
    }
}

/* Three products; the one in the middle has this form. */
static fac_graph *products(fac_tensor *const w[3], fac_tensor *b, int form, bool sequences) {
    fac_graph *g = fac_graph_new();
    const fac_dims rows = fac_shape(6, FEATURES), both = fac_shape(2, 3, FEATURES);
    fac_value *x = fac_input(g, "x", FAC_F32, sequences ? both : rows);
    x = fac_relu(fac_linear(x, product_weight(g, "a", w[0], false), NULL));
    fac_value *middle = product_weight(g, "b", w[1], form > 1);
    x = fac_relu(product(x, middle, fac_param(g, "bias", b), form));
    fac_output(g, "y", fac_linear(x, product_weight(g, "c", w[2], false), NULL));
    OK(fac_graph_check(g, &err));
    return g;
}

static fac_tensor *answer(const fac_graph *g, fac_tensor *x) {
    fac_program *p;
    fac_tensor *y = NULL;
    OK(fac_program_new(g, dev, NULL, &p, &err));
    OK(fac_program_run(p, &x, &y, &err));
    fac_program_free(p);
    return y;
}

/* Whatever form a product has, its weight gets the same levels and its result is the same. */
static void products_of_all_forms_are_taken(void **state) {
    (void)state;
    const fac_dims square = fac_shape(FEATURES, FEATURES);
    fac_tensor *w[3] = { weights(square, 0), weights(square, 0), weights(square, 0) };
    fac_tensor *b = weights(fac_shape(FEATURES), 0), *given = weights(fac_shape(6, FEATURES), 0);
    float first[6 * FEATURES];
    double sqnr = 0;
    for (int form = 0; form < FORMS; form++)
        for (int sequences = 0; sequences < 2; sequences++) {
            if (sequences && (form == 1 || form == 2)) continue; /* gemm has two dims */
            fac_calibrator *c;
            fac_graph *g = products(w, b, form, sequences), *q;
            fac_tensor *x;
            const fac_dims rows = fac_shape(6, FEATURES), both = fac_shape(2, 3, FEATURES);
            OK(fac_tensor_new(NULL, FAC_F32, sequences ? both : rows, &x, &err));
            memcpy((float *)(uintptr_t)fac_tensor_data(x), fac_tensor_data(given),
                   6 * FEATURES * sizeof(float));
            OK(fac_calibrator_new(g, dev, &(fac_integers){ .scheme = "lq:w2a2" }, &c, &err));
            OK(fac_calibrator_add(c, &x, &err));
            OK(fac_calibrator_finish(c, &q, &err));
            assert_int_equal(quantizers(q, false), 1);
            assert_int_equal(quantizers(q, true), 1);
            fac_tensor *y = answer(q, x);
            const float *is = fac_tensor_data(y);
            if (!form && !sequences) {
                memcpy(first, is, sizeof first);
                sqnr = fac_calibrator_layer(c, 1)->weight_sqnr;
            }
            assert_true(fac_calibrator_layer(c, 1)->weight_sqnr == sqnr);
            for (int i = 0; i < 6 * FEATURES; i++)
                if (fabsf(is[i] - first[i]) > 1e-4f * (1 + fabsf(first[i])))
                    fail_msg("form %d: y[%d] is %g, not %g", form, i, (double)is[i],
                             (double)first[i]);
            fac_tensor_free(y);
            fac_tensor_free(x);
            fac_graph_free(q);
            fac_calibrator_free(c);
            fac_graph_free(g);
        }
    for (int k = 0; k < 3; k++) fac_tensor_free(w[k]);
    fac_tensor_free(given);
    fac_tensor_free(b);
}

static void files_are_the_same_network(void **state) {
    (void)state;
    char path[64];
    fac_calibrator *c;
    fac_graph *g = network(0, true), *q = quantized(g, "lq:w2a2", &c), *packed, *plain;
    snprintf(path, sizeof path, "lq.%ld.fac", (long)getpid());
    OK(fac_packed_save(q, path, NULL, &err));
    OK(fac_packed_load(path, &packed, &err));
    OK(fac_graph_dequantize(q, &plain, &err));
    fac_tensor *x = sample();
    const fac_graph *const same[] = { packed, plain };
    fac_tensor *want = answer(q, x);
    const fac_type t = fac_tensor_type(want);
    for (int k = 0; k < 2; k++) {
        fac_tensor *y = answer(same[k], x);
        const float *a = fac_tensor_data(want), *b = fac_tensor_data(y);
        for (int64_t i = 0; i < fac_dims_count(&t.dims); i++)
            assert_true(fabsf(a[i] - b[i]) <= 1e-4f * (1 + fabsf(a[i])));
        fac_tensor_free(y);
    }
    remove(path);
    fac_tensor_free(want);
    fac_tensor_free(x);
    fac_graph_free(plain);
    fac_graph_free(packed);
    fac_graph_free(q);
    fac_calibrator_free(c);
    fac_graph_free(g);
}

static void refuse(const fac_graph *g, const char *scheme, const char *says) {
    fac_calibrator *c;
    const fac_integers how = { .scheme = scheme };
    assert_int_equal(fac_calibrator_new(g, dev, &how, &c, &err), FAC_E_ARGUMENT);
    if (!strstr(err.text, says)) fail_msg("\"%s\" lacks \"%s\"", err.text, says);
}

static void bad_schemes_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = { "lq",      "lq:",      "lq:w2",    "lq:w0a2", "lq:w5a2",
                                         "lq:w2a5", "lq:w2a2x", "lq:w2a33", "lq:w2a",  "LQ:w2a2" };
    fac_calibrator *c;
    fac_graph *g = network(0, true), *out, *small = fac_graph_new();
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        refuse(g, wrong[k], "W and A from 1 to 4");
    OK(fac_calibrator_new(g, dev, &(fac_integers){ .scheme = "lq:w2a2" }, &c, &err));
    assert_int_equal(fac_calibrator_finish(c, &out, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "lq:w2a2 needs samples"));
    fac_calibrator_free(c);
    fac_value *x = fac_input(small, "x", FAC_F32, fac_shape(IMAGES, 3, SIDE, SIDE));
    fac_output(small, "y", conv(small, conv(small, x, "a", 3, 0), "b", CHANNELS, 0));
    refuse(small, "lq:w2a2", "first and the last layer");
    fac_graph_free(small);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_of_weights_are_found),
        cmocka_unit_test(one_bit_is_as_good_as_can_be),
        cmocka_unit_test(more_bits_lose_less),
        cmocka_unit_test(inputs_below_zero_stay_floats),
        cmocka_unit_test(products_of_all_forms_are_taken),
        cmocka_unit_test(files_are_the_same_network),
        cmocka_unit_test(bad_schemes_are_refused),
    };
    return cmocka_run_group_tests_name("lq", tests, open_device, close_device);
}
