/* Graphs: building, and errors of calls, inputs and leaves. */
#include "facula/onnx.h"
#include "graph_check.h"

static void build_and_ask(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3));
    fac_value *b = param(g, "b", fac_shape(3));
    fac_value *y = neg(add(x, b));
    fac_output(g, "y", y);
    assert_ok(g);
    assert_type(y, "f32[N,3]");
    assert_int_equal(fac_graph_inputs(g), 1);
    assert_int_equal(fac_graph_params(g), 1);
    assert_int_equal(fac_graph_outputs(g), 1);
    assert_ptr_equal(fac_graph_input(g, 0), x);
    assert_null(fac_graph_input(g, 1));
    assert_null(fac_graph_param(g, -1));
    assert_string_equal(fac_graph_output_name(g, 0), "y");
    assert_ptr_equal(fac_graph_find(g, "x"), x);
    assert_ptr_equal(fac_graph_find(g, "b"), b);
    assert_ptr_equal(fac_graph_find(g, "y"), y);
    assert_null(fac_graph_find(g, "z"));
    assert_non_null(fac_value_tensor(b));
    assert_null(fac_value_tensor(x));
    assert_int_equal(x->time, FAC_RUN);
    assert_int_equal(b->time, FAC_PREPARE);
    assert_int_equal(neg(b)->time, FAC_PREPARE);
    assert_int_equal(neg(fac_number(g, FAC_F32, 2))->time, FAC_COMPILE);
    assert_sound(g);
    fac_graph_free(g);
    fac_graph_free(NULL);
}

static void first_error_stays(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new(), *other = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 3)),
              *y = fac_input(g, "y", FAC_F32, fac_shape(2, 4));
    fac_graph_push(g, "encoder");
    fac_graph_push(g, "3");
    fac_value *bad = add(x, y);
    assert_ptr_equal(bad, g->poison);
    assert_int_equal(bad->leaf, FAC_POISON);
    const char *const text = "encoder.3: tadd: [2,3] and [2,4] cannot be broadcast: 3 against 4 (x "
                             "f32[2,3], y f32[2,4])";
    assert_error(g, FAC_E_SHAPE, text);
    /* everything takes poison, and the first error stays */
    assert_ptr_equal(neg(add(bad, x)), bad);
    assert_ptr_equal(neg(x), bad);
    fac_output(g, "out", bad);
    fac_update(bad, x);
    fac_replace(x, bad);
    fac_graph_sweep(g);
    fac_graph_pop(g);
    fac_graph_pop(g);
    fac_graph_pop(g);
    assert_ptr_equal(fac_value_other(bad, 7), bad);
    assert_int_equal(fac_value_type(bad).dtype, FAC_NONE);
    assert_error(g, FAC_E_SHAPE, text);
    fac_graph *copy = fac_graph_clone(g);
    assert_error(copy, FAC_E_SHAPE, text);
    /* whoever uses it says so, and says since when */
    fac_error err = { 0 };
    char words[sizeof err.text];
    fac_graph *const both[] = { g, copy };
    for (int k = 0; k < 2; k++) {
        assert_int_equal(fac_graph_write(both[k], stderr, &err), FAC_E_SHAPE);
        snprintf(words, sizeof words,
                 "%s (the graph is poisoned since then: fac_graph_write cannot use it)", text);
        assert_string_equal(err.text, words);
        assert_int_equal(fac_onnx_save(both[k], "/nonexistent/m.onnx", NULL, &err), FAC_E_SHAPE);
        snprintf(words, sizeof words,
                 "/nonexistent/m.onnx: %s (the graph is poisoned since then: fac_onnx_save cannot "
                 "use it)",
                 text);
        assert_string_equal(err.text, words);
    }
    assert_int_equal(fac_graph_write(NULL, stderr, &err), FAC_E_NOMEM);
    fac_graph_free(copy);
    /* poison of one graph in another one */
    fac_value *z = fac_input(other, "z", FAC_F32, fac_shape(2, 3));
    assert_ptr_equal(add(z, bad), other->poison);
    assert_error(other, FAC_E_ARGUMENT,
                 "tadd: input 1 belongs to another graph, which is poisoned: encoder.3: tadd: "
                 "[2,3] and [2,4] "
                 "cannot be broadcast: 3 against 4 (x f32[2,3], y f32[2,4])");
    fac_graph_free(other);
    fac_graph_free(g);
}

static void messages_say_where(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_graph_push(g, "head");
    assert_ptr_equal(fac_fail_graph(g, FAC_E_UNSUPPORTED, "no %s", "way"), g->poison);
    assert_error(g, FAC_E_UNSUPPORTED, "head: no way");
    fac_graph_free(g);
    assert_null(fac_fail_graph(NULL, FAC_E_UNSUPPORTED, "no way"));
    fac_error err = { 0 };
    assert_int_equal(fac_graph_check(NULL, &err), FAC_E_NOMEM);
    /* the list of operands does not push the message out, nor does a long message overflow */
    g = fac_graph_new();
    fac_value *v[200];
    for (int k = 0; k < 200; k++) v[k] = fac_number(g, FAC_F32, k);
    v[199] = fac_ints(g, fac_shape(1));
    assert_ptr_equal(fac_emit(&tcat, NULL, 200, v), g->poison);
    assert_int_equal(
        strncmp(g->error.text, "tcat: input 199 has another rank (x[0] f32[], x[1] f32[], ", 57),
        0);
    fac_graph_free(g);
}

