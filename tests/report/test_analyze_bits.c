/* In how few bits a layer's operands lie, whoever made them few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"

static fac_error err;

typedef struct line {
    const char *text;
    int weight, input;
} line;

/* A 1x1 convolution of 4 channels to 2 on 3x5 pixels: 120 multiply-adds. */
static const line lines[] = {
    { "q = quantize_basis(x, u) positive\nr = quantize_basis(w, v)\n", 2, 2 },
    { "q = binarize(x)\nr = binarize(w)\n", 1, 1 },
    { "q = relu(x)\nr = binarize(w)\n", 1, 32 },
    { "q = bipolar_quant(x, one)\nr = quantize_basis(w, v)\n", 2, 1 },
    { "c = clip(x, zero, one)\nm = mul(c, steps)\ns = round(m)\nq = div(s, steps)\n"
      "r = binarize(w)\n",
      1, 4 },
    { "a = greater(x, one)\nq = where(a, one, zero)\nr = binarize(w)\n", 1, 1 },
    { "a = binarize(x)\nd = add(x, one)\nb = binarize(d)\ne = mul(b, steps)\n"
      "q = add(a, e)\nr = binarize(w)\n",
      1, 2 },
    /* a residual add of two others has no few levels */
    { "a = binarize(x)\nb = binarize(z)\nq = add(a, b)\nr = binarize(w)\n", 1, 32 },
    { "q = quantize_basis(x, u) positive\na = binarize(w)\nb = binarize(o)\nr = add(a, b)\n", 2,
      2 },
    { "q = relu(x)\nr = relu(w)\n", 32, 32 },
};

static fac_graph *graph_of(const char *middle) {
    char text[2000];
    snprintf(text, sizeof text,
             "input x f32[1,4,3,5]\ninput z f32[1,4,3,5]\nparam w f32[2,4,1,1]\n"
             "param o f32[2,4,1,1]\nparam u f32[2]\nparam v f32[2,2]\nconst one f32(1)\n"
             "const zero f32(0)\nconst steps f32(15)\nconst none u8(0)\nconst nil i8(0)\n%sy = "
             "conv2d(q, r)\noutput y = y\n",
             middle);
    FILE *f = fmemopen(text, strlen(text), "r");
    fac_graph *g = NULL;
    if (fac_graph_read(f, &g, &err)) fail_msg("%s\n%s", err.text, text);
    fclose(f);
    return g;
}

static const fac_layer *convolution(const fac_analysis *a) {
    for (int i = 0; fac_analysis_layer(a, i); i++)
        if (!strcmp(fac_analysis_layer(a, i)->op, "conv2d")) return fac_analysis_layer(a, i);
    fail_msg("no convolution");
    return NULL;
}

static void quantizers_say_how_few(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        fac_graph *g = graph_of(lines[k].text);
        fac_analysis *a = NULL;
        if (fac_analyze(g, 1, &a, &err)) fail_msg("%s", err.text);
        const fac_layer *l = convolution(a);
        const fac_totals t = fac_analysis_totals(a);
        const bool few = lines[k].input <= 4 && lines[k].weight <= 4;
        if (l->weight_bits != lines[k].weight || l->input_bits != lines[k].input)
            fail_msg("%sw%da%d, expected w%da%d", lines[k].text, l->weight_bits, l->input_bits,
                     lines[k].weight, lines[k].input);
        assert_true(l->binary_ops == (few ? 120.0 * lines[k].weight * lines[k].input : 0));
        assert_true(t.binary_ops == l->binary_ops && t.binary_macs == (few ? 120 : 0));
        assert_true(t.integer_macs == 0);
        fac_analysis_free(a);
        fac_graph_free(g);
    }
}

/* Sums that share their operands have more ways through them than anybody can go. */
static void shared_sums_end(void **state) {
    (void)state;
    char text[1600] = "q = relu(x)\ns0 = relu(w)\ns1 = relu(o)\n";
    for (int k = 2; k < 50; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "s%d = add(s%d, s%d)\n", k, k - 1,
                 k - 2);
    strcat(text, "r = add(s49, s49)\n");
    fac_graph *g = graph_of(text);
    fac_analysis *a = NULL;
    if (fac_analyze(g, 1, &a, &err)) fail_msg("%s", err.text);
    assert_int_equal(convolution(a)->weight_bits, 32);
    fac_analysis_free(a);
    fac_graph_free(g);
}

/* Weights of a file that have few levels are packed in few bits; others are not. */
static void weights_of_files_are_counted(void **state) {
    (void)state;
    enum { FILTERS = 2, EACH = 64 };
    static const int expected[] = { 1, 2, 2, 4, 32 };
    static const int levels[] = { 2, 3, 4, 16, 17 };
    for (int k = 0; k < 5; k++) {
        float x[FILTERS * EACH];
        for (int i = 0; i < FILTERS * EACH; i++) x[i] = (float)(i % levels[k]) * 0.37f - 1;
        fac_graph *g = fac_graph_new();
        fac_tensor *t = NULL;
        fac_analysis *a = NULL;
        if (fac_tensor_borrow(FAC_F32, fac_shape(FILTERS, EACH), NULL, x, NULL, NULL, &t, &err))
            fail_msg("%s", err.text);
        fac_value *in = fac_input(g, "x", FAC_F32, fac_shape(3, EACH));
        fac_output(g, "y", fac_linear(fac_binarize(in), fac_param(g, "w", t), NULL));
        if (fac_analyze(g, 1, &a, &err)) fail_msg("%s", err.text);
        const fac_layer *l = fac_analysis_layer(a, 1);
        assert_int_equal(l->weight_bits, expected[k]);
        assert_int_equal(l->input_bits, 1);
        assert_true(l->spared_bits == FILTERS * EACH * (32.0 - expected[k]));
        fac_analysis_free(a);
        fac_graph_free(g);
        fac_tensor_free(t);
    }
}

static void bytes_are_integers(void **state) {
    (void)state;
    fac_graph *g =
        graph_of("i = quantize_linear(x, one, none)\nq = dequantize_linear(i, one, none)\n"
                 "k = quantize_linear(w, one, nil)\nr = dequantize_linear(k, one, nil)\n");
    fac_analysis *a = NULL;
    if (fac_analyze(g, 1, &a, &err)) fail_msg("%s", err.text);
    const fac_totals t = fac_analysis_totals(a);
    assert_true(t.integer_macs == 120 && t.binary_macs == 0 && t.binary_ops == 0);
    fac_analysis_free(a);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(quantizers_say_how_few),
                                        cmocka_unit_test(shared_sums_end),
                                        cmocka_unit_test(weights_of_files_are_counted),
                                        cmocka_unit_test(bytes_are_integers) };
    return cmocka_run_group_tests_name("bits", tests, NULL, NULL);
}
