/* Graphs: building, errors, inference with symbols and known contents, updates. */
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
             "and fewer than 2^62 elements" },
        { 3, "input 'd': f32[4294967296,4294967296] is no shape: at most 8 dims, each a size or a "
             "fac_symbol of this graph, "
             "and fewer than 2^62 elements" },
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
        cmocka_unit_test(build_and_ask),           cmocka_unit_test(first_error_stays),
        cmocka_unit_test(messages_say_where),      cmocka_unit_test(inputs_are_checked),
        cmocka_unit_test(leaves_are_checked),      cmocka_unit_test(broadcasting_with_symbols),
        cmocka_unit_test(known_contents),          cmocka_unit_test(attributes),
        cmocka_unit_test(several_outputs),         cmocka_unit_test(updates_and_times),
        cmocka_unit_test(inference_ends_training),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
