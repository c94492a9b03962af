/* Models out of models: parts, sizes, floats, names and orders; what runs afterwards gives what it
 * should. */
#include <math.h>
#include "device_check.h"

/* x -> a -> b -> y and, beside it, a -> c -> z; the weights are 4 x 4 of ones over 8. */
static const char *const text = "input x f32[N,4]\n"
                                "param w f32[4,4]\n"
                                "a = linear(x, w, -)\n"
                                "b = tanh(a)\n"
                                "c = relu(a)\n"
                                "d = mul(b, f32(1))\n"
                                "output y = d\n"
                                "output z = c\n";

static fac_graph *network(void) {
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    fac_graph *g = NULL;
    float w[16];
    OK(fac_graph_read(f, &g, &err));
    fclose(f);
    for (int i = 0; i < 16; i++) w[i] = (float)(i + 1) / 64;
    OK(fac_tensor_write(fac_value_tensor(fac_graph_find(g, "w")), w, sizeof w, &err));
    return g;
}

static void run4(const fac_graph *g, const float *x, int64_t n, float *y) {
    fac_program *p = NULL;
    fac_tensor *in = NULL, *out[4] = { NULL };
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(n, 4), &in, &err));
    OK(fac_tensor_write(in, x, (size_t)n * 16, &err));
    OK(fac_program_new(g, device, NULL, &p, &err));
    OK(fac_program_run(p, &in, out, &err));
    OK(fac_tensor_read(out[0], y, (size_t)n * 16, &err));
    for (int i = 0; i < 4; i++) fac_tensor_free(out[i]);
    fac_tensor_free(in);
    fac_program_free(p);
}

static void a_part(void **state) {
    (void)state;
    fac_graph *g = network(), *part = NULL;
    const char *in[] = { "a" }, *out[] = { "b" };
    const float x[8] = { 0, 0.5f, -1, 2, 3, -0.25f, 1, 0 };
    float y[8];
    OK(fac_graph_extract(g, 1, in, 1, out, &part, &err));
    assert_int_equal(fac_graph_inputs(part), 1);
    assert_string_equal(fac_value_name(fac_graph_input(part, 0)), "a");
    assert_int_equal(fac_graph_outputs(part), 1);
    assert_int_equal(fac_graph_params(part), 0); /* w is not needed any more */
    run4(part, x, 2, y);
    for (int i = 0; i < 8; i++) assert_true(fabsf(y[i] - tanhf(x[i])) < 1e-6f);
    fac_graph_free(part);
    part = NULL;
    OK(fac_graph_extract(g, 0, NULL, 1, (const char *[]){ "c" }, &part, &err));
    assert_string_equal(fac_value_name(fac_graph_input(part, 0)), "x");
    assert_int_equal(fac_graph_params(part), 1);
    fac_graph_free(part);
    part = NULL;
    assert_int_equal(fac_graph_extract(g, 1, (const char *[]){ "q" }, 1, out, &part, &err),
                     FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"q\""));
    assert_int_equal(fac_graph_extract(g, 1, (const char *[]){ "c" }, 1, out, &part, &err),
                     FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "no output needs"));
    assert_int_equal(fac_graph_extract(g, 0, NULL, 1, (const char *[]){ "q" }, &part, &err),
                     FAC_E_ARGUMENT);
    assert_null(part);
    fac_graph_free(g);
}

