/* Graphs: inference with symbols and known contents, attributes, several outputs, updates. */
#include "facula/onnx.h"
#include "facula/ops.h"
#include "graph_check.h"

static void broadcasting_with_symbols(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    const int64_t n = fac_symbol(g, "N"), m = fac_symbol(g, "M");
    assert_true(n != m && n == fac_symbol(g, "N"));
    fac_value *a = fac_input(g, "a", FAC_F32, fac_shape(n, 3)),
              *b = fac_input(g, "b", FAC_F32, fac_shape(n, 1));
    fac_value *c = fac_input(g, "c", FAC_F32, fac_shape(1, 3)),
              *d = fac_input(g, "d", FAC_F32, fac_shape(5, 3));
    fac_value *e = fac_input(g, "e", FAC_F32, fac_shape(m, 3)),
              *s = fac_input(g, "s", FAC_F32, scalar);
    fac_value *z = fac_input(g, "z", FAC_F32, fac_shape(0, 3));
    assert_type(add(a, b), "f32[N,3]");
    assert_type(add(c, b), "f32[N,3]");
    assert_type(add(a, d), "f32[5,3]");
    assert_type(add(z, a), "f32[0,3]");
    assert_type(add(s, a), "f32[N,3]");
    assert_type(fac_emit(&tless, NULL, 2, (fac_value *[]){ a, b }), "bool[N,3]");
    assert_type(add(a, e), "f32[?2,3]");
    assert_type(add(a, e), "f32[?3,3]");
    assert_int_equal(fac_symbol(g, "?4"), fac_symbol(g, "?4"));
    assert_string_equal(fac_symbol_name(g, fac_symbol(g, NULL)), "?5");
    assert_null(fac_symbol_name(g, -1));
    assert_null(fac_symbol_name(g, 3));
    assert_null(fac_symbol_name(g, INT64_MIN));
    assert_int_equal(fac_axis(-1, 4), 3);
    assert_int_equal(fac_axis(4, 4), -1);
    assert_int_equal(fac_axis(-5, 4), -1);
    assert_ok(g);
    fac_graph_free(g);
}

/* Kernels count elements in bytes: a cast to bits wrote beyond its result. */
static void bits_are_for_storage(void **state) {
    (void)state;
    for (int way = 0; way < 2; way++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = fac_input(g, "x", way ? FAC_BIT : FAC_F32, fac_shape(2, 4));
        fac_cast(x, way ? FAC_F32 : FAC_BIT);
        assert_error(g, FAC_E_DTYPE,
                     way ? "cast: input x is bit, which no op computes with: fac_tensor_convert "
                           "makes bools of bits, and bits of bools (x bit[2,4])"
                         : "cast: output y would be bit, which no op computes with: "
                           "fac_tensor_convert makes bools of bits, and bits of bools "
                           "(x f32[2,4])");
        fac_graph_free(g);
    }
}

static void known_contents(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    const int64_t n = fac_symbol(g, "N");
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(n, 4));
    assert_type(resize(x, shape(x)), "f32[N,4]");
    assert_type(resize(x, fac_ints(g, fac_shape(2, n))), "f32[2,N]");
    assert_type(resize(x, fac_input(g, "i", FAC_I64, fac_shape(1))), "f32[?1]");
    fac_contents c;
    assert_true(fac_known(fac_ints(g, fac_shape(3, -1)), &c));
    assert_true(c.n == 2 && !c.symbolic && c.v[0] == 3 &&
                c.v[1] == -1); /* -1 is a number and not symbol N */
    assert_non_null(fac_value_tensor(fac_ints(g, fac_shape(3, -1))));
    fac_value *mixed = fac_ints(g, fac_shape(3, n));
    assert_true(fac_known(mixed, &c) && c.symbolic == 2 && c.v[1] == n);
    assert_false(fac_known_numbers(mixed, &c));
    assert_null(fac_value_tensor(mixed));
    assert_int_equal(mixed->leaf, FAC_CONST);
    static const fac_dtype integers[] = { FAC_I8,  FAC_I16, FAC_I32, FAC_I64, FAC_U8,
                                          FAC_U16, FAC_U32, FAC_U64, FAC_BOOL };
    for (size_t k = 0; k < sizeof integers / sizeof *integers; k++) {
        assert_true(fac_known_numbers(fac_number(g, integers[k], 1), &c));
        assert_true(c.n == 1 && c.v[0] == 1);
    }
    assert_false(fac_known(fac_number(g, FAC_F32, 1), &c));
    assert_false(fac_known(NULL, &c));
    fac_tensor *many = zeros(FAC_I64, fac_shape(17)), *few = zeros(FAC_I32, fac_shape(16));
    fac_tensor *square = zeros(FAC_I64, fac_shape(2, 2));
    assert_false(fac_known(fac_const(g, many), &c));
    assert_true(fac_known(fac_const(g, few), &c) && c.n == 16);
    assert_false(fac_known(fac_const(g, square), &c));
    assert_ok(g);
    fac_tensor_free(many);
    fac_tensor_free(few);
    fac_tensor_free(square);
    fac_graph_free(g);
}

