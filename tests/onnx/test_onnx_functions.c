/* Importing models: local functions; torn and damaged files, lost allocations. */
#include "onnx_check.h"

/* ---- functions ---- */

typedef struct function {
    bytes b;
} function;

static function make(const char *name, const char *inputs, const char *outputs) {
    function f = { { 0 } };
    w_text(&f.b, 1, name);
    w_text(&f.b, 10, "local");
    w_names(&f.b, 4, inputs);
    w_names(&f.b, 5, outputs);
    w_opset(&f.b, 9, "", 17);
    w_opset(&f.b, 9, "local", 1);
    return f;
}
static void does(function *f, bytes n) { w_sub(&f->b, 7, n); }
static bytes calls(const char *name, const char *inputs, const char *outputs) {
    return domain(node(name, inputs, outputs), "local");
}
static bytes main_graph(bytes call) {
    bytes g = { 0 };
    in(&g, "x", "4");
    add(&g, call);
    out(&g, "y");
    bytes m = w_model(g, 9, 17);
    w_opset(&m, 8, "local", 1);
    return m;
}
static void has(bytes *model, function f) { w_sub(model, FUNCTIONS, f.b); }

/* leak(x) = LeakyRelu(x, alpha = @slope), where slope may have a default. */
static function leak(bool with_default) {
    function f = make("leak", "a", "b");
    bytes n = node("LeakyRelu", "a", "b"), ref = w_attr("alpha", 1);
    w_text(&ref, 21, "slope");
    w_sub(&n, ATTRIBUTE, ref);
    does(&f, n);
    if (with_default) {
        bytes d = w_attr("slope", 1);
        w_f32(&d, 2, 0.25f);
        w_sub(&f.b, 11, d);
    } else
        w_text(&f.b, 6, "slope");
    return f;
}

/* Each of 40 functions calls the next one twice. */
static void has_many(bytes *m) {
    for (int k = 0; k < 40; k++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "f%d", k);
        snprintf(next, sizeof next, "f%d", k + 1);
        function f = make(name, "a", "c");
        does(&f, k < 39 ? calls(next, "a", "b") : node("Relu", "a", "b"));
        does(&f, k < 39 ? calls(next, "b", "c") : node("Relu", "b", "c"));
        has(m, f);
    }
}

static void functions(void **state) {
    (void)state;
    const float x[] = { -8, -4, 0, 4 };
    bytes call = calls("leak", "x", "y");
    w_attr_f32(&call, "slope", 0.5f);
    bytes m = main_graph(call);
    has(&m, leak(false));
    runs(load_with(m, NULL), x, (float[]){ -4, -2, 0, 4 }, 4);
    m = main_graph(calls("leak", "x", "y"));
    has(&m, leak(true));
    runs(load_with(m, NULL), x, (float[]){ -2, -1, 0, 4 }, 4);
    /* twice(x) = leak(leak(x)), its own attribute passed on */
    function twice = make("twice", "p", "q");
    bytes inner = calls("leak", "p", "t"), ref = w_attr("slope", 1);
    w_text(&ref, 21, "s");
    w_sub(&inner, ATTRIBUTE, ref);
    does(&twice, inner);
    does(&twice, calls("leak", "t", "q"));
    call = calls("twice", "x", "y");
    w_attr_f32(&call, "s", 0.5f);
    m = main_graph(call);
    has(&m, twice);
    has(&m, leak(true));
    runs(load_with(m, NULL), x, (float[]){ -1, -0.5f, 0, 4 }, 4);
    /* an optional input that the call leaves out */
    function clip = make("clip", "a,lo,hi", "b");
    does(&clip, node("Clip", "a,lo,hi", "b"));
    bytes g = { 0 };
    in(&g, "x", "4");
    weights(&g, "one", "", 1);
    add(&g, calls("clip", "x,,one", "y"));
    out(&g, "y");
    m = w_model(g, 9, 17);
    w_opset(&m, 8, "local", 1);
    has(&m, clip);
    runs(load_with(m, NULL), x, (float[]){ -8, -4, 0, 1 }, 4);
}

