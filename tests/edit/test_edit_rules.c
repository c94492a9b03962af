/* Rules: those of examples/rules find what they are for and keep the function; conditions, orders
 * of operands, places of errors; an end even where a rule matches what it makes. */
#include "edit_check.h"

static fac_rules *rules_of(const char *text) {
    fac_rules *r = NULL;
    OK(fac_rules_read(text, "t.rules", &r, &err));
    return r;
}

static fac_rules *example(const char *name) {
    char path[400], text[8000];
    snprintf(path, sizeof path, "%s/../examples/rules/%s.rules", TEST_DIR, name);
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s: cannot be opened", path);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    return rules_of(text);
}

static int total(const fac_rules *r, const fac_rule_report *report) {
    int n = 0;
    for (int k = 0; k < fac_rules_count(r); k++) n += report[k].matches;
    return n;
}

/* Rewrites, says how often; the result is sound and, where it should be, the same function. */
static fac_graph *rewritten(const fac_graph *g, const char *name, int matches, bool same) {
    fac_rules *r = example(name);
    fac_rule_report report[8];
    fac_graph *out = NULL;
    OK(fac_graph_rewritten(g, r, 0, report, &out, &err));
    assert_sound(out);
    assert_int_equal(total(r, report), matches);
    if (same) assert_same(g, out);
    fac_rules_free(r);
    return out;
}

/* text: a graph; then how often the file's rules match, which op there is afterwards and which is
 * gone. */
static void examples(void **state) {
    (void)state;
    static const struct {
        const char *file, *there, *gone;
        int matches;
        bool same;
        const char *text;
    } cases[] = {
        { "identity", "relu", "dropout", 3, true,
          "input x f32[N,4]\na = identity(x)\nb = dropout(a) ratio=0.5\n"
          "c = cast(b) to=f32\nd = relu(c)\noutput y = d\n" },
        { "identity", "dropout", "identity", 1, false,
          "input x f32[N,4]\ninput k i64[]\na = identity(x)\nb = dropout(a, k) ratio=0.5 "
          "training\noutput y = b\n" },
        { "conv_bn", "conv2d", "batch_norm", 2, true,
          "input x f32[N,3,9,9]\nparam w f32[4,3,3,3]\nparam b f32[4]\nparam v f32[6,2,3,3]\nparam "
          "s f32[4]\nparam t f32[4]\n"
          "param m f32[4]\n"
          "param r f32[4]\nparam s2 f32[6]\nparam t2 f32[6]\nparam m2 f32[6]\nparam r2 f32[6]\n"
          "c = conv2d(x, w, b) stride=2,2 pad=1,1,1,1\nn = batch_norm(c, s, t, m, r) epsilon=1e-5 "
          "momentum=0.9\n"
          "d = conv2d(n, v) groups=2\ne = batch_norm(d, s2, t2, m2, r2) epsilon=0.001\noutput y = "
          "e\n" },
        { "hard_swish", "hard_swish", "clip", 3, true,
          "input x f32[N,8]\na = add(x, 3)\nr = clip(a, 0, 6)\nm = mul(x, r)\ny1 = div(m, 6)\nb = "
          "add(f32(3), y1)\n"
          "s = clip(b, 0, 6)\nn = mul(s, y1)\n"
          "y2 = mul(n, 0.166666672)\nc = add(y2, 3)\nt = clip(c, 0, 6)\nd = div(t, 6)\ny3 = mul(d, "
          "y2)\noutput y = y3\n" },
        { "hard_swish", "hard_swish", "hard_sigmoid", 1, true,
          "input x f32[N,8]\ns = hard_sigmoid(x) slope=0.16666667 offset=0.5\nm = mul(s, "
          "x)\noutput y = m\n" },
        { "gelu", "gelu", "erf", 3, true,
          "input x f32[N,8]\nd = div(x, 1.41421354)\ne = erf(d)\na = add(e, 1)\nm = mul(x, a)\ny1 "
          "= mul(m, 0.5)\n"
          "d2 = div(y1, 1.4142135)\ne2 = erf(d2)\na2 = add(f32(1), e2)\nh2 = mul(y1, 0.5)\ny2 = "
          "mul(a2, h2)\n"
          "d3 = mul(y2, 0.707106769)\ne3 = erf(d3)\na3 = add(e3, 1)\nh3 = mul(f32(0.5), y2)\ny3 = "
          "mul(h3, a3)\noutput y = y3\n" },
        { "linear", "linear", "matmul", 1, true,
          "input x f32[N,5,8]\nparam w f32[8,6]\nparam b f32[6]\nm = matmul(x, w)\na = add(b, "
          "m)\noutput y = a\n" },
        { "linear", "linear", "gemm", 1, true,
          "input x f32[N,8]\nparam w f32[6,8]\nparam b f32[6]\nm = gemm(x, w, b) trans_b\n"
          "output y = m\n" },
        { "linear", "matmul", "linear", 0, true, /* the product has another reader */
          "input x f32[N,8]\nparam w f32[8,6]\nparam b f32[6]\nm = matmul(x, w)\na = add(b, "
          "m)\noutput y = a\noutput z = m\n" },
        { "relu", "relu", "leaky_relu", 1, false,
          "input x f32[N,8]\na = leaky_relu(x) slope=0.1\noutput y = a\n" },
        { "relu", "leaky_relu", "relu", 0, true,
          "input x f32[N,8]\na = leaky_relu(x) slope=0.5\noutput y = a\n" },
        { "transposes", "relu", "transpose", 2, true,
          "input x f32[N,3,5]\na = transpose(x) perm=1,2,0\nb = transpose(a) perm=2,0,1\nc = "
          "transpose(b)\nr = relu(c)\n"
          "d = transpose(r)\noutput y = d\n" },
        { "transposes", "transpose", "relu", 0, true,
          "input x f32[N,3,5]\na = transpose(x) perm=1,2,0\nb = transpose(a) perm=1,2,0\noutput y "
          "= b\n" },
        { "layer_norm", "layer_norm", "sqrt", 2, true,
          "input x f32[N,7,6]\nparam s f32[6]\nparam b f32[6]\nm = mean(x, i64{-1}) keep\nd = "
          "sub(x, m)\np = pow(d, 2)\n"
          "v = mean(p, i64{-1}) keep\n"
          "e = add(v, 1e-5)\nq = sqrt(e)\nn = div(d, q)\nt = mul(n, s)\na = add(t, b)\nm2 = "
          "mean(a, i64{-1}) keep\n"
          "d2 = sub(a, m2)\np2 = mul(d2, d2)\n"
          "v2 = mean(p2, i64{-1}) keep\ne2 = add(v2, 0.001)\nq2 = sqrt(e2)\nn2 = div(d2, q2)\nt2 = "
          "mul(s, n2)\na2 = add(b, t2)\n"
          "output y = a2\n" }
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_graph *g = graph_of(cases[k].text);
        fill_params(g);
        print_message("%s %zu\n", cases[k].file, k);
        fac_graph *out = rewritten(g, cases[k].file, cases[k].matches, cases[k].same);
        assert_true(count_op(out, cases[k].there) > 0);
        assert_int_equal(count_op(out, cases[k].gone), 0);
        fac_graph_free(out);
        fac_graph_free(g);
    }
}

