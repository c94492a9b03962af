/* Recurrent layers and attention from ONNX: lists of activations and their numbers, what is refused
 * and in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "facula/op.h"
#include "graph/graph_internal.h"
#include "onnx/load.h"
#include "onnx_writer.h"

enum { NODE = 1, INPUT = 11, OUTPUT = 12, ATTRIBUTE = 5, F32 = 1, FLOATS = 6, STRINGS = 8 };

static void texts(bytes *node, const char *name, const char *list) {
    bytes a = w_attr(name, STRINGS);
    w_names(&a, 9, list);
    w_sub(node, ATTRIBUTE, a);
}

static void reals(bytes *node, const char *name, int n, const float *x) {
    bytes a = w_attr(name, FLOATS);
    for (int k = 0; k < n; k++) w_f32(&a, 7, x[k]);
    w_sub(node, ATTRIBUTE, a);
}

static void text(bytes *node, const char *name, const char *value) {
    bytes a = w_attr(name, 3);
    w_text(&a, 4, value);
    w_sub(node, ATTRIBUTE, a);
}

/* "x:3,2,4 w:1,8,4 r:1,8,2" */
static bytes model(bytes node, const char *inputs, int opset) {
    bytes g = { 0 };
    char name[32], dims[64];
    int used;
    for (; sscanf(inputs, " %31[^:]:%63s%n", name, dims, &used) == 2; inputs += used)
        w_sub(&g, INPUT, w_value(name, F32, dims));
    w_sub(&g, NODE, node);
    w_sub(&g, OUTPUT, w_value("y", F32, NULL));
    return w_model(g, 9, opset);
}

static fac_status load(bytes m, fac_graph **g, fac_error *err) {
    fac_source_files files = { .file = fac_file_memory(m.p, m.n) };
    assert_non_null(files.file);
    fac_status status = fac_onnx_load_files(&files, NULL, g, err);
    free(m.p);
    return status;
}

/* The one op is this, with these attributes. */
static void becomes(bytes m, const char *op, const char *attrs) {
    fac_graph *g = NULL;
    fac_error err = { 0 };
    fac_text printed = { 0 };
    if (load(m, &g, &err)) fail_msg("%s", err.text);
    const fac_node *n = fac_graph_output(g, 0)->node;
    assert_string_equal(n->op->name, op);
    fac_attrs_print(n->op, n->attrs, &printed);
    assert_string_equal(printed.s ? printed.s : "", attrs);
    fac_text_free(&printed);
    fac_graph_free(g);
}

static void refused(bytes m, fac_status status, const char *says) {
    fac_graph *g = NULL;
    fac_error err = { 0 };
    assert_int_equal(load(m, &g, &err), status);
    assert_null(g);
    if (!strstr(err.text, says)) fail_msg("\"%s\" is not in \"%s\"", says, err.text);
}

static const char *const lstm = "x:3,2,4 w:1,8,4 r:1,8,2", *const rnn = "x:3,2,4 w:2,3,4 r:2,3,3";
static const char *const qkv = "q:2,3,4 k:2,5,4 v:2,5,4";

/* Alphas and betas belong, in order, to the activations that take them. */
static void activations_and_their_numbers(void **state) {
    (void)state;
    bytes n = w_node("LSTM", "x,w,r", "y");
    texts(&n, "activations", "hardsigmoid,Tanh,ScaledTanh");
    reals(&n, "activation_alpha", 2, (float[]){ 0.25f, 0.75f });
    reals(&n, "activation_beta", 2, (float[]){ 0.5f, 1.5f });
    w_attr_f32(&n, "clip", 2);
    w_attr_int(&n, "input_forget", 1);
    w_attr_int(&n, "hidden_size", 2);
    becomes(model(n, lstm, 7), "lstm",
            " clip=2 activations=\"hardsigmoid:0.25:0.5 Tanh ScaledTanh:0.75:1.5\" input_forget");

    n = w_node("RNN", "x,w,r", "y");
    texts(&n, "activations", "LeakyRelu,Affine");
    reals(&n, "activation_beta", 1, (float[]){ 0.125f });
    text(&n, "direction", "bidirectional");
    w_attr_int(&n, "layout", 0);
    becomes(model(n, rnn, 14), "rnn",
            " direction=bidirectional activations=\"LeakyRelu Affine:1:0.125\"");

    n = w_node("GRU", "x,w,r", "y");
    text(&n, "direction", "reverse");
    w_attr_int(&n, "linear_before_reset", 1);
    w_attr_int(&n, "layout", 1);
    becomes(model(n, "x:2,3,4 w:1,6,4 r:1,6,2", 22), "gru",
            " direction=reverse batch_first linear_before_reset");
}