static void wrong_functions(void **state) {
    (void)state;
    function f = make("f", "a", "b");
    does(&f, calls("g", "a", "b"));
    function g = make("g", "a", "b");
    does(&g, calls("f", "a", "b"));
    bytes m = main_graph(calls("f", "x", "y"));
    has(&m, f);
    has(&m, g);
    refuses_with(m, NULL, FAC_E_FORMAT, "calls itself");
    m = main_graph(calls("f", "x", "y"));
    has(&m, make("f", "a", "a"));
    has(&m, make("f", "a", "a"));
    refuses_with(m, NULL, FAC_E_FORMAT, "function \"f\" is defined twice");
    f = make("f", "a", "b");
    does(&f, node("Relu", "outside", "b")); /* a function sees its inputs only */
    m = main_graph(calls("f", "x", "y"));
    has(&m, f);
    refuses_with(m, NULL, FAC_E_FORMAT, "its input \"outside\" is not defined");
    m = main_graph(calls("f", "x,x", "y"));
    has(&m, make("f", "a", "a"));
    refuses_with(m, NULL, FAC_E_FORMAT, "2 inputs for function \"f\", which has 1");
    m = main_graph(calls("f", "x", "y,z"));
    has(&m, make("f", "a", "a"));
    refuses_with(m, NULL, FAC_E_FORMAT, "2 outputs of function \"f\", which has 1");
    f = make("f", "a", "b");
    does(&f, node("Frobnicate", "a", "b"));
    m = main_graph(calls("f", "x", "y"));
    has(&m, f);
    refuses_with(m, NULL, FAC_E_UNSUPPORTED, "op Frobnicate of domain ai.onnx, opset 17");
    m = main_graph(calls("f0", "x", "y"));
    has_many(&m);
    refuses_with(m, NULL, FAC_E_UNSUPPORTED, "y: functions that expand to too many nodes");
    m = main_graph(calls("f0", "x", "y"));
    for (int k = 0; k < 200; k++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "f%d", k);
        snprintf(next, sizeof next, "f%d", k + 1);
        f = make(name, "a", "b");
        does(&f, k < 199 ? calls(next, "a", "b") : node("Relu", "a", "b"));
        has(&m, f);
    }
    refuses_with(m, NULL, FAC_E_UNSUPPORTED, "deep");
}

/* For those who look, each such call is a node without a meaning, and the others are built. */
static void many_calls_are_opaque(void **state) {
    (void)state;
    bytes g = { 0 };
    in(&g, "x", "4");
    add(&g, calls("f0", "x", "a"));
    add(&g, calls("f0", "x", "b"));
    add(&g, node("Relu", "x", "y"));
    out(&g, "y");
    bytes m = w_model(g, 9, 17);
    w_opset(&m, 8, "local", 1);
    has_many(&m);
    fac_graph *made = load_with(m, &(fac_onnx_opts){ .opaque = true });
    assert_int_equal(fac_value_type(fac_graph_output(made, 0)).dims.d[0], 4);
    fac_graph_free(made);
}

/* ---- damage ---- */

/* A model with something of everything: every prefix and every flipped bit is an error or a graph.
 */
static bytes rich_model(void) {
    bytes g = small_graph(), n = node("Constant", "", "c"), a = w_attr("value", 4);
    const int64_t shape[] = { -1, 2, 2 };
    w_sub(&a, 5, w_tensor_f32(NULL, "4", (float[]){ 1, 2, 3, 4 }, 4));
    w_sub(&n, ATTRIBUTE, a);
    add(&g, n);
    add(&g, node("Mul", "h,c", "m"));
    ints(&g, "shape", "3", shape, 3);
    add(&g, node("Reshape", "m,shape", "r"));
    add(&g, calls("leak", "r", "z"));
    out(&g, "z");
    bytes m = w_model(g, 9, 17);
    w_opset(&m, 8, "local", 1);
    has(&m, leak(true));
    return m;
}

static void torn(void **state) {
    (void)state;
    bytes m = rich_model();
    for (size_t n = 0; n <= m.n; n++) {
        fac_graph *g = NULL;
        fac_error err = { 0 };
        fac_status status = try_bytes(m.p, n, NULL, &g, &err);
        assert_int_equal(status, err.status);
        if (status) assert_null(g);
        if (n == m.n) assert_int_equal(status, FAC_OK);
        fac_graph_free(g);
    }
    for (size_t bit = 0; bit < m.n * 8; bit++) {
        fac_graph *g = NULL;
        m.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (try_bytes(m.p, m.n, NULL, &g, NULL)) assert_null(g);
        fac_graph_free(g);
        m.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(m.p);
}

/* Any one allocation may fail: then that is the error, and nothing leaks. */
static long allocations, fails_at = -1;
bool fac_test_allows(size_t size) {
    (void)size;
    return allocations++ != fails_at;
}

static void lost_memory(void **state) {
    (void)state;
    bytes m = rich_model();
    fac_status status = FAC_E_NOMEM;
    for (fails_at = 0; status; fails_at++) {
        fac_source_files files = { .file = fac_file_memory(m.p, m.n) };
        fac_graph *g = NULL;
        fac_error err = { 0 };
        allocations = 0;
        status = files.file ? fac_onnx_load_files(&files, NULL, &g, &err) : FAC_E_NOMEM;
        if (status != FAC_OK && status != FAC_E_NOMEM)
            fail_msg("allocation %ld: %s", fails_at, err.text);
        if (status) assert_null(g);
        fac_graph_free(g);
    }
    assert_true(fails_at > 20);
    fails_at = -1;
    free(m.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions),       cmocka_unit_test(many_calls_are_opaque),
        cmocka_unit_test(wrong_functions), cmocka_unit_test(torn),
        cmocka_unit_test(lost_memory),
    };
    return cmocka_run_group_tests_name("onnx functions", tests, NULL, NULL);
}
