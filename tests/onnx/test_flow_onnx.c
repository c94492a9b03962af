/* Subgraphs of ONNX files: what they read from outside, in which order; functions that stay calls;
 * what is malformed. */
#include "onnx_check.h"
#include <math.h>
#include "graph/graph_internal.h"
#include "op_list.h"

enum { BOOL = 9 };

/* ---- building ---- */

static void attr_graph(bytes *n, const char *name, bytes graph) {
    bytes at = w_attr(name, 5);
    w_sub(&at, 6, graph);
    w_sub(n, ATTRIBUTE, at);
}
static void typed_in(bytes *g, const char *name, int dtype, const char *dims) {
    w_sub(g, INPUT, w_value(name, dtype, dims));
}
static void typed_out(bytes *g, const char *name, int dtype, const char *dims) {
    w_sub(g, OUTPUT, w_value(name, dtype, dims));
}
static bytes body_head(void) {
    bytes b = { 0 };
    typed_in(&b, "i", I64, "");
    typed_in(&b, "go", BOOL, "");
    return b;
}
static void trips(bytes *g, int64_t n) {
    bytes t = w_tensor("n", I64, "");
    w_bytes(&t, 9, &n, sizeof n);
    w_sub(g, INITIALIZER, t);
}
static bytes looped(bytes body, const char *ins, const char *outs) {
    bytes g = { 0 }, n = node("Loop", ins, outs);
    attr_graph(&n, "body", body);
    in(&g, "x", "4");
    trips(&g, 2);
    add(&g, n);
    out(&g, "y");
    return g;
}
static bytes branch(const char *type, const char *ins, const char *result) {
    bytes b = { 0 };
    add(&b, node(type, ins, result));
    typed_out(&b, result, F32, "4");
    return b;
}

/* ---- what is read from outside ---- */

/* y = ((x + b) + b): b is a value that a node makes which stands after the loop in the file. */
static void outer_values(void **state) {
    (void)state;
    bytes b = body_head();
    typed_in(&b, "v", F32, "4");
    add(&b, node("Add", "v,b", "next"));
    typed_out(&b, "go", BOOL, "");
    typed_out(&b, "next", F32, "4");
    bytes g = looped(b, "n,,x", "y");
    add(&g, node("Neg", "x", "b"));
    const float x[] = { 1, 2, 3, 4 };
    runs(load(g), x, (float[]){ -1, -2, -3, -4 }, 4);
}

/* An if inside the body of a loop reads a value of the outermost graph, and an initializer there.
 */
static void through_two_graphs(void **state) {
    (void)state;
    bytes b = body_head(), n = node("If", "go", "next");
    typed_in(&b, "v", F32, "4");
    bytes yes = { 0 };
    add(&yes, node("Add", "v,b", "s"));
    add(&yes, node("Mul", "s,w", "p"));
    typed_out(&yes, "p", F32, "4");
    attr_graph(&n, "then_branch", yes);
    attr_graph(&n, "else_branch", branch("Neg", "v", "m"));
    add(&b, n);
    typed_out(&b, "go", BOOL, "");
    typed_out(&b, "next", F32, "4");
    bytes g = looped(b, "n,,x", "y");
    add(&g, node("Neg", "x", "b"));
    weights(&g, "w", "4", 4); /* 1, 2, 3, 4 */
    fac_graph *made = load(g);
    const float x[] = { 1, 2, 3, 4 };
    float want[4];
    for (int k = 0; k < 4; k++) {
        want[k] = x[k];
        for (int t = 0; t < 2; t++) want[k] = (want[k] - x[k]) * (float)(k + 1);
    }
    runs(made, x, want, 4);
}

