/* Models to begin with: each message, each way to store a tensor, functions, some real ops with
 * attributes. */
#include "fuzz.h"
#include "../support/onnx_writer.h"

enum {
    NODE = 1,
    INITIALIZER = 5,
    INPUT = 11,
    OUTPUT = 12,
    FUNCTIONS = 25,
    ATTRIBUTE = 5,
    F32 = 1,
    I64 = 7,
    BOOL = 9
};

static void attr_ints(bytes *node, const char *name, int64_t a, int64_t b) {
    bytes at = w_attr(name, 7);
    w_int(&at, 8, a);
    w_int(&at, 8, b);
    w_sub(node, ATTRIBUTE, at);
}

static void give(fac_seed_taker *take, void *self, const char *name, bytes model) {
    take(self, name, model.p, model.n);
    free(model.p);
}

static bytes ends(const char *dims) {
    bytes g = { 0 };
    w_sub(&g, INPUT, w_value("x", F32, dims));
    w_sub(&g, OUTPUT, w_value("y", F32, NULL));
    return g;
}

static bytes convolution(void) {
    bytes g = ends("N,1,4,4"), n = w_node("Conv", "x,w", "c");
    attr_ints(&n, "kernel_shape", 2, 2);
    attr_ints(&n, "strides", 2, 2);
    w_sub(&g, NODE, n);
    n = w_node("Flatten", "c", "f");
    w_attr_int(&n, "axis", 1);
    w_sub(&g, NODE, n);
    w_sub(&g, NODE, w_node("Softmax", "f", "y"));
    w_sub(&g, INITIALIZER, w_tensor_f32("w", "1,1,2,2", (float[]){ 1, 2, 3, 4 }, 4));
    return w_model(g, 8, 17);
}

/* An integer or float initializer of three elements in one storage field, added to the input. */
static bytes stored(int dtype, int field, const void *data, size_t n, bool repeated) {
    bytes g = ends("3"), t = w_tensor("w", dtype, "3");
    if (repeated)
        for (size_t k = 0; k < n; k++) w_int(&t, field, ((const uint8_t *)data)[k]);
    else
        w_bytes(&t, field, data, n);
    w_sub(&g, INITIALIZER, t);
    bytes cast = w_node("Cast", "w", "f");
    w_attr_int(&cast, "to", F32);
    w_sub(&g, NODE, cast);
    w_sub(&g, NODE, w_node("Add", "x,f", "y"));
    return w_model(g, 8, 17);
}

static bytes reshaped(void) {
    bytes g = ends("N,2,2"), n = w_node("Constant", "", "s"), a = w_attr("value_ints", 7);
    w_int(&a, 8, -1);
    w_int(&a, 8, 4);
    w_sub(&n, ATTRIBUTE, a);
    w_sub(&g, NODE, w_node("Reshape", "x,s", "y"));
    w_sub(&g, NODE, n);
    return w_model(g, 8, 17);
}

static bytes called(void) {
    bytes g = ends("4"), f = { 0 }, n = w_node("LeakyRelu", "a", "b"), ref = w_attr("alpha", 1),
          d = w_attr("slope", 1);
    bytes call = w_node("leak", "x", "y");
    w_text(&call, 7, "local");
    w_attr_f32(&call, "slope", 0.5f);
    w_sub(&g, NODE, call);
    w_text(&ref, 21, "slope");
    w_sub(&n, ATTRIBUTE, ref);
    w_text(&f, 1, "leak");
    w_text(&f, 10, "local");
    w_names(&f, 4, "a");
    w_names(&f, 5, "b");
    w_opset(&f, 9, "", 17);
    w_sub(&f, 7, n);
    w_f32(&d, 2, 0.25f);
    w_sub(&f, 11, d);
    bytes m = w_model(g, 9, 17);
    w_opset(&m, 8, "local", 1);
    w_sub(&m, FUNCTIONS, f);
    return m;
}

/* ---- graphs inside graphs ---- */

static void attr_graph(bytes *node, const char *name, bytes graph) {
    bytes at = w_attr(name, 5);
    w_sub(&at, 6, graph);
    w_sub(node, ATTRIBUTE, at);
}