static void names(void **state) {
    (void)state;
    fac_graph *g = network(), *other = NULL, *again = NULL;
    OK(fac_graph_rename(g, "x", "image", &other, &err));
    assert_string_equal(fac_value_name(fac_graph_input(other, 0)), "image");
    assert_string_equal(fac_value_name(fac_graph_input(g, 0)), "x");
    OK(fac_graph_rename(other, "y", "scores", &again, &err));
    assert_string_equal(fac_graph_output_name(again, 0), "scores");
    assert_int_equal(fac_graph_rename(g, "x", "w", &other, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_graph_rename(g, "nobody", "v", &other, &err), FAC_E_ARGUMENT);
    fac_graph_free(again);
    fac_graph_free(other);
    fac_graph_free(g);
}

static void sizes_and_constants(void **state) {
    (void)state;
    fac_graph *g = network(), *sized = NULL, *small = NULL;
    fac_analysis *a = NULL, *b = NULL;
    OK(fac_graph_sized(g, 5, &sized, &err));
    assert_int_equal(fac_value_type(fac_graph_input(sized, 0)).dims.d[0], 5);
    OK(fac_graph_simplified(sized, &small, &err));
    OK(fac_analyze(sized, 1, &a, &err));
    OK(fac_analyze(small, 1, &b, &err));
    assert_int_equal(fac_analysis_totals(a).layers, 4);
    assert_int_equal(fac_analysis_totals(b).layers, 3); /* times one is gone */
    fac_analysis_free(a);
    fac_analysis_free(b);
    fac_graph_free(small);
    fac_graph_free(sized);
    fac_graph_free(g);
}

static void floats(void **state) {
    (void)state;
    fac_graph *g = network(), *wide = NULL, *half = NULL;
    OK(fac_graph_floats(g, FAC_F64, &wide, &err));
    assert_int_equal(fac_value_type(fac_graph_input(wide, 0)).dtype, FAC_F64);
    assert_int_equal(fac_value_type(fac_graph_output(wide, 0)).dtype, FAC_F64);
    double w[16];
    OK(fac_tensor_read(fac_value_tensor(fac_graph_find(wide, "w")), w, sizeof w, &err));
    for (int i = 0; i < 16; i++) assert_true(w[i] == (i + 1) / 64.0);
    OK(fac_graph_floats(g, FAC_F16, &half, &err));
    assert_int_equal(fac_value_type(fac_graph_find(half, "w")).dtype, FAC_F16);
    assert_int_equal(fac_graph_floats(g, FAC_I32, &wide, &err), FAC_E_DTYPE);
    fac_graph_free(half);
    fac_graph_free(wide);
    fac_graph_free(g);
}

/* Two wide branches that meet: one after the other needs half of what both at once need. */
static void orders(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new(), *other = NULL;
    fac_analysis *a = NULL, *b = NULL;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(8)), *wide[3], *sum = NULL;
    for (int k = 0; k < 3; k++)
        wide[k] = fac_tanh(fac_concat((fac_value *[]){ x, x, x, x, x, x, x, x }, 8, 0));
    for (int k = 0; k < 3; k++) {
        fac_value *narrow = fac_slice(wide[k], 0, 8 * k, 8 * k + 8, 1);
        sum = sum ? fac_add(sum, narrow) : narrow;
    }
    fac_output(g, "y", sum);
    OK(fac_graph_reordered(g, 1, &other, &err));
    OK(fac_analyze(g, 1, &a, &err));
    OK(fac_analyze(other, 1, &b, &err));
    assert_true(fac_analysis_totals(b).peak < fac_analysis_totals(a).peak);
    assert_int_equal(fac_analysis_totals(b).layers, fac_analysis_totals(a).layers);
    double peak;
    int *order = calloc((size_t)fac_analysis_totals(a).layers, sizeof *order);
    OK(fac_analysis_order(a, order, &peak, NULL, &err));
    assert_int_equal(fac_analysis_totals(b).peak, peak);
    free(order);
    fac_verdict v;
    OK(fac_verify(g, other, device, &(fac_verify_opts){ .mode = FAC_VERIFY_EXACT, .rounds = 1 }, &v,
                  &err));
    assert_int_equal(v.same, FAC_SAME);
    fac_analysis_free(a);
    fac_analysis_free(b);
    fac_graph_free(other);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_part), cmocka_unit_test(names),
                                        cmocka_unit_test(sizes_and_constants),
                                        cmocka_unit_test(floats), cmocka_unit_test(orders) };
    return cmocka_run_group_tests_name("edit", tests, open_device, close_device);
}