/* Each branch reads what the other does not. */
static void branches_read_different_values(void **state) {
    (void)state;
    bytes g = { 0 }, n = node("If", "c", "y");
    in(&g, "x", "4");
    add(&g, node("Exp", "x", "a"));
    add(&g, node("Neg", "x", "b"));
    add(&g, node("ReduceSum", "x", "s"));
    bytes zero = w_tensor_f32("zero", "", (float[]){ 0 }, 1);
    w_sub(&g, INITIALIZER, zero);
    add(&g, node("Greater", "s,zero", "many"));
    add(&g, node("Squeeze", "many", "c"));
    attr_graph(&n, "then_branch", branch("Add", "a,a", "t"));
    attr_graph(&n, "else_branch", branch("Mul", "b,x", "e"));
    add(&g, n);
    out(&g, "y");
    fac_graph *made = load(g);
    const float up[] = { 1, 0, 0, 0 }, down[] = { -1, 0, 0, 2 };
    fac_graph *again = fac_graph_clone(made);
    runs(made, up, (float[]){ 2 * expf(1), 2, 2, 2 }, 4);
    runs(again, (float[]){ down[0], down[1], down[2], -2 }, (float[]){ -1, -0.f, -0.f, -4 }, 4);
}

/* ---- branches that nothing takes ---- */

/* y = relu(x) or what `dead` says, by a condition that is false, or true with the branches the
 * other way round. */
static bytes with_dead(bytes dead, bool first, const char *dims) {
    const uint8_t cond = !first;
    bytes g = { 0 }, n = node("If", "c", "y"), c = w_tensor("c", BOOL, ""), live = { 0 };
    w_bytes(&c, 9, &cond, sizeof cond);
    w_sub(&g, INITIALIZER, c);
    in(&g, "x", dims);
    weights(&g, "x3", "3", 3);
    add(&live, node("Relu", "x", "r"));
    typed_out(&live, "r", F32, NULL);
    attr_graph(&n, first ? "then_branch" : "else_branch", dead);
    attr_graph(&n, first ? "else_branch" : "then_branch", live);
    add(&g, n);
    out(&g, "y");
    return g;
}

static bytes dead_branch(const char *type, const char *ins, const char *domain_of) {
    bytes b = { 0 };
    add(&b, domain(node(type, ins, "d"), domain_of));
    typed_out(&b, "d", F32, NULL);
    return b;
}

/* An op that is not ours, one of a shape that does not fit, one more that reads a value of
 * outside: none of them counts. */
static void dead_branches(void **state) {
    (void)state;
    const float x[] = { 1, -2, 3, -4 }, want[] = { 1, 0, 3, 0 };
    for (int first = 0; first < 2; first++) {
        runs(load(with_dead(dead_branch("Frobnicate", "x", ""), first, "4")), x, want, 4);
        runs(load(with_dead(dead_branch("MatMul", "x,x3", ""), first, "4")), x, want, 4);
        runs(load(with_dead(dead_branch("Flatten", "x", "nowhere"), first, "4")), x, want, 4);
        runs(load(with_dead(dead_branch("Det", "x,x", ""), first, "4")), x, want, 4);
        fac_graph *g = load(with_dead(dead_branch("Exp", "x", ""), first, "4"));
        assert_true(g->nodes == 1 && FAC_IS(g->first, relu) &&
                    !strcmp(g->first->out[0]->name, "r"));
        fac_graph_free(g);
    }
}

/* Where data decides, the op counts, and is named with the branch it is in; so does one of a
 * function that a dead branch calls as well. */
static void live_branches(void **state) {
    (void)state;
    bytes g = { 0 }, n = node("If", "c", "y");
    typed_in(&g, "c", BOOL, "");
    in(&g, "x", "4");
    attr_graph(&n, "then_branch", branch("Relu", "x", "r"));
    attr_graph(&n, "else_branch", branch("Frobnicate", "x", "f"));
    add(&g, n);
    out(&g, "y");
    refuses(g, FAC_E_UNSUPPORTED,
            "y: else_branch: f: op Frobnicate of domain ai.onnx, opset 17, is not supported");
    for (int called = 0; called < 2; called++) {
        g = with_dead(dead_branch("odd", "x", "us"), false, "4");
        if (called) add(&g, domain(node("odd", "y", "z"), "us"));
        if (called) out(&g, "z");
        bytes f = { 0 };
        w_text(&f, 1, "odd");
        w_text(&f, 10, "us");
        w_names(&f, 4, "a");
        w_names(&f, 5, "b");
        w_opset(&f, 9, "", 17);
        w_sub(&f, 7, node("Frobnicate", "a", "b"));
        bytes m = w_model(g, 9, 17);
        w_opset(&m, 8, "us", 1);
        w_sub(&m, FUNCTIONS, f);
        if (called)
            refuses_with(m, NULL, FAC_E_UNSUPPORTED,
                         "op Frobnicate of domain ai.onnx, opset 17, is not supported");
        else
            runs(load_with(m, NULL), (float[]){ 1, -2, 3, -4 }, (float[]){ 1, 0, 3, 0 }, 4);
    }
}

