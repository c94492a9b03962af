/* Single nodes changed, ports, tensors: what comes out is a sound graph that computes what it
 * should, and what cannot be is said. */
#include "edit_nodes_check.h"

static const char *const text = "input x f32[N,3,8,8]\n"
                                "param w f32[4,3,3,3]\n"
                                "param b f32[4]\n"
                                "conv = conv2d(x, w, b) pad=1,1,1,1 @body\n"
                                "act = relu(conv) @body.act\n"
                                "half = identity(act)\n"
                                "pool = max_pool2d(half) kernel=2,2 stride=2,2\n"
                                "%1 = tanh(pool)\n"
                                "output y = %1\n"
                                "output z = half\n";

static fac_graph *network(void) {
    fac_graph *g = graph_of(text);
    fill_params(g);
    return g;
}

static void removing(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL;
    int n = 0;
    OK(fac_graph_removed(g, "half", &n, &out, &err));
    assert_int_equal(n, 1);
    assert_int_equal(count_op(out, "identity"), 0);
    assert_same(g, out);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_removed(g, "op:t*", &n, &out, &err));
    assert_int_equal(count_op(out, "tanh"), 0);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_removed(g, "body.act", NULL, &out, &err)); /* the scope that it alone stands in */
    assert_int_equal(count_op(out, "relu"), 0);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_removed(g, "%1", NULL, &out, &err));
    assert_int_equal(count_op(out, "tanh"), 0);
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_removed(g, "pool", &n, &out, &err), FAC_E_SHAPE,
          "its input is f32[N,4,8,8] and its output f32[N,4,4,4]");
    FAILS(fac_graph_removed(g, "nobody", &n, &out, &err), FAC_E_ARGUMENT,
          "there is no node \"nobody\"");
    FAILS(fac_graph_removed(g, "w", &n, &out, &err), FAC_E_ARGUMENT, "is no node");
    assert_null(out);
    fac_graph_free(g);
}

static void several_in_a_scope(void **state) {
    (void)state;
    fac_graph *g = graph_of("input x f32[2]\na = relu(x) @s\nb = tanh(a) @s\noutput y = b\n"),
              *out = NULL;
    int n;
    FAILS(fac_graph_removed(g, "s", &n, &out, &err), FAC_E_ARGUMENT, "2 nodes stand in \"s\"");
    OK(fac_graph_removed(g, "s*", &n, &out, &err));
    assert_int_equal(n, 2);
    fac_graph_free(out);
    fac_graph_free(g);
}

static void inserting(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL, *want;
    int n;
    OK(fac_graph_inserted(g, "act", "clip(_, 0, 6)", &n, &out, &err));
    assert_int_equal(n, 1);
    assert_int_equal(count_op(out, "clip"), 1);
    assert_sound(out);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_inserted(g, "half", "t = exp(_); mul(t, 0.5) neg", &n, &out, &err));
    assert_int_equal(n, 2); /* a pool, and an output of the graph */
    want = graph_of("input x f32[N,3,8,8]\nparam w f32[4,3,3,3]\nparam b f32[4]\nconv = conv2d(x, "
                    "w, b) pad=1,1,1,1\n"
                    "act = relu(conv)\n"
                    "e = exp(act)\nm = mul(e, 0.5)\nn = neg(m)\np = max_pool2d(n) kernel=2,2 "
                    "stride=2,2\n%1 = tanh(p)\n"
                    "output y = %1\noutput z = n\n");
    fill_params(want);
    assert_same(want, out);
    fac_graph_free(want);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_inserted(g, "half->pool", "neg", &n, &out, &err));
    assert_int_equal(n, 1);
    assert_string_equal(fac_value_name(fac_graph_output(out, 1)), "half");
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_inserted(g, "half->z", "neg", &n, &out, &err));
    assert_ptr_equal(fac_graph_output(out, 1)->node->op, &fac_op_neg);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_inserted(g, "x", "mul(_, 2)", &n, &out, &err));
    assert_int_equal(fac_graph_inputs(out), 1);
    assert_sound(out);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_inserted(g, "x", "max_pool2d kernel=2,2 stride=2,2", &n, &out,
                          &err)); /* what follows is smaller */
    assert_int_equal(fac_value_type(fac_graph_find(out, "act")).dims.d[2], 4);
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_inserted(g, "half->conv", "neg", &n, &out, &err), FAC_E_ARGUMENT,
          "no such reader");
    FAILS(fac_graph_inserted(g, "half", "nope(_)", &n, &out, &err), FAC_E_FORMAT,
          "1:1: there is no op 'nope'");
    FAILS(fac_graph_inserted(g, "half", "clip(_, 0", &n, &out, &err), FAC_E_FORMAT,
          "',' is missing");
    FAILS(fac_graph_inserted(g, "half", "clip(_, 0, 6) wide=3", &n, &out, &err), FAC_E_FORMAT,
          "no attribute 'wide'");
    FAILS(fac_graph_inserted(g, "half", "add(_, w)", &n, &out, &err), FAC_E_SHAPE, "add");
    FAILS(fac_graph_inserted(g, "half", "add(_, nobody)", &n, &out, &err), FAC_E_FORMAT,
          "there is no value 'nobody'");
    assert_null(out);
    fac_graph_free(g);
}