static bytes looped(void) {
    bytes body = { 0 }, n = w_node("Loop", "n,,x", "z,y"), g = ends("2");
    w_sub(&body, INPUT, w_value("i", I64, ""));
    w_sub(&body, INPUT, w_value("go", BOOL, ""));
    w_sub(&body, INPUT, w_value("v", F32, "2"));
    w_sub(&body, NODE, w_node("Mul", "v,w", "next"));
    w_sub(&body, NODE, w_node("Add", "next,x", "row"));
    w_sub(&body, NODE, w_node("Identity", "go", "goes"));
    w_sub(&body, OUTPUT, w_value("goes", BOOL, ""));
    w_sub(&body, OUTPUT, w_value("next", F32, "2"));
    w_sub(&body, OUTPUT, w_value("row", F32, "2"));
    attr_graph(&n, "body", body);
    w_sub(&g, NODE, n);
    w_sub(&g, INITIALIZER, w_tensor_f32("w", "2", (float[]){ 1, 2 }, 2));
    bytes trips = w_tensor("n", I64, "");
    w_bytes(&trips, 9, &(int64_t){ 3 }, 8);
    w_sub(&g, INITIALIZER, trips);
    return w_model(g, 8, 17);
}

static bytes branch(const char *type, const char *out) {
    bytes b = { 0 };
    w_sub(&b, NODE, w_node(type, "x", out));
    w_sub(&b, OUTPUT, w_value(out, F32, "2"));
    return b;
}

static bytes branched(void) {
    bytes n = w_node("If", "c", "y"), g = ends("2");
    w_sub(&g, INPUT, w_value("c", BOOL, ""));
    attr_graph(&n, "then_branch", branch("Exp", "a"));
    attr_graph(&n, "else_branch", branch("Neg", "b"));
    w_sub(&g, NODE, n);
    return w_model(g, 8, 17);
}

static bytes scanned(void) {
    bytes body = { 0 }, n = w_node("Scan", "s,x", "z,y"), g = ends("3,2");
    w_sub(&g, INPUT, w_value("s", F32, "2"));
    w_sub(&body, INPUT, w_value("v", F32, "2"));
    w_sub(&body, INPUT, w_value("e", F32, "2"));
    w_sub(&body, NODE, w_node("Add", "v,e", "next"));
    w_sub(&body, NODE, w_node("Exp", "next", "row"));
    w_sub(&body, OUTPUT, w_value("next", F32, "2"));
    w_sub(&body, OUTPUT, w_value("row", F32, "2"));
    w_attr_int(&n, "num_scan_inputs", 1);
    attr_graph(&n, "body", body);
    w_sub(&g, NODE, n);
    return w_model(g, 8, 17);
}

/* A call that stays one. */
static bytes kept(void) {
    bytes g = ends("4"), f = { 0 }, call = w_node("twice", "x", "y");
    w_text(&call, 7, "facula.local");
    w_sub(&g, NODE, call);
    w_text(&f, 1, "twice");
    w_text(&f, 10, "facula.local");
    w_names(&f, 4, "a");
    w_names(&f, 5, "b");
    w_opset(&f, 9, "", 17);
    w_sub(&f, 7, w_node("Add", "a,a", "b"));
    bytes m = w_model(g, 9, 17);
    w_opset(&m, 8, "facula.local", 1);
    w_sub(&m, FUNCTIONS, f);
    return m;
}

void fac_seeds(fac_seed_taker *take, void *self) {
    static const uint8_t raw[24] = { 1, 0, 2 };
    give(take, self, "convolution", convolution());
    give(take, self, "reshaped", reshaped());
    give(take, self, "called", called());
    give(take, self, "looped", looped());
    give(take, self, "branched", branched());
    give(take, self, "scanned", scanned());
    give(take, self, "kept", kept());
    give(take, self, "raw_f32", stored(1, 9, raw, 12, false));
    give(take, self, "packed_f32", stored(1, 4, raw, 12, false));
    give(take, self, "packed_i64", stored(7, 7, "\x01\x02\x03", 3, false));
    give(take, self, "single_i64", stored(7, 7, "\x01\x02\x03", 3, true));
    give(take, self, "single_f16", stored(10, 5, "\x01\x02\x03", 3, true));
    give(take, self, "packed_u32", stored(12, 11, "\x01\x02\x03", 3, false));
    give(take, self, "raw_f64", stored(11, 9, raw, 24, false));
    give(take, self, "bools", stored(9, 9, raw, 3, false));
}
