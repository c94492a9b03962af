/* Sequences, optionals and what else is settled while a file is read: models as bytes, what becomes
 * of them, what is refused. */
#include <stdio.h>
#include "facula/onnx.h"
#include "onnx_check.h"

static void number(bytes *g, const char *name, int64_t x) { ints(g, name, "", &x, 1); }

/* y = ConcatFromSequence of what `last` makes of s, the sequence of a, b and c. */
static bytes three(const char *type, const char *more) {
    char in_[64];
    bytes g = { 0 };
    in(&g, "a", "2");
    weights(&g, "b", "1", 1);
    weights(&g, "c", "3", 3);
    number(&g, "one", 1);
    number(&g, "last", -1);
    number(&g, "far", 9);
    add(&g, node("SequenceConstruct", "a,b,c", "s"));
    snprintf(in_, sizeof in_, "s%s%s", *more ? "," : "", more);
    add(&g, node(type, in_, "t"));
    bytes n = node("ConcatFromSequence", "t", "y");
    w_attr_int(&n, "axis", 0);
    add(&g, n);
    out(&g, "y");
    return g;
}

static void elements_go_where_they_should(void **state) {
    static const float x[] = { 7, 8, 0, 0, 0, 0 };
    static const float erased[] = { 7, 8, 1, 2, 3 }, last[] = { 7, 8, 1 },
                       put[] = { 7, 8, 7, 8, 1, 1, 2, 3 };
    (void)state;
    fac_device *d = NULL;
    fac_error err = { 0 };
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    const struct {
        const char *type, *more;
        const float *want;
        int n;
    } cases[] = { { "SequenceErase", "one", erased, 5 },
                  { "SequenceErase", "", last, 3 },
                  { "SequenceInsert", "a,one", put, 8 } };
    for (size_t k = 0; k < 3; k++) {
        fac_graph *g = load(three(cases[k].type, cases[k].more));
        fac_program *p = NULL;
        fac_tensor *in_ = NULL, *y = NULL;
        assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(2), NULL, x, NULL, NULL, &in_, &err),
                         FAC_OK);
        if (fac_program_new(g, d, NULL, &p, &err) || fac_program_run(p, &in_, &y, &err))
            fail_msg("%s", err.text);
        assert_int_equal(fac_tensor_type(y).dims.d[0], cases[k].n);
        assert_memory_equal(fac_tensor_data(y), cases[k].want, (size_t)cases[k].n * sizeof(float));
        fac_tensor_free(in_);
        fac_tensor_free(y);
        fac_program_free(p);
        fac_graph_free(g);
    }
    fac_device_free(d);
}

static void false_positions_are_told(void **state) {
    (void)state;
    refuses(three("SequenceErase", "far"), FAC_E_ARGUMENT, "position 9 of 3 elements");
    refuses(three("SequenceInsert", "a,far"), FAC_E_ARGUMENT, "position 9 of 3 elements");
    refuses(three("Relu", ""), FAC_E_DTYPE, "Relu cannot take a sequence");
}

/* An input that is a sequence of f32. */
static bytes sequence_input(const char *name) {
    bytes elem = { 0 }, tensor = { 0 }, seq = { 0 }, type = { 0 }, v = { 0 };
    w_int(&elem, 1, F32);
    w_sub(&tensor, 1, elem);
    w_sub(&seq, 1, tensor);
    w_sub(&type, 4, seq);
    w_text(&v, 1, name);
    w_sub(&v, 2, type);
    return v;
}

static bytes given_sequence(void) {
    bytes g = { 0 };
    w_sub(&g, INPUT, sequence_input("s"));
    add(&g, node("SequenceInsert", "s,w", "y"));
    weights(&g, "w", "2", 2);
    out(&g, "y");
    return w_model(g, 8, 17);
}

static void sequences_are_inputs_and_outputs(void **state) {
    const fac_type types[] = { { FAC_F32, fac_shape(2) }, { FAC_F32, fac_shape(3) } };
    const fac_onnx_sequence s = { "s", 2, types, true };
    (void)state;
    fac_graph *g = load_with(given_sequence(), &(fac_onnx_opts){ .nlists = 1, .lists = &s });
    assert_int_equal(fac_graph_inputs(g), 2);
    assert_int_equal(fac_graph_outputs(g), 3);
    assert_string_equal(fac_graph_output_name(g, 2), "y.2");
    assert_string_equal(fac_graph_note(g, "list.y"), "3");
    fac_graph_free(g);
    refuses_with(given_sequence(), NULL, FAC_E_UNSUPPORTED, "without its length");
}