/* What rules made of weights becomes weights. */
static void baked(void **state) {
    (void)state;
    fac_graph *g = NULL, *out, *done = NULL;
    int n;
    OK(fac_zoo_new("resnet18", NULL, 1, &g, &err));
    out = rewritten(g, "conv_bn", 20, false);
    OK(fac_graph_baked(out, &n, &done, &err));
    assert_int_equal(count_op(done, "batch_norm") + count_op(done, "mul") + count_op(done, "sqrt"),
                     0);
    assert_int_equal(count_op(done, "conv2d"), 20);
    fac_graph_free(done);
    fac_graph_free(out);
    fac_graph_free(g);
}

static void mistakes(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "t.rules:1:1: there is no rule" },
        { "rule\n", "t.rules:1:5: the name of the rule is missing" },
        { "rule a b\n", "t.rules:1:8: this was not expected" },
        { "rule a\nreplace\n", "t.rules:2:1: 'match' is missing" },
        { "rule a\nmatch\n  y = relux(x)\n", "t.rules:3:7: there is no op 'relux'" },
        { "rule a\nmatch\n  y = relu(x\n", "t.rules:3:13: ',' is missing" },
        { "rule a\nmatch\n  y = relu x\n", "t.rules:3:12: '(' is missing after relu" },
        { "rule a\nmatch\n  relu(x)\n", "t.rules:3:3: a line of a pattern is NAME = op(...)" },
        { "rule a\nmatch\n  y = leaky_relu(x) alpha=1\n",
          "t.rules:3:21: leaky_relu: there is no attribute 'alpha'" },
        { "rule a\nmatch\n  y = leaky_relu(x) slope=1 slope=2\n",
          "t.rules:3:29: slope is given twice" },
        { "rule a\nmatch\n  a = relu(x)\n  b = tanh(x)\nreplace\n  b = x\nend\n",
          "t.rules:3:3: the last line of the pattern is not made from 'a'" },
        { "rule a\nmatch\n  y = relu(x)\nwhere\n  rank(z) = 4\nreplace\n  y = x\nend\n",
          "t.rules:5:8: there is no value 'z'" },
        { "rule a\nmatch\n  y = relu(x)\nwhere\n  size(x) = 4\nreplace\n  y = x\nend\n",
          "t.rules:5:3: there is no function 'size'" },
        { "rule a\nmatch\n  y = relu(x)\nwhere\n  rank(x) 4\nreplace\n  y = x\nend\n",
          "t.rules:5:11: one of = != < <= > >= in is missing" },
        { "rule a\nmatch\n  y = relu(x)\nwhere\n  cancels($p, $q)\nreplace\n  y = x\nend\n",
          "t.rules:5:11: there is no variable 'p'" },
        { "rule a\nmatch\n  y = relu(x)\nreplace\n  y = tanh(z)\nend\n",
          "t.rules:5:12: there is no value 'z'" },
        { "rule a\nmatch\n  y = relu(x)\nreplace\n  x = tanh(x)\nend\n",
          "t.rules:5:3: 'x' is an operand of the pattern" },
        { "rule a\nmatch\n  y = relu(x)\nreplace\n  z = tanh(x)\nend\n",
          "no line makes a value of the pattern" },
        { "rule a\nmatch\n  y = relu(x)\nreplace\n  y = leaky_relu(x) slope=$s\nend\n",
          "there is no variable $s" },
        { "rule a\nmatch\n  y = relu(x)\nreplace\n  y = tanh(x) like y\nend\n",
          "'y' is no tanh of the pattern" },
        { "rule a\nmatch\n  y = relu(x)\nreplace\n  y = tanh(x) *\nend\n",
          "belongs into a pattern" },
        { "rule a\nmatch\n  y = relu(x)\nreplace\n  y = x\n", "t.rules:6:1: 'end' is missing" },
        { "rule a\nmatch\n  y = relu(x)\nreplace\n  y = x\nend\nrule a\nmatch\n  y = "
          "tanh(x)\nreplace\n  y = x\nend\n",
          "t.rules:7:1: there are two rules a" },
        { "rule a\nmatch\n  y = relu(\"x)\n", "the closing quote is missing" }
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_rules *r = NULL;
        FAILS(fac_rules_read(cases[k].text, "t.rules", &r, &err), FAC_E_FORMAT, cases[k].says);
        assert_null(r);
    }
}

