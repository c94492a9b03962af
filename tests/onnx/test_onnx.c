/* Importing models: what becomes of initializers, inputs, names, types and shapes. */
#include "onnx_check.h"

/* ---- what becomes of what ---- */

static void names_and_types(void **state) {
    (void)state;
    fac_graph *g = load(small_graph());
    assert_int_equal(fac_graph_inputs(g), 1);
    assert_int_equal(fac_graph_params(g), 1);
    assert_int_equal(fac_graph_outputs(g), 1);
    assert_string_equal(fac_graph_output_name(g, 0), "y");
    fac_value *x = fac_graph_find(g, "x"), *h = fac_graph_find(g, "h"), *y = fac_graph_find(g, "y");
    assert_ptr_equal(x, fac_graph_input(g, 0));
    assert_ptr_equal(y, fac_graph_output(g, 0));
    assert_string_equal(fac_value_name(fac_graph_param(g, 0)), "w");
    assert_int_equal(fac_value_type(y).dims.d[0], fac_symbol(g, "N"));
    assert_string_equal(h->node->name, "block.Add"); /* of the file, '/' as the scopes have it */
    assert_string_equal(y->node->name, "y");         /* without a name of its own: of its output */
    fac_graph_free(g);
}

static void runs_right(void **state) {
    (void)state;
    const float x[] = { -5, -1, 0, 2 }, want[] = { 0, 1, 3, 6 };
    bytes g = { 0 };
    in(&g, "x", "4");
    weights(&g, "w", "4", 4);
    add(&g, node("Add", "x,w", "h"));
    add(&g, node("Relu", "h", "y"));
    out(&g, "y");
    runs(load(g), x, want, 4);
}

static void leaves(void **state) {
    (void)state;
    const int64_t shape[] = { 2, 2 };
    bytes g = { 0 };
    in(&g, "x", "4");
    in(&g, "w", "4"); /* IR 3 lists initializers among the inputs */
    weights(&g, "w", "4", 4);
    weights(&g, "scalar", "", 1);
    weights(&g, "unused", "4", 4);
    ints(&g, "shape", "2", shape, 2);
    add(&g, node("Mul", "x,w", "a"));
    add(&g, node("Add", "a,scalar", "b"));
    add(&g, node("Reshape", "b,shape", "y"));
    out(&g, "y");
    out(&g, "w");
    fac_graph *made = load_with(w_model(g, 3, 13), NULL);
    assert_int_equal(fac_graph_inputs(made), 1);
    assert_int_equal(fac_graph_params(made),
                     1); /* neither scalars nor integers, nor what nothing reads */
    fac_value *w = fac_graph_find(made, "w"), *scalar = fac_graph_find(made, "scalar"),
              *s = fac_graph_find(made, "shape");
    assert_int_equal(w->leaf, FAC_PARAM);
    assert_int_equal(scalar->leaf, FAC_CONST);
    assert_int_equal(s->leaf, FAC_CONST);
    assert_null(fac_graph_find(made, "unused"));
    assert_ptr_equal(fac_graph_output(made, 1), w);
    fac_type type = fac_value_type(fac_graph_output(made, 0));
    assert_int_equal(type.dims.n, 2);
    assert_int_equal(type.dims.d[1], 2);
    fac_graph_free(made);
}

static void any_order(void **state) {
    (void)state;
    const float x[] = { -5, -1, 0, 2 }, want[] = { 0, 0, 0, 2 };
    bytes g = { 0 };
    out(&g, "y");
    add(&g, node("Relu", "c", "y"));
    add(&g, node("Relu", "b", "c"));
    add(&g, node("Relu", "x", "a"));
    add(&g, node("Relu", "a", "b"));
    in(&g, "x", "4");
    runs(load(g), x, want, 4);
}

