/* Graph text and bodies: printed, read back, and refused. */
#include "graph_text_check.h"

/* Reading and printing gives exactly this again; so does a clone. */
static void assert_same(const char *text) {
    fac_graph *g = read_ok(text), *copy = fac_graph_clone(g);
    char *again = write_text(g), *cloned = write_text(copy);
    assert_string_equal(again, text);
    assert_string_equal(cloned, text);
    assert_true(fac_hash_equal(fac_graph_hash(g), fac_graph_hash(copy)));
    free(again);
    free(cloned);
    fac_graph_free(copy);
    fac_graph_free(g);
}

static void goldens(void **state) {
    (void)state;
    assert_same("");
    assert_same("input x f32[N,3,224,224]\n"
                "param conv1.weight f32[64,3,7,7]\n"
                "state \"running mean\" f32[64]\n"
                "%1 = conv2d(x, conv1.weight) stride=2,2 pad=3,3,3,3 {relu} @features.0 !Conv_0  # "
                "f32[N,64,112,112]\n"
                "y = add(%1, 0.5) ~7 @\"a b\" !  # f32[N,64,112,112]\n"
                "\"0 weird\\n\\\"name\\\"\" = relu(y)  # f32[N,64,112,112]\n"
                "%2 = neg(\"running mean\")  # f32[64]\n"
                "output logits = \"0 weird\\n\\\"name\\\"\"\n"
                "output two = f32(2)\n"
                "update \"running mean\" <- %2\n");
    assert_same("input x f32[N,\"batch size\",?1]\n"
                "input input f32[?2,2]\n"
                "const c i64{3,4}\n"
                "const %1 f32[17]\n"
                "const m f64[2,2]{1,0.1,-inf,nan}\n"
                "%2 = reshape(input, c)  # f32[3,4]\n"
                "output = neg(m)  # f64[2,2]\n"
                "%3 = neg(%1)  # f32[17]\n"
                "output a = %2\n"
                "output b = output\n"
                "output c = %3\n"
                "output d = i64{N,-1,?2}\n"
                "output e = f32[0,3]{}\n"
                "output f = i64{}\n"
                "output g = u64(18446744073709551615)\n"
                "output h = bool{0,1}\n"
                "output i = text{\"a\",\"b \\\" c\",\"\"}\n"
                "output j = f16(0.1)\n"
                "output k = i8{-128,127}\n"
                "output l = x\n");
    assert_same(/* where a number has no type of its own */
                "input b bool[2]\n"
                "input x f32[2]\n"
                "%1 = where(b, x, f32(0))  # f32[2]\n"
                "%2 = max(x, f32(inf))  # f32[2]\n"
                "%3 = max(x, -1.5)  # f32[2]\n"
                "output y = %1\n"
                "output z = %2\n"
                "output w = %3\n");
}

static void reading_is_lenient(void **state) {
    (void)state;
    /* a nameless symbol of the text is none of those that inference makes, whatever its number */
    assert_same(
        "input x f32[M]\ninput z f32[N]\n%1 = add(x, z)  # f32[?1]\noutput y = i64{?2,?3,?2}\n");
    assert_same("input x f32[?1,?2,?1]\n\".5\" = neg(x)  # f32[?1,?2,?1]\n%1 = neg(\".5\")  # "
                "f32[?1,?2,?1]\n");
    fac_graph *g = read_ok("# a comment\n\n  input   x\tf32[ N , 3 ]  # more\r\n%9=relu( x )\n%a = "
                           "neg(%9)\noutput y=%a # f32");
    char *text = write_text(g);
    assert_string_equal(
        text,
        "input x f32[N,3]\n%1 = relu(x)  # f32[N,3]\n%2 = neg(%1)  # f32[N,3]\noutput y = %2\n");
    free(text);
    fac_graph_free(g);
    /* one constant for equal text; one each where they have names */
    g = read_ok("input x f32[2]\n%1 = add(x, 0.5)\n%2 = mul(%1, 0.5)\nconst a f32(0.5)\nconst b "
                "f32(0.5)\n");
    assert_int_equal(g->nconsts, 3);
    fac_graph_free(g);
}