static int matches_in(const char *rule, const char *graph) {
    fac_rules *r = rules_of(rule);
    fac_graph *g = graph_of(graph), *out = NULL;
    fac_rule_report report[4];
    OK(fac_graph_rewritten(g, r, 0, report, &out, &err));
    assert_sound(out);
    const int n = total(r, report);
    fac_graph_free(out);
    fac_graph_free(g);
    fac_rules_free(r);
    return n;
}

#define RULE(where)                                                                                \
    "rule a\nmatch\n  y = leaky_relu(x) slope=$s\nwhere\n  " where "\nreplace\n  y = "             \
                                                                   "relu(x)\nend\n"
static void conditions(void **state) {
    (void)state;
    static const char *const graph =
        "input x f32[N,3,8]\na = leaky_relu(x) slope=0.25\noutput y = a\n";
    static const struct {
        const char *rule;
        int matches;
    } cases[] = {
        { RULE("rank(x) = 3"), 1 },     { RULE("rank(x) != 3"), 0 },
        { RULE("not rank(x) = 2"), 1 }, { RULE("dim(x, 1) = 3, dim(x, -1) > 7"), 1 },
        { RULE("dim(x, 0) = 1"), 0 },   { RULE("not dim(x, 0) = 1"), 0 }, /* not known: neither */
        { RULE("dim(x, 5) = 1"), 0 },   { RULE("$s in [0, 0.25]"), 1 },
        { RULE("$s in [0.26, 1]"), 0 }, { RULE("$s <= 0.25"), 1 },
        { RULE("type(x) = f32"), 1 },   { RULE("type(x) = f16"), 0 },
        { RULE("same(x, y)"), 1 },      { RULE("constant(x)"), 0 },
        { RULE("once(x)"), 1 },         { RULE("once(y)"), 0 },
        { RULE("uses(x) = 1"), 1 },     { RULE("count(x) > 0"), 0 },
        { RULE("value(x) = 1"), 0 }
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        if (matches_in(cases[k].rule, graph) != cases[k].matches) fail_msg("%s", cases[k].rule);
}

/* Operands of sums in any order, also where the first try binds the wrong one. */
static void both_orders(void **state) {
    (void)state;
    static const char *const rule =
        "rule a\nmatch\n  e = exp(x)\n  t = tanh(z)\n  s = add(e, t)\n  y = mul(s, x)\nreplace\n"
        "  y = sub(x, z)\nend\n";
    assert_int_equal(matches_in(rule, "input x f32[2]\ninput z f32[2]\ne = exp(x)\nt = tanh(z)\ns "
                                      "= add(t, e)\nm = mul(x, s)\n"
                                      "output y = m\n"),
                     1);
    assert_int_equal(matches_in(rule, "input x f32[2]\ninput z f32[2]\ne = exp(z)\nt = tanh(x)\ns "
                                      "= add(t, e)\nm = mul(x, s)\n"
                                      "output y = m\n"),
                     0);
    /* 24 sums whose leaves are all alike and never right: the search ends */
    char text[4000] = "rule a\nmatch\n  l = tanh(x)\n",
         graph[4000] = "input x f32[2]\nl = exp(x)\n";
    for (int k = 0; k < 24; k++) {
        snprintf(text + strlen(text), 100, k ? "  v%d = add(v%d, v%d)\n" : "  v%d = add(l, l)\n", k,
                 k - 1, k - 1);
        snprintf(graph + strlen(graph), 100, k ? "v%d = add(v%d, v%d)\n" : "v%d = add(l, l)\n", k,
                 k - 1, k - 1);
    }
    strcat(text, "replace\n  v23 = x\nend\n");
    strcat(graph, "output y = v23\n");
    assert_int_equal(matches_in(text, graph), 0);
}

static void an_end(void **state) {
    (void)state;
    fac_rules *r =
        rules_of("rule again\nmatch\n  y = relu(x)\nreplace\n  z = neg(x)\n  y = relu(z)\nend\n");
    fac_graph *g = graph_of("input x f32[4]\na = relu(x)\noutput y = a\n"), *out = NULL;
    FAILS(fac_graph_rewritten(g, r, 50, NULL, &out, &err), FAC_E_ARGUMENT,
          "rule again still matches");
    FAILS(fac_graph_rewritten(g, r, 0, NULL, &out, &err), FAC_E_ARGUMENT,
          "rule again still matches");
    assert_null(out);
    fac_rules_free(r);
    r = rules_of("rule wrong\nmatch\n  y = relu(x)\nreplace\n  y = reduce_max(x, i64{0})\nend\n");
    fac_rule_report report;
    OK(fac_graph_rewritten(g, r, 0, &report, &out, &err));
    assert_int_equal(report.matches, 0);
    assert_int_equal(report.skipped, 1);
    assert_non_null(strstr(report.why, "y is f32[4] and would be f32[]"));
    fac_graph_free(out);
    fac_graph_free(g);
    fac_rules_free(r);
}

/* A hundred thousand nodes, of which all go: one walk, and not one for each. */
static void many(void **state) {
    (void)state;
    enum { N = 50000 };
    fac_graph *g = fac_graph_new(), *out = NULL;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 3));
    for (int k = 0; k < N; k++)
        x = fac_transpose(fac_transpose(x, (fac_dims){ 0 }), (fac_dims){ 0 });
    fac_output(g, "y", x);
    fac_rules *r = example("transposes");
    fac_rule_report report[4];
    OK(fac_graph_rewritten(g, r, 0, report, &out, &err));
    assert_int_equal(report[0].matches, N);
    assert_null(out->first);
    fac_rules_free(r);
    fac_graph_free(out);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(examples),    cmocka_unit_test(baked),
                                        cmocka_unit_test(mistakes),    cmocka_unit_test(conditions),
                                        cmocka_unit_test(both_orders), cmocka_unit_test(an_end),
                                        cmocka_unit_test(many) };
    return cmocka_run_group_tests_name("edit_rules", tests, open_device, close_device);
}