static void constants(void **state) {
    (void)state;
    static const float two[] = { 2, 3 };
    bytes g = { 0 }, n, a, packed = { 0 };
    for (int form = 0; form < 5; form++) {
        static const char *const outputs[] = { "tensor", "f", "fs", "i", "is" };
        n = node("Constant", "", outputs[form]);
        switch (form) {
        case 0:
            a = w_attr("value", 4), w_sub(&a, 5, w_tensor_f32(NULL, "2", two, 2));
            break;
        case 1:
            a = w_attr("value_float", 1), w_f32(&a, 2, 1.5f);
            break;
        case 2:
            a = w_attr("value_floats", 6), w_f32(&a, 7, 4), w_f32(&a, 7, 5);
            break;
        case 3:
            a = w_attr("value_int", 2), w_int(&a, 3, -7);
            break;
        default:
            a = w_attr("value_ints", 7), w_varint(&packed, 8), w_varint(&packed, (uint64_t)-9),
            w_sub(&a, 8, packed);
        }
        w_sub(&n, ATTRIBUTE, a);
        add(&g, n);
        out(&g, outputs[form]);
    }
    n = node("Constant", "", "s");
    a = w_attr("value_string", 3);
    w_text(&a, 4, "hello");
    w_sub(&n, ATTRIBUTE, a);
    add(&g, n);
    out(&g, "s");
    fac_graph *made = load(g);
    float f[2];
    int64_t i[2];
    char *s;
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "tensor")), f, 8, NULL),
                     FAC_OK);
    assert_true(f[0] == 2 && f[1] == 3);
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "f")), f, 4, NULL),
                     FAC_OK);
    assert_true(f[0] == 1.5f);
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "fs")), f, 8, NULL),
                     FAC_OK);
    assert_true(f[0] == 4 && f[1] == 5);
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "i")), i, 8, NULL),
                     FAC_OK);
    assert_int_equal(i[0], -7);
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "is")), i, 16, NULL),
                     FAC_OK);
    assert_true(i[0] == 8 && i[1] == -9);
    assert_int_equal(
        fac_tensor_read(fac_value_tensor(fac_graph_find(made, "s")), &s, sizeof s, NULL), FAC_OK);
    assert_string_equal(s, "hello");
    fac_graph_free(made);
}

/* ---- shapes ---- */

static void shapes(void **state) {
    (void)state;
    const char *inputs[] = { "a" };
    fac_dims dims[] = { fac_shape(3, 5) };
    fac_onnx_opts opts = { .n = 1, .inputs = inputs, .dims = dims };
    bytes g = { 0 };
    in(&g, "a", "N,M");
    in(&g, "b", "N,?");
    in(&g, "c", "-1,4");
    for (int k = 0; k < 3; k++) out(&g, (const char *[]){ "a", "b", "c" }[k]);
    bytes model = w_model(g, 8, 17), again = { 0 };
    w_raw(&again, model.p, model.n);
    fac_graph *made = load_with(model, NULL);
    fac_dims a = fac_value_type(fac_graph_input(made, 0)).dims,
             b = fac_value_type(fac_graph_input(made, 1)).dims;
    fac_dims c = fac_value_type(fac_graph_input(made, 2)).dims;
    assert_true(a.d[0] < 0 && a.d[0] == b.d[0] && a.d[1] < 0 && a.d[1] != a.d[0]);
    assert_true(b.d[1] < 0 && b.d[1] != a.d[1] && c.d[0] < 0 && c.d[0] != b.d[1]);
    assert_int_equal(c.d[1], 4);
    fac_graph_free(made);
    made = load_with(again, &opts); /* N is then 3 wherever it stands */
    b = fac_value_type(fac_graph_input(made, 1)).dims;
    assert_int_equal(b.d[0], 3);
    assert_true(b.d[1] < 0);
    fac_graph_free(made);
}

static bytes two_inputs(const char *a, const char *b) {
    bytes g = { 0 };
    in(&g, "a", a);
    in(&g, "b", b);
    add(&g, node("Relu", "a", "y"));
    out(&g, "y");
    return w_model(g, 8, 17);
}