static void refusals(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        { "inputs x f32[2]", "line 1: '=' is missing, at 'x f32[2]'" },
        { "input x f33[2]", "line 1: there is no element type 'f33', at '[2]'" },
        { "input x f32[2", "line 1: ',' is missing, at the end" },
        { "input x f32[-1]", "line 1: a size or a symbol is missing, at '-1]'" },
        { "input x f32[?]", "line 1: a nameless symbol needs a number, at ']'" },
        { "input x f32[1,1,1,1,1,1,1,1,1]", "line 1: a type has at most 8 dims, at '1]'" },
        { "input x f32[9223372036854775807,9]",
          "line 1: a type has 2^56 elements or more, at the end" },
        { "input x f32[268435456,268435456]",
          "line 1: a type has 2^56 elements or more, at the end" },
        { "input x f32[9223372036854775808]",
          "line 1: a size or a symbol is missing, at '9223372036854775808]'" },
        { "input x f32[2]\ninput x f32[2]", "line 2: 'x' is defined twice, at the end" },
        { "param p f32[N]", "line 1: only inputs have symbols in their types, at the end" },
        { "input x f32[2] y", "line 1: this was not expected, at 'y'" },
        { "y = relu(x)", "line 1: there is no value 'x' yet, at ')'" },
        { "y = relu(%1)", "line 1: there is no value %'1' yet, at ')'" },
        { "input x f32[2]\ny = rellu(x)", "line 2: there is no op 'rellu', at '(x)'" },
        { "input x f32[2]\n%1 = relu(x)\n%1 = relu(x)",
          "line 3: %'1' is defined twice, at the end" },
        { "input x f32[2]\ny = relu(x)\ny = relu(x)", "line 3: 'y' is defined twice, at the end" },
        { "input x f32[2]\ny, z = relu(x)", "line 2: relu has only 1 output, at the end" },
        { "input x f32[2]\ny = relu(x", "line 2: ',' is missing, at the end" },
        { "input x f32[2]\ny = relu()", "line 2: relu: input x is missing" },
        { "input x f32[2]\ny = relu(-)", "line 2: relu: input x is missing" },
        { "y = add(1, 2)", "line 1: add: its numbers need types, as in f32(2), at the end" },
        { "input x i64[2]\ny = add(x, 0.5)", "line 2: this is no i64, at '.5'" },
        { "input x i8[2]\ny = add(x, 128)",
          "line 2: an integer that fits into i8 is missing, at the end" },
        { "input x f32[2]\ny = add(x, f32[3])",
          "line 2: an operand is a name or a constant with its contents, at ')'" },
        { "input x f32[2]\ny = add(x, f32{1,2,3})",
          "line 2: add: [2] and [3] cannot be broadcast: 2 against 3 (x f32[2], y f32[3])" },
        { "const c f32[2]{1,2,3}", "line 1: 3 elements do not fill this type, at the end" },
        { "const c i64{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17}",
          "line 1: a constant with contents has at most 16 elements, at '17}'" },
        { "const c i64[1,2]{N,2}", "line 1: only a vector of i64 may hold symbols, at the end" },
        { "const c bit{1}", "line 1: bits have no contents in text, at '1}'" },
        { "const c text{\"a}", "line 1: a text: the closing quote is missing, at 'a}'" },
        { "output y = 3", "line 1: a number needs a type here: f32(3), at the end" },
        { "output y = -", "line 1: output 'y' has no value" },
        { "update x <- y", "line 1: there is no value 'x' yet, at '<- y'" },
        { "input x f32[2]\nupdate x <- x", "line 2: fac_update: 'x' is not a parameter" },
        { "param p f32[2]\nupdate p < x", "line 2: '-' is missing, at 'x'" },
        { "input x f32[2]\ny = relu(x) ~70000", "line 2: a stage is below 65536, at the end" },
        { "input x f32[2]\n%1 = relu(x) !", "line 2: a name is missing, at the end" },
        { "input x f32[2]\ny = relu(x) ~-1", "line 2: a stage is missing, at '-1'" },
        { "input x f32[2]\ny = relu(x) alpha=2",
          "line 2: there is no attribute 'alpha'; relu has none, at '2'" },
        { "input x f32[2]\ny = relu(x) {relu", "line 2: '}' is missing, at the end" },
        { "input x f32[2]\ny = relu(x) {add(_, x1)}",
          "line 2: there is no 'x1' in this body, at ')}'" },
        { "input x f32[2]\ny = relu(x) {t1 = exp(x0); t1}",
          "line 2: there is no 't1' in this body, at '= exp(x0); t1}'" },
        { "input x f32[2]\ny = relu(x) {t0 = exp(x0) t0}", "line 2: ';' is missing, at 't0}'" },
        { "input x f32[2]\ny = relu(x) {}",
          "line 2: relu: an epilogue with 1 inputs, 0 outputs and 0 parameters; "
          "it needs 1, 1 and 0 (x f32[2])" },
        { "input x f32[2]\ny = conv2d(x)", "line 2: conv2d: input w is missing (x f32[2])" },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_graph *g = NULL;
        fac_error err = { 0 };
        if (!read_text(cases[k][0], strlen(cases[k][0]), &g, &err))
            fail_msg("read: %s", cases[k][0]);
        assert_string_equal(err.text, cases[k][1]);
        assert_null(g);
    }
    fac_graph *g = NULL;
    fac_error err = { 0 };
    assert_int_equal(read_text("input x\0 f32[2]", 15, &g, &err), FAC_E_FORMAT);
    assert_int_equal(read_text("input \"a\0\" f32[2]", 17, &g, &err), FAC_E_FORMAT);
    char deep[4096] = "input x f32[2]\ny = relu(x) ";
    for (int k = 0; k < 200; k++) strcat(deep, "{relu ");
    assert_int_equal(read_text(deep, strlen(deep), &g, &err), FAC_E_FORMAT);
    assert_non_null(strstr(err.text, "nested more than 16 deep"));
}

