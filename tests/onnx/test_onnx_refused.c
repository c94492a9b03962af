/* Importing models: what is refused, and in which words. */
#include "onnx_check.h"

/* ---- graphs that are none ---- */

static void wrong_graphs(void **state) {
    (void)state;
    bytes g = { 0 };
    in(&g, "x", "4");
    add(&g, named(node("Add", "x,b", "a"), "first"));
    add(&g, node("Relu", "a", "b"));
    out(&g, "b");
    refuses(g, FAC_E_FORMAT, "part of a cycle");
    g = (bytes){ 0 };
    add(&g, named(node("Relu", "y", "y"), "self"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "node \"self\" (Relu) is part of a cycle: its input \"y\"");
    g = (bytes){ 0 };
    add(&g, named(node("Relu", "ghost", "y"), "n1"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "node \"n1\" (Relu): its input \"ghost\" is not defined");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    add(&g, node("Relu", "x", "y"));
    add(&g, node("Neg", "x", "y"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "value \"y\" is defined twice");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    in(&g, "x", "4");
    out(&g, "x");
    refuses(g, FAC_E_FORMAT, "value \"x\" is defined twice");
    g = (bytes){ 0 };
    weights(&g, "w", "4", 4);
    weights(&g, "w", "4", 4);
    out(&g, "w");
    refuses(g, FAC_E_FORMAT, "value \"w\" is defined twice");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    weights(&g, "w", "4", 4);
    add(&g, node("Relu", "x", "w"));
    out(&g, "w");
    refuses(g, FAC_E_FORMAT, "value \"w\" is defined twice");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    refuses(g, FAC_E_FORMAT, "no outputs");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "value \"y\" is not defined");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    add(&g, node("", "x", "y"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "node \"y\" has no op type");
    g = (bytes){ 0 };
    w_sub(&g, INITIALIZER, w_tensor_f32("w", "3", (float[]){ 1, 2 }, 2));
    out(&g, "w");
    refuses(g, FAC_E_FORMAT, "initializer \"w\": 8 bytes of data where its type needs 12");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    bytes many = named(node("Relu", "x", "y"), "many");
    for (int k = 0; k < 2000; k++) w_attr_int(&many, "a", k);
    add(&g, many);
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "node \"many\" has 2000 attributes");
    refuses_with(w_model((bytes){ 0 }, 2, 7), NULL, FAC_E_UNSUPPORTED, "IR version 2");
    bytes nothing = { 0 };
    w_int(&nothing, 1, 8);
    refuses_with(nothing, NULL, FAC_E_FORMAT, "no graph");
    nothing = (bytes){ 0 };
    w_raw(&nothing, "\x89PNG\r\n\x1a\n", 8);
    refuses_with(nothing, NULL, FAC_E_FORMAT, "not an ONNX model");
}

/* ---- what is not ours ---- */

static void missing(void **state) {
    (void)state;
    bytes g = { 0 };
    in(&g, "x", "4");
    add(&g, named(node("Relu", "x", "a"), "fine"));
    add(&g, named(node("Frobnicate", "a", "b"), "here"));
    add(&g, node("Loopy", "b", "c"));
    add(&g, node("Frobnicate", "c", "d"));
    add(&g, domain(node("Foo", "d", "e"), "com.acme"));
    w_sub(&g, INPUT, w_value("z", COMPLEX, "4"));
    out(&g, "e");
    bytes m = w_model(g, 8, 17), again = { 0 };
    w_raw(&again, m.p, m.n);
    w_opset(&m, 8, "com.acme", 3);
    refuses_with(m, NULL, FAC_E_UNSUPPORTED,
                 "node \"here\": op Frobnicate of domain ai.onnx, opset 17, is not supported (2 "
                 "times); also missing: "
                 "Loopy (1), com.acme:Foo (1), element type complex64 (1)");
    refuses_with(again, NULL, FAC_E_FORMAT,
                 "node \"e\": op Foo is of domain \"com.acme\", which the model does not import");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    add(&g, node("Softmax", "x", "y"));
    out(&g, "y");
    refuses_with(w_model(g, 8, 0), NULL, FAC_E_FORMAT, "does not import");
    static const char *const kinds[] = { "sequence", "map", "opaque", "sparse tensor", "optional" };
    static const int fields[] = { 4, 5, 7, 8, 9 };
    for (int k = 0; k < 5; k++) {
        bytes value = { 0 }, type = { 0 };
        char text[64];
        g = (bytes){ 0 };
        w_sub(&type, fields[k], (bytes){ 0 });
        w_text(&value, 1, "x");
        w_sub(&value, 2, type);
        w_sub(&g, INPUT, value);
        out(&g, "x");
        snprintf(text, sizeof text, "input \"x\": type %s is not supported", kinds[k]);
        refuses(g, FAC_E_UNSUPPORTED, text);
    }
    g = (bytes){ 0 };
    in(&g, "x", "4");
    out(&g, "x");
    w_sub(&g, SPARSE, (bytes){ 0 });
    refuses(g, FAC_E_UNSUPPORTED, "sparse initializers");
}

/* Softmax before opset 13 takes all dims from an axis on for one: with any of them empty, and
 * known before the run or not. */
static void lines_of_nothing(void **state) {
    (void)state;
    static const char *const types[] = { "Softmax", "LogSoftmax", "Hardmax" }, *const dims[] = {
        "N,M,3", "2,0,3", "0,2,3", "2,2,3"
    };
    fac_device *cpu;
    fac_error err = { 0 };
    assert_int_equal(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &cpu, &err),
                     FAC_OK);
    for (int t = 0; t < 3; t++)
        for (int axis = 0; axis < 3; axis++)
            for (int64_t size = 0; size < 16; size++) {
                const fac_dims is = fac_shape(size % 4 / 2 * 2, size % 2 * 2, 3);
                bytes g = { 0 }, join = node("Concat", "x,x", "j"), n = node(types[t], "j", "y");
                in(&g, "x",
                   size / 4 == 1 && !is.d[1] && is.d[0]   ? dims[1]
                   : size / 4 == 2 && !is.d[0] && is.d[1] ? dims[2]
                   : size / 4 == 3 && is.d[0] && is.d[1]  ? dims[3]
                                                          : dims[0]);
                w_attr_int(&join, "axis", 0);
                w_attr_int(&n, "axis", axis);
                add(&g, join);
                add(&g, n);
                out(&g, "y");
                fac_graph *made = load_with(w_model(g, 6, 11), NULL);
                fac_tensor *x = NULL, *y = NULL;
                fac_program *p = NULL;
                assert_int_equal(fac_tensor_new(NULL, FAC_F32, is, &x, &err), FAC_OK);
                if (fac_program_new(made, cpu, NULL, &p, &err) || fac_program_run(p, &x, &y, &err))
                    fail_msg("%s along %d of [%d,%d,3]: %s", types[t], axis, (int)is.d[0],
                             (int)is.d[1], err.text);
                const fac_dims got = fac_tensor_type(y).dims,
                               want = fac_shape(2 * is.d[0], is.d[1], 3);
                assert_true(fac_dims_equal(&got, &want));
                fac_tensor_free(x);
                fac_tensor_free(y);
                fac_program_free(p);
                fac_graph_free(made);
            }
    fac_device_free(cpu);
}

/* An op at an opset that it does not have: found in the descriptors, so that the test stays true
 * when ops grow. */
static void wrong_opset(void **state) {
    (void)state;
    for (const fac_op *const *op = fac_ops; *op; op++)
        for (const fac_onnx *how = (*op)->onnx; how && how->type; how++)
            if (!strcmp(how->type, "Relu") && how->since > 1) {
                bytes g = { 0 };
                char text[64];
                in(&g, "x", "4");
                add(&g, named(node("Relu", "x", "y"), "r"));
                out(&g, "y");
                snprintf(text, sizeof text, "opset %d and later, not for opset %d", how->since,
                         how->since - 1);
                refuses_with(w_model(g, 8, how->since - 1), NULL, FAC_E_UNSUPPORTED, text);
                return;
            }
    skip();
}

static void attributes(void **state) {
    (void)state;
    bytes g = { 0 }, n = node("Relu", "x", "y");
    in(&g, "x", "4");
    w_attr_int(&n, "slope", 3);
    add(&g, n);
    out(&g, "y");
    refuses(g, FAC_E_UNSUPPORTED, "attribute slope of Relu is not supported");
    g = (bytes){ 0 }, n = node("LeakyRelu", "x", "y");
    in(&g, "x", "4");
    w_attr_int(&n, "alpha", 3);
    add(&g, named(n, "leak"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "leak: attribute alpha is of kind int, not float");
    g = (bytes){ 0 }, n = node("Softmax", "x", "y");
    in(&g, "x", "4,4");
    w_attr_int(&n, "axis", 1);
    w_attr_int(&n, "axes", 1);
    add(&g, n);
    out(&g, "y");
    refuses(g, FAC_E_UNSUPPORTED, "attribute axes of Softmax is not supported");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    n = node("LeakyRelu", "x", "y"); /* the oldest files do not say of which kind an attribute is */
    bytes a = w_attr("alpha", 0);
    w_f32(&a, 2, 0.5f);
    w_sub(&n, ATTRIBUTE, a);
    add(&g, n);
    out(&g, "y");
    runs(load(g), (float[]){ -4, -2, 0, 2 }, (float[]){ -2, -1, 0, 2 }, 4);
    g = (bytes){ 0 };
    in(&g, "x", "4");
    add(&g, named(node("Add", "x", "y"), "lonely"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "lonely: Add lacks its second input");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    in(&g, "z", "3");
    add(&g, named(node("Add", "x,z", "y"), "/deep/inside/Add"));
    out(&g, "y");
    refuses(g, FAC_E_SHAPE, "deep.inside.Add");
}

/* The file itself is found wanting, by name. */
static void files(void **state) {
    (void)state;
    fac_graph *g = NULL;
    fac_error err;
    assert_int_equal(fac_onnx_load("/nowhere/model.onnx", NULL, &g, &err), FAC_E_IO);
    assert_non_null(strstr(err.text, "/nowhere/model.onnx"));
    assert_int_equal(fac_onnx_load("/", NULL, &g, &err), FAC_E_IO);
    assert_int_equal(fac_onnx_load("/dev/null", NULL, &g, &err), FAC_E_IO);
    assert_null(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_nothing), cmocka_unit_test(wrong_graphs),
        cmocka_unit_test(missing),          cmocka_unit_test(wrong_opset),
        cmocka_unit_test(attributes),       cmocka_unit_test(files),
    };
    return cmocka_run_group_tests_name("onnx_refused", tests, NULL, NULL);
}