static void attributes(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2));
    const fac_node *plain = fac_apply(g, &tall, NULL, 1, &x)->node;
    const tall_attrs *a = plain->attrs;
    assert_true(a->stride[0] == 1 && a->stride[1] == 1 && a->alpha == 0.01 && !a->text &&
                a->mode == 0);
    static const char *const texts[][2] = {
        { "", "" },
        { "stride=2", " stride=2,2" },
        { " stride=1,1  alpha=0.01 axis=0", "" },
        { "stride=2,1 axis=-3 alpha=0.1", " stride=2,1 axis=-3 alpha=0.1" },
        { "box=0.5,-1e-300,inf ceil_mode mode=cubic to=f16 axes=0,-1,2",
          " box=0.5,-1e-300,inf ceil_mode mode=cubic to=f16 axes=0,-1,2" },
        { "training=1 ceil_mode=0 text=\"a \\\"b\\\\ \\n\\x01\"",
          " training text=\"a \\\"b\\\\ \\n\\x01\"" },
        { "text=plain/name.x", " text=\"plain/name.x\"" },
    };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        const fac_value *y = fac_apply(g, &tall, texts[k][0], 1, &x);
        assert_ok(g);
        fac_text t = { 0 };
        fac_attrs_print(&tall, y->node->attrs, &t);
        assert_string_equal(t.s ? t.s : "", texts[k][1]);
        const fac_value *again = fac_apply(g, &tall, t.s, 1, &x);
        assert_ok(g);
        assert_true(fac_attrs_equal(&tall, y->node->attrs, again->node->attrs));
        const fac_hash h = fac_hash_start(0), p = fac_attrs_hash(h, &tall, y->node->attrs);
        assert_true(fac_hash_equal(p, fac_attrs_hash(h, &tall, again->node->attrs)));
        const bool same = !t.n;
        assert_int_equal(fac_attrs_equal(&tall, plain->attrs, y->node->attrs), same);
        assert_int_equal(fac_hash_equal(p, fac_attrs_hash(h, &tall, plain->attrs)), same);
        fac_text_free(&t);
    }
    fac_graph_free(g);
    static const char *const bad[][2] = {
        { "strid=2",
          "tall: there is no attribute 'strid'; "
          "tall has stride, axis, alpha, box, ceil_mode, training, mode, to, axes, text, at '2'" },
        { "stride=1,2,3", "tall: stride has at most 2 elements, at '3'" },
        { "stride=x", "tall: stride needs an integer of 64 bits, at 'x'" },
        { "stride=99999999999999999999",
          "tall: stride needs an integer of 64 bits, at '99999999999999999999'" },
        { "stride=65", "tall: stride is 65, it must be in [1, 64] (x f32[2])" },
        { "alpha=-1", "tall: alpha is -1, it must be in [0, 10] (x f32[2])" },
        { "box=1,2", "tall: box has 2 elements, it needs 3, at the end" },
        { "mode=best", "tall: mode cannot be 'best'; its first choice is 'nearest', at the end" },
        { "to=f33", "tall: to: there is no element type 'f33', at the end" },
        { "ceil_mode=2", "tall: ceil_mode needs 0 or 1, at the end" },
        { "axis", "tall: axis needs a value: axis=..., at the end" },
        { "axis=1 axis=2", "tall: axis is given twice, at '2'" },
        { "text=\"a", "tall: text: the closing quote is missing, at 'a'" },
        { "text=\"\\q\"", "tall: text: only \\\\, \\\", \\n and \\x01 to \\xff may follow a "
                          "backslash, at '\\q\"'" },
        { "axes=1,2,3,4,5,6,7,8,9", "tall: axes has at most 8 elements, at '9'" },
        { "axis=1 !", "tall: this was not expected, at '!'" },
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        g = fac_graph_new();
        x = fac_input(g, "x", FAC_F32, fac_shape(2));
        assert_ptr_equal(fac_apply(g, &tall, bad[k][0], 1, &x), g->poison);
        fac_error err = { 0 };
        fac_graph_check(g, &err);
        assert_string_equal(err.text, bad[k][1]);
        fac_graph_free(g);
    }
}

