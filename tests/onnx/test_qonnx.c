/* Quantizers of QONNX: the formulas of its package on numbers where they jump.
 * scripts/peers/check_qonnx.py compares with the package itself. */
#include "onnx_check.h"

#define QONNX "qonnx.custom_op.general"

static void number(bytes *g, const char *name, float x) {
    w_sub(g, INITIALIZER, w_tensor_f32(name, "", &x, 1));
}

static bytes model(bytes graph) {
    bytes m = w_model(graph, 8, 17);
    w_opset(&m, 8, QONNX, 1);
    return m;
}

static void signs(void **state) {
    (void)state;
    const float x[] = { -2, -0.25f, 0, 3 }, want[] = { -0.5f, -0.5f, 0.5f, 0.5f };
    bytes g = { 0 };
    in(&g, "x", "4");
    number(&g, "s", 0.5f);
    add(&g, domain(node("BipolarQuant", "x,s", "y"), QONNX));
    out(&g, "y");
    runs(load_with(model(g), NULL), x, want, 4);
}

static void integers(void **state) {
    (void)state;
    static const struct {
        int sign, narrow;
        float zero, bits, want[8];
    } cases[] = { { 1, 0, 0, 2, { -1, -1, -1, 0, 0, 0, 0.5f, 0.5f } },
                  { 1, 1, 0, 2, { -0.5f, -0.5f, -0.5f, 0, 0, 0, 0.5f, 0.5f } },
                  { 0, 0, 0, 2, { 0, 0, 0, 0, 0, 0, 1, 1.5f } },
                  { 0, 1, 1, 2, { -0.5f, -0.5f, -0.5f, -0.5f, 0, 0.5f, 0.5f, 0.5f } },
                  { 1, 0, 0, 1, { -0.5f, -0.5f, -0.5f, -0.5f, 0.5f, 0.5f, 0.5f, 0.5f } } };
    const float x[] = { -9, -1.25f, -0.75f, -0.25f, 0, 0.25f, 0.75f, 9 };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bytes g = { 0 }, n = domain(node(k % 2 ? "IntQuant" : "Quant", "x,s,z,b", "y"), QONNX);
        in(&g, "x", "8");
        number(&g, "s", 0.5f);
        number(&g, "z", cases[k].zero);
        number(&g, "b", cases[k].bits);
        w_attr_int(&n, "signed", cases[k].sign);
        w_attr_int(&n, "narrow", cases[k].narrow);
        add(&g, n);
        out(&g, "y");
        runs(load_with(model(g), NULL), x, cases[k].want, 8);
    }
}

static void thresholds(void **state) {
    (void)state;
    const float x[] = { -1, 0, 1, 2 }, t[] = { 0, 1, 1.5f }, want[] = { -2, -1.5f, -1, -0.5f };
    bytes g = { 0 }, n = domain(node("MultiThreshold", "u,t", "v"), QONNX);
    const int64_t up[] = { 1, 4 }, down[] = { 4 };
    in(&g, "x", "4");
    ints(&g, "up", "2", up, 2);
    ints(&g, "down", "1", down, 1);
    add(&g, node("Reshape", "x,up", "u"));
    w_sub(&g, INITIALIZER, w_tensor_f32("t", "1,3", t, 3));
    w_attr_f32(&n, "out_scale", 0.5f);
    w_attr_f32(&n, "out_bias", -2);
    add(&g, n);
    add(&g, node("Reshape", "v,down", "y"));
    out(&g, "y");
    runs(load_with(model(g), NULL), x, want, 4);
}

static void truncation(void **state) {
    (void)state;
    const float x[] = { -9, 3, 8, 23 }, want[] = { -3, 0, 2, 5 };
    bytes g = { 0 };
    in(&g, "x", "4");
    number(&g, "s", 1);
    number(&g, "z", 0);
    number(&g, "i", 8);
    number(&g, "o", 6);
    add(&g, domain(node("Trunc", "x,s,z,i,o", "y"), QONNX));
    out(&g, "y");
    runs(load_with(model(g), NULL), x, want, 4);
}

static void an_unknown_rounding_is_refused(void **state) {
    (void)state;
    bytes g = { 0 }, n = domain(node("Quant", "x,s,z,b", "y"), QONNX),
          a = w_attr("rounding_mode", 3);
    in(&g, "x", "4");
    number(&g, "s", 1);
    number(&g, "z", 0);
    number(&g, "b", 4);
    w_text(&a, 4, "SOMEHOW");
    w_sub(&n, 5, a);
    add(&g, n);
    out(&g, "y");
    refuses_with(model(g), NULL, FAC_E_UNSUPPORTED, "rounding_mode \"SOMEHOW\"");
}

/* Files of the model zoo: an older domain or finn's, no import of it, and integers for the zero
 * point and the bits. */
static void files_of_the_zoo(void **state) {
    (void)state;
    static const char *const domains[] = { "onnx.brevitas", "finn.custom_op.general", QONNX };
    const float x[] = { -9, -0.25f, 0.25f, 9 }, want[] = { -1, 0, 0, 0.5f };
    const float one[] = { -0.5f, -0.5f, 0.5f, 0.5f };
    for (size_t k = 0; k < 6; k++) {
        const int64_t zero = 0, bits = k < 3 ? 2 : 1;
        bytes g = { 0 };
        in(&g, "x", "4");
        number(&g, "s", 0.5f);
        ints(&g, "z", "", &zero, 1);
        ints(&g, "b", "", &bits, 1);
        add(&g, domain(node("Quant", "x,s,z,b", "y"), domains[k % 3]));
        out(&g, "y");
        runs(load_with(w_model(g, 8, 17), NULL), x, k < 3 ? want : one, 4);
    }
    bytes g = { 0 };
    in(&g, "x", "4");
    number(&g, "s", 0.5f);
    add(&g, domain(node("BipolarQuant", "x,s", "y"), "onnx.brevitas"));
    out(&g, "y");
    runs(load_with(w_model(g, 8, 17), NULL), x, one, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(signs),
                                        cmocka_unit_test(integers),
                                        cmocka_unit_test(thresholds),
                                        cmocka_unit_test(truncation),
                                        cmocka_unit_test(files_of_the_zoo),
                                        cmocka_unit_test(an_unknown_rounding_is_refused) };
    return cmocka_run_group_tests_name("qonnx", tests, NULL, NULL);
}