static void replacing(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL;
    int n;
    OK(fac_graph_replaced(g, "act", "gelu", &n, &out, &err));
    assert_int_equal(count_op(out, "gelu"), 1);
    assert_string_equal(fac_value_name(fac_graph_find(out, "act")),
                        "act"); /* the name stays at its place */
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_replaced(g, "conv", "conv2d(x0, x1, x2) like node stride=2,2", &n, &out, &err));
    assert_int_equal(fac_value_type(fac_graph_find(out, "conv")).dims.d[2], 4);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_replaced(g, "pool", "avg_pool2d(_) kernel=2,2 stride=2,2", &n, &out, &err));
    assert_int_equal(count_op(out, "max_pool2d"), 0);
    assert_sound(out);
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_replaced(g, "act", "conv2d(x0, x1)", &n, &out, &err), FAC_E_FORMAT,
          "there is no value 'x1'");
    FAILS(fac_graph_replaced(g, "conv", "mul(x0, 3) like node", &n, &out, &err), FAC_E_FORMAT,
          "is no mul");
    FAILS(fac_graph_replaced(g, "act", "", &n, &out, &err), FAC_E_FORMAT, "an op is missing");
    assert_null(out);
    fac_graph_free(g);
}

static void setting(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL;
    int n;
    OK(fac_graph_set(g, "conv", "stride=2,2", &n, &out, &err));
    const fac_dims d = fac_value_type(fac_graph_find(out, "conv")).dims;
    assert_int_equal(d.d[2], 4); /* pad=1 stayed */
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_set(g, "conv", "stride=0,x", &n, &out, &err), FAC_E_FORMAT, "stride");
    FAILS(fac_graph_set(g, "conv", "slope=1", &n, &out, &err), FAC_E_FORMAT, "conv2d has stride");
    FAILS(fac_graph_set(g, "conv", "stride=-1,1", &n, &out, &err), FAC_E_ARGUMENT, "must be in");
    assert_null(out);
    fac_graph_free(g);
}