static void several_outputs(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(6));
    fac_value *y = fac_emit(&tsplit, &(tsplit_attrs){ 3 }, 1, &x);
    assert_int_equal(y->node->nout, 3);
    assert_type(fac_value_other(y, 2), "f32[2]");
    assert_int_equal(fac_value_other(y, 2)->index, 2);
    fac_output(g, "y", add(fac_value_other(y, 0), fac_value_other(y, 2)));
    assert_sound(g);
    fac_graph *copy = fac_graph_clone(g);
    assert_ok(copy);
    assert_true(fac_hash_equal(fac_graph_hash(g), fac_graph_hash(copy)));
    fac_graph_free(copy);
    fac_graph_free(g);
}

static void updates_and_times(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *w = param(g, "w", fac_shape(2)), *v = param(g, "v", fac_shape(2));
    fac_value *a = neg(w), *b = neg(v), *c = add(a, b);
    assert_int_equal(c->time, FAC_PREPARE);
    fac_update(w, c);
    assert_int_equal(w->time, FAC_RUN);
    assert_int_equal(a->time, FAC_RUN);
    assert_int_equal(b->time, FAC_PREPARE);
    assert_int_equal(c->time, FAC_RUN);
    fac_output(g, "b", b);
    assert_sound(g);
    fac_graph *copy = fac_graph_clone(g);
    assert_sound(copy);
    assert_int_equal(fac_graph_find(copy, "w")->time, FAC_RUN);
    assert_non_null(fac_graph_find(copy, "w")->next);
    assert_ptr_equal(fac_value_tensor(fac_graph_find(copy, "w")), fac_value_tensor(w));
    fac_graph_free(copy);
    copy = fac_graph_inference(g);
    assert_ok(copy);
    assert_sound(copy);
    assert_int_equal(copy->nodes, 1);
    assert_null(fac_graph_find(copy, "w"));
    assert_int_equal(fac_graph_params(copy), 1);
    fac_graph_free(copy);
    fac_graph_free(g);
}

static void inference_ends_training(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2));
    fac_output(g, "y", fac_apply(g, &tall, "training axis=3", 1, &x));
    fac_graph *quiet = fac_graph_inference(g);
    assert_ok(quiet);
    const tall_attrs *a = fac_graph_find(quiet, "y")->node->attrs;
    assert_false(a->training);
    assert_int_equal(a->axis, 3);
    fac_graph_free(quiet);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broadcasting_with_symbols),
        cmocka_unit_test(known_contents),
        cmocka_unit_test(attributes),
        cmocka_unit_test(bits_are_for_storage),
        cmocka_unit_test(several_outputs),
        cmocka_unit_test(updates_and_times),
        cmocka_unit_test(inference_ends_training),
    };
    return cmocka_run_group_tests_name("graph_types", tests, NULL, NULL);
}