static bytes two_opsets(int64_t a, int64_t b) {
    bytes g = { 0 };
    in(&g, "x", "2");
    add(&g, node("Relu", "x", "y"));
    out(&g, "y");
    bytes m = w_model(g, 8, a);
    if (b) w_opset(&m, 8, "ai.onnx", b);
    return m;
}

static void opsets_must_agree_and_be_known(void **state) {
    (void)state;
    fac_graph_free(load_with(two_opsets(17, 17), NULL));
    fac_graph_free(load_with(two_opsets(28, 0), NULL));
    refuses_with(two_opsets(17, 6), NULL, FAC_E_FORMAT, "opset 17 and opset 6 of domain ai.onnx");
    refuses_with(two_opsets(29, 0), NULL, FAC_E_UNSUPPORTED, "28 is the newest");
}

/* y = x + w, where w is an initializer and an input. */
static bytes with_default(void) {
    bytes g = { 0 };
    in(&g, "x", "2");
    in(&g, "w", "2");
    weights(&g, "w", "2", 2);
    add(&g, node("Add", "x,w", "y"));
    out(&g, "y");
    return w_model(g, 8, 17);
}

static void initializers_may_be_inputs(void **state) {
    const char *names[] = { "w", "nobody" };
    (void)state;
    fac_graph *g = load_with(with_default(), NULL);
    assert_int_equal(fac_graph_inputs(g), 1);
    fac_graph_free(g);
    g = load_with(with_default(), &(fac_onnx_opts){ .noverridden = 2, .overridden = names });
    assert_int_equal(fac_graph_inputs(g), 2);
    fac_graph_free(g);
}

/* Far more inputs and outputs than any array on a stack has room for: Concat of all, Split into as
 * many. */
static void many_inputs_and_outputs(void **state) {
    enum { MANY = 300 };
    char names[MANY * 6] = "", outs[MANY * 6] = "", name[8];
    bytes g = { 0 };
    (void)state;
    for (int k = 0; k < MANY; k++) {
        snprintf(name, sizeof name, "x%d", k);
        in(&g, name, "1");
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", k ? "," : "", name);
        snprintf(outs + strlen(outs), sizeof outs - strlen(outs), "%sy%d", k ? "," : "", k);
    }
    bytes join = node("Concat", names, "all"), split = node("Split", "all", outs);
    w_attr_int(&join, "axis", 0);
    w_attr_int(&split, "num_outputs", MANY);
    add(&g, join);
    add(&g, node("Sum", names, "sum"));
    add(&g, split);
    for (int k = 0; k < MANY; k++) {
        snprintf(name, sizeof name, "y%d", k);
        out(&g, name);
    }
    out(&g, "sum");
    fac_graph *graph = load_with(w_model(g, 8, 18), NULL);
    fac_device *d = NULL;
    fac_program *p = NULL;
    fac_error err = { 0 };
    static float x[MANY];
    static fac_tensor *from[MANY], *to[MANY + 1];
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    for (int k = 0; k < MANY; k++) {
        x[k] = (float)k;
        assert_int_equal(
            fac_tensor_borrow(FAC_F32, fac_shape(1), NULL, &x[k], NULL, NULL, &from[k], &err),
            FAC_OK);
    }
    if (fac_program_new(graph, d, NULL, &p, &err) || fac_program_run(p, from, to, &err))
        fail_msg("%s", err.text);
    for (int k = 0; k < MANY; k++) assert_true(*(const float *)fac_tensor_data(to[k]) == (float)k);
    assert_true(*(const float *)fac_tensor_data(to[MANY]) == MANY * (MANY - 1) / 2);
    for (int k = 0; k < MANY; k++) fac_tensor_free(from[k]);
    for (int k = 0; k <= MANY; k++) fac_tensor_free(to[k]);
    fac_program_free(p);
    fac_device_free(d);
    fac_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(elements_go_where_they_should),
                                        cmocka_unit_test(false_positions_are_told),
                                        cmocka_unit_test(sequences_are_inputs_and_outputs),
                                        cmocka_unit_test(opsets_must_agree_and_be_known),
                                        cmocka_unit_test(initializers_may_be_inputs),
                                        cmocka_unit_test(many_inputs_and_outputs) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
