/* What layers read and write, operand by operand, and the totals that come of it; modules of files
 * of torch.export. */
#include "onnx_check.h"
#include <string.h>
#include "facula/facula.h"

#define OK(x)                                                                                      \
    do {                                                                                           \
        if (x) fail_msg("%s", err.text);                                                           \
    } while (0)
static fac_error err;

static fac_analysis *analyze(fac_graph *g) {
    fac_analysis *a = NULL;
    OK(fac_analyze(g, 1, &a, &err));
    return a;
}

static const fac_layer *layer(const fac_analysis *a, const char *op) {
    for (int i = 0; fac_analysis_layer(a, i); i++)
        if (!strcmp(fac_analysis_layer(a, i)->op, op)) return fac_analysis_layer(a, i);
    fail_msg("no layer %s", op);
    return NULL;
}

static void is(const fac_layer_value *v, const char *name, fac_role role, double size) {
    assert_string_equal(v->name, name);
    assert_string_equal(fac_role_name(v->role), fac_role_name(role));
    assert_true(v->bytes == size);
}

/* x [1,2,4,4] -> Conv with bias -> BatchNormalization -> Clip -> GlobalAveragePool -> Reshape by
 * Shape of x. */
static fac_graph *small(void) {
    static const float none[24];
    const int64_t zero = 0, rest = -1;
    bytes g = { 0 };
    in(&g, "x", "N,2,4,4");
    w_sub(&g, INITIALIZER, w_tensor_f32("w", "3,2,1,1", none, 6));
    const char *const vectors[] = { "b", "scale", "shift", "mean", "var" };
    for (int k = 0; k < 5; k++) w_sub(&g, INITIALIZER, w_tensor_f32(vectors[k], "3", none, 3));
    w_sub(&g, INITIALIZER, w_tensor_f32("low", "", none, 1));
    w_sub(&g, INITIALIZER, w_tensor_f32("high", "", none, 1));
    ints(&g, "zero", "1", &zero, 1);
    ints(&g, "rest", "1", &rest, 1);
    add(&g, named(node("Conv", "x,w,b", "c"), "/body/conv/Conv"));
    add(&g, node("BatchNormalization", "c,scale,shift,mean,var", "n"));
    add(&g, node("Clip", "n,low,high", "l"));
    add(&g, node("GlobalAveragePool", "l", "p"));
    add(&g, node("Shape", "x", "s"));
    bytes gather = node("Gather", "s,zero", "batch");
    w_attr_int(&gather, "axis", 0);
    add(&g, gather);
    bytes concat = node("Concat", "batch,rest", "to");
    w_attr_int(&concat, "axis", 0);
    add(&g, concat);
    add(&g, node("Reshape", "p,to", "y"));
    out(&g, "y");
    return load(g);
}

static void operands_and_roles(void **state) {
    (void)state;
    fac_graph *g = small();
    fac_analysis *a = analyze(g);
    const fac_layer *conv = layer(a, "conv2d"), *norm = layer(a, "batch_norm"),
                    *clip = layer(a, "clip");
    assert_string_equal(conv->node, "/body/conv/Conv");
    assert_string_equal(conv->module, "body.conv");
    assert_int_equal(conv->nin, 3);
    assert_int_equal(conv->nout, 1);
    is(&conv->inputs[0], "x", FAC_ROLE_DATA, 128);
    is(&conv->inputs[1], "w", FAC_ROLE_WEIGHT, 24);
    is(&conv->inputs[2], "b", FAC_ROLE_BIAS, 12);
    is(&conv->outputs[0], "c", FAC_ROLE_DATA, 192);
    assert_int_equal(conv->inputs[1].type.dims.n, 4);
    assert_string_equal(norm->node, "");
    is(&norm->inputs[1], "scale", FAC_ROLE_WEIGHT, 12);
    is(&norm->inputs[2], "shift", FAC_ROLE_BIAS, 12);
    is(&norm->inputs[3], "mean", FAC_ROLE_BUFFER, 12);
    is(&norm->inputs[4], "var", FAC_ROLE_BUFFER, 12);
    is(&clip->inputs[1], "low", FAC_ROLE_SETTING, 4);
    fac_analysis_free(a);
    fac_graph_free(g);
}

/* Limits, axes and shapes are nobody's weights, and are not read from memory. */
static void no_phantom_weights(void **state) {
    (void)state;
    fac_graph *g = small();
    fac_analysis *a = analyze(g);
    assert_true(layer(a, "conv2d")->weights == 36);
    assert_true(layer(a, "clip")->weights == 0);
    assert_true(layer(a, "mean")->weights == 0);
    assert_true(layer(a, "reshape")->weights == 0);
    assert_true(layer(a, "reshape")->read == 12);
    const fac_totals t = fac_analysis_totals(a);
    assert_true(t.params == 15 && t.buffers == 6);
    assert_true(t.param_bytes == 60 && t.buffer_bytes == 24 && t.weights == 84);
    assert_true(t.inputs == 128);
    assert_true(t.shapes == 32 + 8 + 16);
    assert_true(t.activations == 3 * 192 + 12 + 12);
    fac_analysis_free(a);
    fac_graph_free(g);
}