/* ---- bodies ---- */

static void bodies(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        /* text; how it is printed, NULL: the same */
        { "relu", NULL },
        { "add(_, x1) relu", NULL },
        { "add(x1, _) clip(_, 0, 6)", NULL },
        { "mul(_, 0.5) add(_, x0) leaky_relu slope=0.1 neg", NULL },
        { "softmax(x0) axis=1", "softmax axis=1" },
        { "t0 = exp(x0); t1 = mul(t0, x1); t2 = add(t0, t1); t2", NULL },
        { "t0 = exp(x0); t1 = neg(x1); t1, t0", NULL },
        { "t0 = exp(x0); t0", "exp" },
        { "x1", NULL },
        { "x0, f32(1), f32{1,2}", NULL },
        { "t0 = exp(x1); t1 = add(x0, t0); t1", NULL },
        { "where(x2, _, f32(0))", NULL },
        { "reduce_max keep=1", NULL },
        { "add(_, f32[3]{1,2,3}) relu", "add(_, f32{1,2,3}) relu" },
    };
    const fac_type in[] = { { FAC_F32, fac_shape(2, 3) },
                            { FAC_F32, fac_shape(2, 3) },
                            { FAC_BOOL, fac_shape(2, 3) } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_error err = { 0 };
        fac_graph *b = fac_body_parse(cases[k][0], strlen(cases[k][0]), 3, in, &err);
        if (!b) fail_msg("%s: %s", cases[k][0], err.text);
        fac_text t = { 0 };
        fac_body_print(b, &t);
        assert_string_equal(t.s, cases[k][1] ? cases[k][1] : cases[k][0]);
        fac_graph *again = fac_body_parse(t.s, t.n, 3, in, &err);
        if (!again) fail_msg("%s: %s", t.s, err.text);
        assert_true(fac_hash_equal(fac_graph_hash(b), fac_graph_hash(again)));
        fac_text_free(&t);
        fac_graph_free(again);
        fac_graph_free(b);
    }
    fac_error err = { 0 };
    assert_null(fac_body_parse("relu)", 5, 1, in, &err));
    assert_string_equal(err.text, "an op is missing, at ')'");
    assert_null(fac_body_parse("add(_, 1) foo", 13, 1, in, &err));
    assert_string_equal(err.text, "there is no op 'foo', at the end");
    assert_null(fac_body_parse("relu }", 6, 1, in, &err));
    /* symbols of a graph that the parser does not know stay equal where they were */
    const fac_type symbolic[] = { { FAC_F32, fac_shape(fac_symbol_at(3), 2) },
                                  { FAC_F32, fac_shape(fac_symbol_at(3), 2) } };
    fac_graph *b = fac_body_parse("add(_, x1)", 10, 2, symbolic, &err);
    assert_non_null(b);
    assert_int_equal(b->outputs[0].value->type.dims.d[0], fac_symbol_at(3));
    fac_graph_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens),
        cmocka_unit_test(reading_is_lenient),
        cmocka_unit_test(refusals),
        cmocka_unit_test(bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