/* ---- functions ---- */

static bytes function_model(const char *of) {
    bytes g = { 0 }, f = { 0 };
    in(&g, "x", "4");
    add(&g, named(domain(node("twice", "x", "t"), of), "first"));
    add(&g, named(domain(node("twice", "t", "y"), of), "second"));
    out(&g, "y");
    w_text(&f, 1, "twice");
    w_text(&f, 10, of);
    w_names(&f, 4, "a");
    w_names(&f, 5, "b");
    w_opset(&f, 9, "", 17);
    w_sub(&f, 7, node("Add", "a,a", "b"));
    bytes m = w_model(g, 9, 17);
    w_opset(&m, 8, of, 1);
    w_sub(&m, FUNCTIONS, f);
    return m;
}

static int calls_of(const fac_graph *g) {
    int n = 0;
    for (const fac_node *m = g->first; m; m = m->next) n += FAC_IS(m, call);
    return n;
}

static void functions_stay_calls_on_request(void **state) {
    (void)state;
    static const struct {
        const char *domain;
        fac_onnx_functions how;
        int calls;
    } cases[] = { { "facula.local", FAC_ONNX_OURS, 2 },
                  { "other", FAC_ONNX_OURS, 0 },
                  { "other", FAC_ONNX_KEEP, 2 },
                  { "facula.local", FAC_ONNX_INLINE, 0 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_graph *g = load_with(function_model(cases[k].domain),
                                 &(fac_onnx_opts){ .functions = cases[k].how });
        assert_int_equal(calls_of(g), cases[k].calls);
        if (cases[k].calls) {
            assert_string_equal(g->first->name, "first");
            assert_string_equal(g->last->name, "second");
        }
        runs(g, (float[]){ 1, 2, 3, -4 }, (float[]){ 4, 8, 12, -16 }, 4);
    }
}

/* A loop without a trip count that puts x into a sequence until its number says that it ends: once
 * more for each of `most`. */
static bytes inserts(int64_t most) {
    const int64_t zero = 0, one = 1;
    bytes b = body_head(), g = { 0 }, n = node("Loop", ",true,zero,s", "k,all"), value = { 0 };
    bytes join = node("ConcatFromSequence", "all", "y"), truth = w_tensor("true", BOOL, "");
    typed_in(&b, "k", I64, "");
    w_text(&value, 1, "list");
    w_sub(&b, INPUT, value);
    add(&b, node("Add", "k,one", "next"));
    add(&b, node("Less", "next,most", "more"));
    add(&b, node("SequenceInsert", "list,x", "longer"));
    typed_out(&b, "more", BOOL, "");
    typed_out(&b, "next", I64, "");
    value = (bytes){ 0 };
    w_text(&value, 1, "longer");
    w_sub(&b, OUTPUT, value);
    attr_graph(&n, "body", b);
    in(&g, "x", "1");
    ints(&g, "zero", "", &zero, 1);
    ints(&g, "one", "", &one, 1);
    ints(&g, "most", "", &most, 1);
    w_bytes(&truth, 9, "\1", 1);
    w_sub(&g, INITIALIZER, truth);
    add(&g, node("SequenceEmpty", "", "s"));
    add(&g, n);
    w_attr_int(&join, "axis", 0);
    add(&g, join);
    out(&g, "y");
    return g;
}

static void sequences_end_by_their_condition(void **state) {
    (void)state;
    fac_graph *g = load(inserts(3));
    fac_device *cpu = NULL;
    fac_program *p = NULL;
    fac_tensor *x = NULL, *y = NULL;
    fac_error err = { 0 };
    const float five = 5;
    assert_int_equal(fac_device_open("cpu", NULL, &cpu, &err), FAC_OK);
    assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(1), NULL, &five, NULL, NULL, &x, &err),
                     FAC_OK);
    if (fac_program_new(g, cpu, NULL, &p, &err) || fac_program_run(p, &x, &y, &err))
        fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_type(y).dims.d[0], 3);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_device_free(cpu);
    fac_graph_free(g);
    refuses(inserts(5000), FAC_E_UNSUPPORTED, "does not end within 4096 iterations");
}