static void inputs_are_checked(void **state) {
    (void)state;
    struct {
        const fac_op *op;
        int n, a, b;
        fac_status status;
        const char *text;
    } const cases[] = {
        { &tadd, 1, 0, 0, FAC_E_ARGUMENT, "tadd: input y is missing (x f32[2])" },
        { &tadd, 2, 0, -1, FAC_E_ARGUMENT, "tadd: input y is missing (x f32[2])" },
        { &tadd, 2, -1, 0, FAC_E_ARGUMENT, "tadd: input x is missing (y f32[2])" },
        { &tneg, 2, 0, 0, FAC_E_ARGUMENT,
          "tneg: 2 inputs were given, it takes at most 1 (x f32[2], ? f32[2])" },
        { &tneg, 1, 1, 0, FAC_E_DTYPE,
          "tneg: input x is bool, it takes floats or integers (x bool[2])" },
        { &tbias, 1, 2, 0, FAC_E_DTYPE, "tbias: input x is i64, it takes floats (x i64[2])" },
        { &tbias, 2, 0, 1, FAC_E_DTYPE,
          "tbias: input b is bool, it takes floats (x f32[2], b bool[2])" },
        { &tadd, 2, 0, 2, FAC_E_DTYPE,
          "tadd: its inputs are f32 and i64, they must have one element type (x f32[2], y "
          "i64[2])" },
        { &tcat, 2, 0, -1, FAC_E_ARGUMENT, "tcat: input x is missing (x[0] f32[2])" },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_graph *g = fac_graph_new();
        fac_value *v[] = { fac_input(g, "f", FAC_F32, fac_shape(2)),
                           fac_input(g, "b", FAC_BOOL, fac_shape(2)),
                           fac_input(g, "i", FAC_I64, fac_shape(2)) };
        fac_value *in[] = { cases[k].a < 0 ? NULL : v[cases[k].a],
                            cases[k].b < 0 ? NULL : v[cases[k].b] };
        assert_ptr_equal(fac_emit(cases[k].op, NULL, cases[k].n, in), g->poison);
        assert_error(g, cases[k].status, cases[k].text);
        fac_graph_free(g);
    }
    fac_graph *g = fac_graph_new();
    assert_ptr_equal(fac_emit_body(g, &tcat, NULL, 0, 0, NULL, NULL, NULL), g->poison);
    assert_error(g, FAC_E_ARGUMENT, "tcat: input x is missing");
    fac_graph_free(g);
    assert_null(fac_emit(&tadd, NULL, 2, (fac_value *[]){ NULL, NULL }));
    g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2));
    fac_value *y =
        fac_emit(&tbias, NULL, 1, &x); /* filled up with NULL: conv2d(x, w) is conv2d(x, w, -) */
    assert_int_equal(y->node->nin, 2);
    assert_null(y->node->in[1]);
    assert_ptr_equal(fac_apply(g, NULL, "", 0, NULL), g->poison);
    assert_error(g, FAC_E_ARGUMENT, "there is no such op");
    fac_graph_free(g);
}

static void leaves_are_checked(void **state) {
    (void)state;
    fac_tensor *t = zeros(FAC_F32, fac_shape(2));
    struct {
        int kind;
        const char *text;
    } const cases[] = {
        { 0, "parameter 'x': this name is taken" },
        { 1, "input 'b' has no element type" },
        { 2, "input 'c': f32[2,-1] is no shape: at most 8 dims, each a size or a fac_symbol of "
             "this graph, "
             "and fewer than 2^56 elements" },
        { 3, "input 'd': f32[4294967296,4294967296] is no shape: at most 8 dims, each a size or a "
             "fac_symbol of this graph, "
             "and fewer than 2^56 elements" },
        { 4, "parameter 'e' has no tensor" },
        { 5, "fac_update: there are two updates of 'p'" },
        { 6, "fac_update: 'x' is not a parameter" },
        { 7, "fac_update: 'p' is f32[2], its next value is f32[3]" },
        { 8, "there are two outputs named 'x'" },
        { 9, "output 'y' has no value" },
        { 10, "fac_graph_pop without fac_graph_push" },
        { 11, "fac_replace: f32[2] by f32[3]" },
        { 12, "fac_ints: 9 numbers; 0 to 8 are possible" },
        { 13, "there is no output 1 of tneg" },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2)), *p = fac_param(g, "p", t);
        fac_value *three = fac_input(g, "three", FAC_F32, fac_shape(3));
        fac_output(g, "x", x);
        switch (cases[k].kind) {
        case 0:
            fac_param(g, "x", t);
            break;
        case 1:
            fac_input(g, "b", FAC_NONE, scalar);
            break;
        case 2:
            fac_input(g, "c", FAC_F32, fac_shape(2, -1));
            break;
        case 3:
            fac_input(g, "d", FAC_F32, fac_shape(4294967296, 4294967296));
            break;
        case 4:
            fac_param(g, "e", NULL);
            break;
        case 5:
            fac_update(p, x);
            fac_update(p, x);
            break;
        case 6:
            fac_update(x, p);
            break;
        case 7:
            fac_update(p, three);
            break;
        case 8:
            fac_output(g, "x", p);
            break;
        case 9:
            fac_output(g, "y", NULL);
            break;
        case 10:
            fac_graph_pop(g);
            break;
        case 11:
            fac_replace(x, three);
            break;
        case 12:
            fac_ints(g, (fac_dims){ 9, { 0 } });
            break;
        case 13:
            fac_value_other(neg(x), 1);
            break;
        }
        fac_error err = { 0 };
        assert_int_not_equal(fac_graph_check(g, &err), FAC_OK);
        assert_string_equal(err.text, cases[k].text);
        fac_graph_free(g);
    }
    fac_tensor_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(build_and_ask),      cmocka_unit_test(first_error_stays),
        cmocka_unit_test(messages_say_where), cmocka_unit_test(inputs_are_checked),
        cmocka_unit_test(leaves_are_checked),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