static void say(bytes *n, const char *key, const char *value) {
    bytes pair = { 0 };
    w_text(&pair, 1, key);
    w_text(&pair, 2, value);
    w_sub(n, 9, pair);
}

/* Nodes of torch.export: name and metadata.  A convolution that took in its norm still says that it
 * is the norm. */
static void modules_of_torch_export(void **state) {
    (void)state;
    static const float none[4];
    bytes g = { 0 };
    in(&g, "x", "1,2,4,4");
    w_sub(&g, INITIALIZER, w_tensor_f32("stem.conv.weight", "2,2,1,1", none, 4));
    bytes conv = named(node("Conv", "x,stem.conv.weight", "a"), "node_Conv_7");
    say(&conv, "pkg.torch.onnx.name_scopes", "['', 'stem', 'stem.bn', 'batch_norm']");
    say(&conv, "pkg.torch.onnx.class_hierarchy",
        "['net.Net', 'net.Stem', 'torch.nn.modules.batchnorm.BatchNorm2d', 'aten.batch_norm']");
    add(&g, conv);
    bytes relu = named(node("Relu", "a", "r"), "node_relu");
    say(&relu, "namespace", ": net.Net/stem: net.Stem/relu: aten.relu.default");
    add(&g, relu);
    bytes again = named(node("Relu", "r", "y"), "node_relu_1");
    say(&again, "namespace", ": net.Net/stem: net.Stem/relu: aten.relu.default");
    add(&g, again);
    out(&g, "y");
    fac_graph *loaded = load(g);
    fac_analysis *a = analyze(loaded);
    assert_string_equal(fac_analysis_layer(a, 0)->module, "stem.conv");
    assert_string_equal(fac_analysis_layer(a, 0)->node, "node_Conv_7");
    assert_string_equal(fac_analysis_layer(a, 1)->name, "stem.Relu");
    assert_string_equal(fac_analysis_layer(a, 2)->name, "stem.Relu_1");
    assert_string_equal(fac_graph_class(loaded, ""), "Net");
    assert_string_equal(fac_graph_class(fac_analysis_graph(a), "stem"), "Stem");
    assert_null(fac_graph_class(loaded, "stem.bn"));
    assert_int_equal(fac_graph_modules(loaded), 2);
    assert_string_equal(fac_graph_module(loaded, 1), "stem");
    assert_null(fac_graph_module(loaded, 2));
    fac_analysis_free(a);
    fac_graph_free(loaded);
}

/* The children 1 and 3 of a Sequential, and 2 of something else: 0 and 2 were left out. */
static void numbers_that_are_missing(void **state) {
    (void)state;
    static const struct {
        const char *op, *in, *out, *scopes, *classes;
    } nodes[] = {
        { "Relu", "x", "a", "['', 'body', 'body.1', 'relu']", "['N', 'nn.Sequential', 'R', 'r']" },
        { "Tanh", "a", "b", "['', 'body', 'body.3', 'tanh']", "['N', 'nn.Sequential', 'T', 't']" },
        { "Abs", "b", "y", "['', 'list', 'list.2', 'abs']", "['N', 'my.List', 'A', 'a']" },
    };
    bytes g = { 0 };
    in(&g, "x", "1,2,4,4");
    for (int k = 0; k < 3; k++) {
        bytes one = named(node(nodes[k].op, nodes[k].in, nodes[k].out), nodes[k].op);
        say(&one, "pkg.torch.onnx.name_scopes", nodes[k].scopes);
        say(&one, "pkg.torch.onnx.class_hierarchy", nodes[k].classes);
        add(&g, one);
    }
    out(&g, "y");
    fac_graph *loaded = load(g);
    fac_analysis *a = analyze(loaded);
    const fac_idle *first = fac_analysis_idle(a, 0), *second = fac_analysis_idle(a, 1);
    assert_string_equal(first->module, "body.0");
    assert_int_equal(first->before, 0);
    assert_null(first->kind);
    assert_string_equal(second->module, "body.2");
    assert_int_equal(second->before, 1);
    assert_int_equal(second->out.dims.n, 4);
    assert_null(fac_analysis_idle(a, 2));
    fac_analysis_free(a);
    fac_graph_free(loaded);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(operands_and_roles),
                                        cmocka_unit_test(no_phantom_weights),
                                        cmocka_unit_test(modules_of_torch_export),
                                        cmocka_unit_test(numbers_that_are_missing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