static void ports(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL, *less = NULL;
    OK(fac_graph_output_added(g, "conv", NULL, &out, &err));
    assert_int_equal(fac_graph_outputs(out), 3);
    assert_string_equal(fac_graph_output_name(out, 2), "conv");
    OK(fac_graph_output_removed(out, "y", &less, &err));
    assert_int_equal(count_op(less, "tanh"), 0);
    assert_sound(less);
    fac_graph_free(less);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_output_added(g, "%1", "logits", &out, &err));
    assert_ptr_equal(fac_graph_output(out, 2), fac_graph_output(out, 0));
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_output_added(g, "%1", NULL, &out, &err), FAC_E_ARGUMENT, "called");
    FAILS(fac_graph_output_added(g, "%99", "a", &out, &err), FAC_E_ARGUMENT, "no value");
    FAILS(fac_graph_output_added(g, "conv", "y", &out, &err), FAC_E_ARGUMENT, "taken");
    FAILS(fac_graph_output_removed(g, "conv", &out, &err), FAC_E_ARGUMENT, "no output");
    OK(fac_graph_shaped(g, "x", "5,3,S,16", &out, &err));
    const fac_dims d = fac_value_type(fac_graph_find(out, "act")).dims;
    assert_int_equal(d.d[0], 5);
    assert_string_equal(fac_symbol_name(out, d.d[2]), "S");
    assert_int_equal(d.d[3], 16);
    OK(fac_graph_bound(out, "S", 6, &less, &err));
    assert_int_equal(fac_value_type(fac_graph_find(less, "pool")).dims.d[2], 3);
    fac_graph_free(less);
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_shaped(g, "x", "1x4x8x8", &out, &err), FAC_E_SHAPE, "conv2d");
    FAILS(fac_graph_shaped(g, "x", "1x,8", &out, &err), FAC_E_SHAPE, "conv2d");
    FAILS(fac_graph_shaped(g, "x", "1xx8", &out, &err), FAC_E_ARGUMENT, "no shape");
    FAILS(fac_graph_shaped(g, "conv", "1x3x8x8", &out, &err), FAC_E_ARGUMENT, "no input");
    FAILS(fac_graph_bound(g, "M", 3, &out, &err), FAC_E_ARGUMENT, "no open size");
    FAILS(fac_graph_bound(g, "N", -3, &out, &err), FAC_E_ARGUMENT, "not negative");
    assert_null(out);
    fac_graph_free(g);
}

static void tensors(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL, *back = NULL;
    fac_tensor *b = full(FAC_F32, fac_shape(4), 2), *wide = full(FAC_F32, fac_shape(6, 3, 3, 3), 1),
               *f64 = full(FAC_F64, fac_shape(4), 2), *x = full(FAC_F32, fac_shape(2, 3, 8, 8), 1);
    int n;
    OK(fac_graph_tensor_set(g, "b", b, &out, &err));
    assert_ptr_equal(fac_value_tensor(fac_graph_find(out, "b")), b);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_tensor_set(g, "x", x, &out,
                            &err)); /* an input becomes a parameter: all can be computed now */
    assert_int_equal(fac_graph_inputs(out), 0);
    OK(fac_graph_baked(out, &n, &back, &err));
    assert_null(back->first);
    fac_graph_free(back);
    fac_graph_free(out);
    out = back = NULL;
    FAILS(fac_graph_tensor_set(g, "w", wide, &out, &err), FAC_E_SHAPE,
          "conv2d"); /* 6 channels, a bias of 4 */
    FAILS(fac_graph_tensor_set(g, "b", f64, &out, &err), FAC_E_SHAPE, "the new one f64[4]");
    FAILS(fac_graph_tensor_set(g, "nobody", b, &out, &err), FAC_E_ARGUMENT, "no value");
    OK(fac_graph_stripped(g, 10, &n, &out, &err));
    assert_int_equal(n, 1);
    assert_int_equal(fac_graph_params(out), 1);
    OK(fac_graph_restored(out, 2, (const char *[]){ "w", "other" },
                          (fac_tensor *[]){ fac_value_tensor(fac_graph_find(g, "w")), b }, &n,
                          &back, &err));
    assert_int_equal(n, 1);
    assert_same(g, back);
    fac_graph_free(back);
    back = NULL;
    FAILS(fac_graph_restored(out, 1, (const char *[]){ "w" }, &wide, &n, &back, &err), FAC_E_SHAPE,
          "\"w\" is f32[4,3,3,3]");
    FAILS(fac_graph_restored(out, 1, (const char *[]){ "x" }, &x, &n, &back, &err), FAC_E_ARGUMENT,
          "none of these");
    assert_null(back);
    fac_graph_free(out);
    fac_tensor_free(b);
    fac_tensor_free(wide);
    fac_tensor_free(f64);
    fac_tensor_free(x);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removing),  cmocka_unit_test(several_in_a_scope),
        cmocka_unit_test(inserting), cmocka_unit_test(replacing),
        cmocka_unit_test(setting),   cmocka_unit_test(ports),
        cmocka_unit_test(tensors),
    };
    return cmocka_run_group_tests_name("edit_nodes", tests, open_device, close_device);
}