/* Names that say nothing are none: each such dim is of a size of its own. */
static void nameless_dims(void **state) {
    (void)state;
    static const char *const names[] = { "=?,=?,N", "=?3,=?3,N", "=,=,N", "=*,=*,N", "=-,=_,N" };
    const char *inputs[] = { "a" };
    fac_dims dims[] = { fac_shape(2, 3, 4) };
    fac_onnx_opts opts = { .n = 1, .inputs = inputs, .dims = dims };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        fac_graph *g = load_with(two_inputs(names[k], names[k]), NULL);
        const fac_dims a = fac_value_type(fac_graph_input(g, 0)).dims,
                       b = fac_value_type(fac_graph_input(g, 1)).dims;
        assert_true(a.d[0] < 0 && a.d[1] < 0 && b.d[0] < 0 && b.d[1] < 0);
        assert_true(a.d[0] != a.d[1] && a.d[0] != b.d[0] && a.d[1] != b.d[1] && b.d[0] != b.d[1]);
        assert_true(a.d[2] == b.d[2]);
        fac_graph_free(g);
        g = load_with(two_inputs(names[k], names[k]), &opts);
        assert_true(fac_value_type(fac_graph_input(g, 1)).dims.d[0] < 0);
        assert_true(fac_value_type(fac_graph_input(g, 1)).dims.d[2] == 4);
        fac_graph_free(g);
    }
    fac_graph *g = load_with(two_inputs("=\xc3\xa9,=2,=x?", "=\xc3\xa9,=2,=x?"), NULL);
    const fac_dims a = fac_value_type(fac_graph_input(g, 0)).dims,
                   b = fac_value_type(fac_graph_input(g, 1)).dims;
    assert_true(fac_dims_equal(&a, &b));
    fac_graph_free(g);
}

static void given_shapes(void **state) {
    (void)state;
    const char *inputs[] = { "a", "b" }, *wrong[] = { "c" };
    fac_dims dims[] = { fac_shape(3, 5), fac_shape(4) };
    fac_onnx_opts opts = { .n = 2, .inputs = inputs, .dims = dims };
    refuses_with(two_inputs("N,M", "N"), &opts, FAC_E_SHAPE, "dim N is given as 3 and as 4");
    refuses_with(two_inputs("N", "N"), &opts, FAC_E_SHAPE,
                 "input \"a\" has 1 dims, its given shape has 2");
    refuses_with(two_inputs("N", "N"), &(fac_onnx_opts){ .n = 1, .inputs = wrong, .dims = dims },
                 FAC_E_ARGUMENT, "\"c\", which is no input");
    refuses_with(two_inputs(NULL, "N"), NULL, FAC_E_SHAPE, "input \"a\" has no shape");
    fac_graph *g = load_with(two_inputs(NULL, "M"), &opts);
    fac_dims a = fac_value_type(fac_graph_input(g, 0)).dims;
    assert_int_equal(a.n, 2);
    assert_int_equal(a.d[1], 5);
    fac_graph_free(g);
    refuses_with(two_inputs("-2", "N"), NULL, FAC_E_FORMAT, "input \"a\" has a dim of -2");
    refuses_with(two_inputs("1,1,1,1,1,1,1,1,1", "N"), NULL, FAC_E_UNSUPPORTED, "9 dims");
    refuses_with(two_inputs("4611686018427387904,4611686018427387904", "N"), NULL, FAC_E_SHAPE,
                 "'a'");
}

/* A value that a model returns twice is listed twice by PyTorch's exporter. */
static void listed_twice(void **state) {
    (void)state;
    bytes g = small_graph();
    out(&g, "y");
    fac_graph *twice = load(g);
    assert_int_equal(fac_graph_outputs(twice), 1);
    assert_string_equal(fac_graph_output_name(twice, 0), "y");
    fac_graph_free(twice);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_types), cmocka_unit_test(runs_right),
        cmocka_unit_test(leaves),          cmocka_unit_test(any_order),
        cmocka_unit_test(constants),       cmocka_unit_test(shapes),
        cmocka_unit_test(given_shapes),    cmocka_unit_test(nameless_dims),
        cmocka_unit_test(listed_twice),
    };
    return cmocka_run_group_tests_name("onnx", tests, NULL, NULL);
}