/* ---- malformed ---- */

static bytes plain_body(bool cond, const char *carried) {
    bytes b = body_head();
    if (carried) typed_in(&b, carried, F32, "4");
    add(&b, node("Neg", carried ? carried : "x", "next"));
    if (cond) typed_out(&b, "go", BOOL, "");
    typed_out(&b, "next", F32, "4");
    return b;
}

static void malformed(void **state) {
    (void)state;
    bytes g = { 0 };
    in(&g, "x", "4");
    add(&g, node("Loop", "x", "y"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "Loop has no graph in attribute body");
    refuses(looped(plain_body(true, "v"), "n,,x,x", "y"), FAC_E_FORMAT,
            "Loop has 4 inputs, its body 3");
    refuses(looped(plain_body(true, "v"), "n", "y"), FAC_E_FORMAT, "Loop lacks input 2");
    refuses(looped(plain_body(true, "v"), "n,,x", "y,z,q"), FAC_E_FORMAT,
            "3 outputs of Loop, whose body has 1");
    refuses(looped(plain_body(false, "v"), "n,,x", "y"), FAC_E_FORMAT, "outputs of Loop");
    refuses(looped(plain_body(true, "v"), ",,x", "y"), FAC_E_ARGUMENT,
            "no trip count, and its condition stays true");
    bytes b = body_head();
    typed_in(&b, "v", F32, "4");
    add(&b, node("Add", "v,nowhere", "next"));
    typed_out(&b, "go", BOOL, "");
    typed_out(&b, "next", F32, "4");
    refuses(looped(b, "n,,x", "y"), FAC_E_FORMAT, "\"nowhere\" is not defined");
    b = body_head();
    typed_in(&b, "v", I64, "4");
    typed_out(&b, "go", BOOL, "");
    typed_out(&b, "v", F32, "4");
    refuses(looped(b, "n,,x", "y"), FAC_E_DTYPE,
            "input \"v\" of a subgraph is i64, what feeds it is f32");
    /* a body that reads the result of its own loop */
    b = body_head();
    typed_in(&b, "v", F32, "4");
    add(&b, node("Add", "v,y", "next"));
    typed_out(&b, "go", BOOL, "");
    typed_out(&b, "next", F32, "4");
    refuses(looped(b, "n,,x", "y"), FAC_E_FORMAT, "is part of a cycle");
    /* branches of different numbers of outputs */
    g = (bytes){ 0 };
    bytes n = node("If", "c", "y"), two = branch("Neg", "x", "m");
    in(&g, "x", "4");
    typed_in(&g, "c", BOOL, "");
    typed_out(&two, "x", F32, "4");
    attr_graph(&n, "then_branch", branch("Exp", "x", "e"));
    attr_graph(&n, "else_branch", two);
    add(&g, n);
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "whose branches have 1 and 2");
}

static void deep_nesting(void **state) {
    (void)state;
    bytes inner = branch("Neg", "x", "v0");
    for (int depth = 1; depth < 40; depth++) {
        char result[16], from[16];
        snprintf(result, sizeof result, "v%d", depth);
        snprintf(from, sizeof from, "e%d", depth);
        bytes outer = { 0 }, n = node("If", "c", result);
        attr_graph(&n, "then_branch", inner);
        attr_graph(&n, "else_branch", branch("Exp", "x", from));
        add(&outer, n);
        typed_out(&outer, result, F32, "4");
        inner = outer;
    }
    in(&inner, "x", "4");
    typed_in(&inner, "c", BOOL, "");
    refuses(inner, FAC_E_UNSUPPORTED, "nested more than 16 deep");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(outer_values),
                                        cmocka_unit_test(through_two_graphs),
                                        cmocka_unit_test(branches_read_different_values),
                                        cmocka_unit_test(functions_stay_calls_on_request),
                                        cmocka_unit_test(dead_branches),
                                        cmocka_unit_test(live_branches),
                                        cmocka_unit_test(sequences_end_by_their_condition),
                                        cmocka_unit_test(malformed),
                                        cmocka_unit_test(deep_nesting) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