static void wrong_activations_are_told(void **state) {
    (void)state;
    bytes n = w_node("LSTM", "x,w,r", "y");
    texts(&n, "activations", "Sigmoid,Tanh,Sine");
    refused(model(n, lstm, 7), FAC_E_UNSUPPORTED, "\"Sigmoid Tanh Sine\"");
    n = w_node("LSTM", "x,w,r", "y");
    texts(&n, "activations", "Sigmoid,Tanh");
    refused(model(n, lstm, 7), FAC_E_ARGUMENT, "names 2 activations, not 3");
    n = w_node("LSTM", "x,w,r", "y");
    texts(&n, "activations", "Tanh,Tanh,Tanh,Tanh,Tanh,Tanh,Tanh");
    refused(model(n, lstm, 7), FAC_E_UNSUPPORTED, "more than 6 elements");
    n = w_node("LSTM", "x,w,r", "y");
    reals(&n, "activations", 1, (float[]){ 1 });
    refused(model(n, lstm, 7), FAC_E_FORMAT,
            "attribute activations is of kind floats, not strings");
}

static void other_attributes_are_checked(void **state) {
    (void)state;
    bytes n = w_node("LSTM", "x,w,r", "y");
    text(&n, "direction", "sideways");
    refused(model(n, lstm, 7), FAC_E_FORMAT, "direction = \"sideways\"");
    n = w_node("LSTM", "x,w,r", "y");
    w_attr_int(&n, "hidden_size", 3);
    refused(model(n, lstm, 7), FAC_E_SHAPE, "hidden_size is 3, R has 2");
    n = w_node("RNN", "x,w,r", "y");
    w_attr_int(&n, "linear_before_reset", 1);
    refused(model(n, "x:3,2,4 w:1,3,4 r:1,3,3", 7), FAC_E_UNSUPPORTED, "linear_before_reset");
    n = w_node("LSTM", "x,w,r", "y");
    refused(model(n, "x:3,2,4 w:1,8,4 r:1,6,2", 7), FAC_E_SHAPE, "r must be f32[1,8,2]");
}

static void attention_reads_its_attributes(void **state) {
    (void)state;
    bytes n = w_node("Attention", "q,k,v", "y");
    w_attr_int(&n, "q_num_heads", 2);
    w_attr_int(&n, "kv_num_heads", 2);
    w_attr_int(&n, "is_causal", 1);
    w_attr_int(&n, "qk_matmul_output_mode", 2);
    w_attr_f32(&n, "scale", 0.5f);
    w_attr_f32(&n, "softcap", 3);
    becomes(model(n, qkv, 23), "attention",
            " q_heads=2 kv_heads=2 scale=0.5 softcap=3 causal scores=masked");
    n = w_node("Attention", "q,k,v", "y");
    refused(model(n, qkv, 23), FAC_E_ARGUMENT, "need q_heads and kv_heads");
    n = w_node("Attention", "q,k,v", "y");
    w_attr_int(&n, "q_num_heads", 3);
    w_attr_int(&n, "kv_num_heads", 1);
    refused(model(n, qkv, 23), FAC_E_SHAPE, "4 features do not divide into 3 heads");
    n = w_node("Attention", "q,k,v", "y");
    w_attr_int(&n, "qk_matmul_output_mode", 4);
    refused(model(n, qkv, 23), FAC_E_FORMAT, "qk_matmul_output_mode is 4");
    n = w_node("Attention", "q,k,v", "y");
    w_attr_int(&n, "left_window_size", -2);
    refused(model(n, qkv, 23), FAC_E_FORMAT, "a window of -2 and -1: expected -1 or more");
}

int main(void) {
    const struct CMUnitTest all[] = { cmocka_unit_test(activations_and_their_numbers),
                                      cmocka_unit_test(wrong_activations_are_told),
                                      cmocka_unit_test(other_attributes_are_checked),
                                      cmocka_unit_test(attention_reads_its_attributes) };
    return cmocka_run_group_tests_name("nn_onnx", all, NULL, NULL);
}
