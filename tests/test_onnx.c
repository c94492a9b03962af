/* Importing models: what becomes of initializers, inputs, names, functions; what is refused, and in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "facula/op.h"
#include "facula/program.h"
#include "onnx/load.h"
#include "onnx_writer.h"

enum { NODE = 1, INITIALIZER = 5, INPUT = 11, OUTPUT = 12, SPARSE = 15, FUNCTIONS = 25, ATTRIBUTE = 5, DOMAIN = 7 };
enum { F32 = 1, I64 = 7, F8 = 17 };

/* ---- building ---- */

static bytes node(const char *type, const char *in, const char *out) { return w_node(type, in, out); }
static void add(bytes *graph, bytes n) { w_sub(graph, NODE, n); }
static void in(bytes *graph, const char *name, const char *dims) { w_sub(graph, INPUT, w_value(name, F32, dims)); }
static void out(bytes *graph, const char *name) { w_sub(graph, OUTPUT, w_value(name, F32, NULL)); }
static void weights(bytes *graph, const char *name, const char *dims, size_t n) {
    float x[16];
    for (size_t k = 0; k < n; k++) x[k] = (float)k + 1;
    w_sub(graph, INITIALIZER, w_tensor_f32(name, dims, x, n));
}
static void ints(bytes *graph, const char *name, const char *dims, const int64_t *x, size_t n) {
    bytes t = w_tensor(name, I64, dims);
    w_bytes(&t, 9, x, n * sizeof *x);
    w_sub(graph, INITIALIZER, t);
}
static bytes named(bytes n, const char *name) {
    w_text(&n, 3, name);
    return n;
}
static bytes domain(bytes n, const char *name) {
    w_text(&n, DOMAIN, name);
    return n;
}

/* ---- loading ---- */

static fac_status try_bytes(const void *p, size_t n, const fac_onnx_opts *opts, fac_graph **g, fac_error *err) {
    fac_source_files files = { .file = fac_file_memory(p, n) };
    assert_non_null(files.file);
    return fac_onnx_load_files(&files, opts, g, err);
}
static fac_graph *load_with(bytes model, const fac_onnx_opts *opts) {
    fac_graph *g = NULL;
    fac_error err = { 0 };
    if (try_bytes(model.p, model.n, opts, &g, &err)) fail_msg("%s: %s", fac_status_name(err.status), err.text);
    free(model.p);
    return g;
}
static fac_graph *load(bytes graph) { return load_with(w_model(graph, 8, 17), NULL); }

static void refuses_with(bytes model, const fac_onnx_opts *opts, fac_status status, const char *text) {
    fac_graph *g = NULL;
    fac_error err = { 0 };
    fac_status got = try_bytes(model.p, model.n, opts, &g, &err);
    free(model.p);
    assert_null(g);
    if (!strstr(err.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, err.text);
    assert_int_equal(got, status);
}
static void refuses(bytes graph, fac_status status, const char *text) { refuses_with(w_model(graph, 8, 17), NULL, status, text); }

/* Runs a graph with inputs of f32[n] and one output of f32[n]. */
static void runs(fac_graph *g, const float *x, const float *want, int n) {
    fac_device *cpu;
    fac_program *p;
    fac_tensor *from[1] = { NULL }, *to[1] = { NULL };
    fac_error err = { 0 };
    float got[16];
    assert_int_equal(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &cpu, &err), FAC_OK);
    if (x) assert_int_equal(fac_tensor_borrow(FAC_F32, fac_shape(n), NULL, x, NULL, NULL, from, &err), FAC_OK);
    if (fac_program_new(g, cpu, NULL, &p, &err) || fac_program_run(p, from, to, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_read(to[0], got, (size_t)n * sizeof *got, &err), FAC_OK);
    for (int k = 0; k < n; k++)
        if (got[k] != want[k]) fail_msg("[%d] is %g, not %g", k, (double)got[k], (double)want[k]);
    fac_tensor_free(from[0]);
    fac_tensor_free(to[0]);
    fac_program_free(p);
    fac_device_free(cpu);
    fac_graph_free(g);
}

/* ---- what becomes of what ---- */

static bytes small_graph(void) {
    bytes g = { 0 };
    in(&g, "x", "N,4");
    weights(&g, "w", "4", 4);
    add(&g, named(node("Add", "x,w", "h"), "/block/Add"));
    add(&g, node("Relu", "h", "y"));
    out(&g, "y");
    return g;
}

static void names_and_types(void **state) {
    (void)state;
    fac_graph *g = load(small_graph());
    assert_int_equal(fac_graph_inputs(g), 1);
    assert_int_equal(fac_graph_params(g), 1);
    assert_int_equal(fac_graph_outputs(g), 1);
    assert_string_equal(fac_graph_output_name(g, 0), "y");
    fac_value *x = fac_graph_find(g, "x"), *h = fac_graph_find(g, "h"), *y = fac_graph_find(g, "y");
    assert_ptr_equal(x, fac_graph_input(g, 0));
    assert_ptr_equal(y, fac_graph_output(g, 0));
    assert_string_equal(fac_value_name(fac_graph_param(g, 0)), "w");
    assert_int_equal(fac_value_type(y).dims.d[0], fac_symbol(g, "N"));
    assert_string_equal(h->node->name, "block.Add");        /* of the file, '/' as the scopes have it */
    assert_string_equal(y->node->name, "y");                /* without a name of its own: of its output */
    fac_graph_free(g);
}

static void runs_right(void **state) {
    (void)state;
    const float x[] = { -5, -1, 0, 2 }, want[] = { 0, 1, 3, 6 };
    bytes g = { 0 };
    in(&g, "x", "4");
    weights(&g, "w", "4", 4);
    add(&g, node("Add", "x,w", "h"));
    add(&g, node("Relu", "h", "y"));
    out(&g, "y");
    runs(load(g), x, want, 4);
}

static void leaves(void **state) {
    (void)state;
    const int64_t shape[] = { 2, 2 };
    bytes g = { 0 };
    in(&g, "x", "4");
    in(&g, "w", "4");                                       /* IR 3 lists initializers among the inputs */
    weights(&g, "w", "4", 4);
    weights(&g, "scalar", "", 1);
    weights(&g, "unused", "4", 4);
    ints(&g, "shape", "2", shape, 2);
    add(&g, node("Mul", "x,w", "a"));
    add(&g, node("Add", "a,scalar", "b"));
    add(&g, node("Reshape", "b,shape", "y"));
    out(&g, "y");
    out(&g, "w");
    fac_graph *made = load_with(w_model(g, 3, 13), NULL);
    assert_int_equal(fac_graph_inputs(made), 1);
    assert_int_equal(fac_graph_params(made), 1);            /* neither scalars nor integers, nor what nobody reads */
    fac_value *w = fac_graph_find(made, "w"), *scalar = fac_graph_find(made, "scalar"), *s = fac_graph_find(made, "shape");
    assert_int_equal(w->leaf, FAC_PARAM);
    assert_int_equal(scalar->leaf, FAC_CONST);
    assert_int_equal(s->leaf, FAC_CONST);
    assert_null(fac_graph_find(made, "unused"));
    assert_ptr_equal(fac_graph_output(made, 1), w);
    fac_type type = fac_value_type(fac_graph_output(made, 0));
    assert_int_equal(type.dims.n, 2);
    assert_int_equal(type.dims.d[1], 2);
    fac_graph_free(made);
}

static void any_order(void **state) {
    (void)state;
    const float x[] = { -5, -1, 0, 2 }, want[] = { 0, 0, 0, 2 };
    bytes g = { 0 };
    out(&g, "y");
    add(&g, node("Relu", "c", "y"));
    add(&g, node("Relu", "b", "c"));
    add(&g, node("Relu", "x", "a"));
    add(&g, node("Relu", "a", "b"));
    in(&g, "x", "4");
    runs(load(g), x, want, 4);
}

static void constants(void **state) {
    (void)state;
    static const float two[] = { 2, 3 };
    bytes g = { 0 }, n, a, packed = { 0 };
    for (int form = 0; form < 5; form++) {
        static const char *const outputs[] = { "tensor", "f", "fs", "i", "is" };
        n = node("Constant", "", outputs[form]);
        switch (form) {
        case 0: a = w_attr("value", 4), w_sub(&a, 5, w_tensor_f32(NULL, "2", two, 2)); break;
        case 1: a = w_attr("value_float", 1), w_f32(&a, 2, 1.5f); break;
        case 2: a = w_attr("value_floats", 6), w_f32(&a, 7, 4), w_f32(&a, 7, 5); break;
        case 3: a = w_attr("value_int", 2), w_int(&a, 3, -7); break;
        default: a = w_attr("value_ints", 7), w_varint(&packed, 8), w_varint(&packed, (uint64_t)-9), w_sub(&a, 8, packed);
        }
        w_sub(&n, ATTRIBUTE, a);
        add(&g, n);
        out(&g, outputs[form]);
    }
    n = node("Constant", "", "s");
    a = w_attr("value_string", 3);
    w_text(&a, 4, "hello");
    w_sub(&n, ATTRIBUTE, a);
    add(&g, n);
    out(&g, "s");
    fac_graph *made = load(g);
    float f[2];
    int64_t i[2];
    char *s;
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "tensor")), f, 8, NULL), FAC_OK);
    assert_true(f[0] == 2 && f[1] == 3);
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "f")), f, 4, NULL), FAC_OK);
    assert_true(f[0] == 1.5f);
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "fs")), f, 8, NULL), FAC_OK);
    assert_true(f[0] == 4 && f[1] == 5);
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "i")), i, 8, NULL), FAC_OK);
    assert_int_equal(i[0], -7);
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "is")), i, 16, NULL), FAC_OK);
    assert_true(i[0] == 8 && i[1] == -9);
    assert_int_equal(fac_tensor_read(fac_value_tensor(fac_graph_find(made, "s")), &s, sizeof s, NULL), FAC_OK);
    assert_string_equal(s, "hello");
    fac_graph_free(made);
}

/* ---- shapes ---- */

static void shapes(void **state) {
    (void)state;
    const char *inputs[] = { "a" };
    fac_dims dims[] = { fac_shape(3, 5) };
    fac_onnx_opts opts = { 1, inputs, dims };
    bytes g = { 0 };
    in(&g, "a", "N,M");
    in(&g, "b", "N,?");
    in(&g, "c", "-1,4");
    for (int k = 0; k < 3; k++) out(&g, (const char *[]){ "a", "b", "c" }[k]);
    bytes model = w_model(g, 8, 17), again = { 0 };
    w_raw(&again, model.p, model.n);
    fac_graph *made = load_with(model, NULL);
    fac_dims a = fac_value_type(fac_graph_input(made, 0)).dims, b = fac_value_type(fac_graph_input(made, 1)).dims;
    fac_dims c = fac_value_type(fac_graph_input(made, 2)).dims;
    assert_true(a.d[0] < 0 && a.d[0] == b.d[0] && a.d[1] < 0 && a.d[1] != a.d[0]);
    assert_true(b.d[1] < 0 && b.d[1] != a.d[1] && c.d[0] < 0 && c.d[0] != b.d[1]);
    assert_int_equal(c.d[1], 4);
    fac_graph_free(made);
    made = load_with(again, &opts);                         /* N is then 3 wherever it stands */
    b = fac_value_type(fac_graph_input(made, 1)).dims;
    assert_int_equal(b.d[0], 3);
    assert_true(b.d[1] < 0);
    fac_graph_free(made);
}

static bytes two_inputs(const char *a, const char *b) {
    bytes g = { 0 };
    in(&g, "a", a);
    in(&g, "b", b);
    add(&g, node("Relu", "a", "y"));
    out(&g, "y");
    return w_model(g, 8, 17);
}

static void given_shapes(void **state) {
    (void)state;
    const char *inputs[] = { "a", "b" }, *wrong[] = { "c" };
    fac_dims dims[] = { fac_shape(3, 5), fac_shape(4) };
    fac_onnx_opts opts = { 2, inputs, dims };
    refuses_with(two_inputs("N,M", "N"), &opts, FAC_E_SHAPE, "dim N is given as 3 and as 4");
    refuses_with(two_inputs("N", "N"), &opts, FAC_E_SHAPE, "input \"a\" has 1 dims, its given shape has 2");
    refuses_with(two_inputs("N", "N"), &(fac_onnx_opts){ 1, wrong, dims }, FAC_E_ARGUMENT, "\"c\", which is no input");
    refuses_with(two_inputs(NULL, "N"), NULL, FAC_E_SHAPE, "input \"a\" has no shape");
    fac_graph *g = load_with(two_inputs(NULL, "M"), &opts);
    fac_dims a = fac_value_type(fac_graph_input(g, 0)).dims;
    assert_int_equal(a.n, 2);
    assert_int_equal(a.d[1], 5);
    fac_graph_free(g);
    refuses_with(two_inputs("-2", "N"), NULL, FAC_E_FORMAT, "input \"a\" has a dim of -2");
    refuses_with(two_inputs("1,1,1,1,1,1,1,1,1", "N"), NULL, FAC_E_UNSUPPORTED, "9 dims");
    refuses_with(two_inputs("4611686018427387904,4611686018427387904", "N"), NULL, FAC_E_SHAPE, "'a'");
}

/* ---- graphs that are none ---- */

static void wrong_graphs(void **state) {
    (void)state;
    bytes g = { 0 };
    in(&g, "x", "4");
    add(&g, named(node("Add", "x,b", "a"), "first"));
    add(&g, node("Relu", "a", "b"));
    out(&g, "b");
    refuses(g, FAC_E_FORMAT, "part of a cycle");
    g = (bytes){ 0 };
    add(&g, named(node("Relu", "y", "y"), "self"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "node \"self\" (Relu) is part of a cycle: its input \"y\"");
    g = (bytes){ 0 };
    add(&g, named(node("Relu", "ghost", "y"), "n1"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "node \"n1\" (Relu): its input \"ghost\" is not defined");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    add(&g, node("Relu", "x", "y"));
    add(&g, node("Neg", "x", "y"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "value \"y\" is defined twice");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    in(&g, "x", "4");
    out(&g, "x");
    refuses(g, FAC_E_FORMAT, "value \"x\" is defined twice");
    g = (bytes){ 0 };
    weights(&g, "w", "4", 4);
    weights(&g, "w", "4", 4);
    out(&g, "w");
    refuses(g, FAC_E_FORMAT, "value \"w\" is defined twice");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    weights(&g, "w", "4", 4);
    add(&g, node("Relu", "x", "w"));
    out(&g, "w");
    refuses(g, FAC_E_FORMAT, "value \"w\" is defined twice");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    refuses(g, FAC_E_FORMAT, "no outputs");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "value \"y\" is not defined");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    out(&g, "x");
    out(&g, "x");
    refuses(g, FAC_E_ARGUMENT, "two outputs named 'x'");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    add(&g, node("", "x", "y"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "node \"y\" has no op type");
    g = (bytes){ 0 };
    w_sub(&g, INITIALIZER, w_tensor_f32("w", "3", (float[]){ 1, 2 }, 2));
    out(&g, "w");
    refuses(g, FAC_E_FORMAT, "initializer \"w\": 8 bytes of data where its type needs 12");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    bytes many = named(node("Relu", "x", "y"), "many");
    for (int k = 0; k < 2000; k++) w_attr_int(&many, "a", k);
    add(&g, many);
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "node \"many\" has 2000 attributes");
    refuses_with(w_model((bytes){ 0 }, 2, 7), NULL, FAC_E_UNSUPPORTED, "IR version 2");
    bytes nothing = { 0 };
    w_int(&nothing, 1, 8);
    refuses_with(nothing, NULL, FAC_E_FORMAT, "no graph");
    nothing = (bytes){ 0 };
    w_raw(&nothing, "\x89PNG\r\n\x1a\n", 8);
    refuses_with(nothing, NULL, FAC_E_FORMAT, "not an ONNX model");
}

/* ---- what is not ours ---- */

static void missing(void **state) {
    (void)state;
    bytes g = { 0 };
    in(&g, "x", "4");
    add(&g, named(node("Relu", "x", "a"), "fine"));
    add(&g, named(node("Frobnicate", "a", "b"), "here"));
    add(&g, node("Loopy", "b", "c"));
    add(&g, node("Frobnicate", "c", "d"));
    add(&g, domain(node("Foo", "d", "e"), "com.acme"));
    w_sub(&g, INPUT, w_value("f8", F8, "4"));
    out(&g, "e");
    bytes m = w_model(g, 8, 17), again = { 0 };
    w_raw(&again, m.p, m.n);
    w_opset(&m, 8, "com.acme", 3);
    refuses_with(m, NULL, FAC_E_UNSUPPORTED,
                 "node \"here\": op Frobnicate of domain ai.onnx, opset 17, is not supported (2 times); also missing: "
                 "Loopy (1), com.acme:Foo (1), element type float8e4m3fn (1)");
    refuses_with(again, NULL, FAC_E_FORMAT, "node \"e\": op Foo is of domain \"com.acme\", which the model does not import");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    add(&g, node("Softmax", "x", "y"));
    out(&g, "y");
    refuses_with(w_model(g, 8, 0), NULL, FAC_E_FORMAT, "does not import");
    static const char *const kinds[] = { "sequence", "map", "opaque", "sparse tensor", "optional" };
    static const int fields[] = { 4, 5, 7, 8, 9 };
    for (int k = 0; k < 5; k++) {
        bytes value = { 0 }, type = { 0 };
        char text[64];
        g = (bytes){ 0 };
        w_sub(&type, fields[k], (bytes){ 0 });
        w_text(&value, 1, "x");
        w_sub(&value, 2, type);
        w_sub(&g, INPUT, value);
        out(&g, "x");
        snprintf(text, sizeof text, "input \"x\": type %s is not supported", kinds[k]);
        refuses(g, FAC_E_UNSUPPORTED, text);
    }
    g = (bytes){ 0 };
    in(&g, "x", "4");
    out(&g, "x");
    w_sub(&g, SPARSE, (bytes){ 0 });
    refuses(g, FAC_E_UNSUPPORTED, "sparse initializers");
}

/* An op at an opset that it does not have: found in the descriptors, so that the test stays true when ops grow. */
static void wrong_opset(void **state) {
    (void)state;
    for (const fac_op *const *op = fac_ops; *op; op++)
        for (const fac_onnx *how = (*op)->onnx; how && how->type; how++)
            if (!strcmp(how->type, "Relu") && how->since > 1) {
                bytes g = { 0 };
                char text[64];
                in(&g, "x", "4");
                add(&g, named(node("Relu", "x", "y"), "r"));
                out(&g, "y");
                snprintf(text, sizeof text, "opset %d and later, not for opset %d", how->since, how->since - 1);
                refuses_with(w_model(g, 8, how->since - 1), NULL, FAC_E_UNSUPPORTED, text);
                return;
            }
    skip();
}

static void attributes(void **state) {
    (void)state;
    bytes g = { 0 }, n = node("Relu", "x", "y");
    in(&g, "x", "4");
    w_attr_int(&n, "slope", 3);
    add(&g, n);
    out(&g, "y");
    refuses(g, FAC_E_UNSUPPORTED, "attribute slope of Relu is not supported");
    g = (bytes){ 0 }, n = node("LeakyRelu", "x", "y");
    in(&g, "x", "4");
    w_attr_int(&n, "alpha", 3);
    add(&g, named(n, "leak"));
    out(&g, "y");
    refuses(g, FAC_E_FORMAT, "leak: attribute alpha is of kind int, not float");
    g = (bytes){ 0 }, n = node("Softmax", "x", "y");
    in(&g, "x", "4,4");
    w_attr_int(&n, "axis", 1);
    w_attr_int(&n, "axes", 1);
    add(&g, n);
    out(&g, "y");
    refuses(g, FAC_E_UNSUPPORTED, "attribute axes of Softmax is not supported");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    n = node("LeakyRelu", "x", "y");                        /* the oldest files do not say of which kind an attribute is */
    bytes a = w_attr("alpha", 0);
    w_f32(&a, 2, 0.5f);
    w_sub(&n, ATTRIBUTE, a);
    add(&g, n);
    out(&g, "y");
    runs(load(g), (float[]){ -4, -2, 0, 2 }, (float[]){ -2, -1, 0, 2 }, 4);
    g = (bytes){ 0 };
    in(&g, "x", "4");
    add(&g, named(node("Add", "x", "y"), "lonely"));
    out(&g, "y");
    refuses(g, FAC_E_ARGUMENT, "lonely");
    g = (bytes){ 0 };
    in(&g, "x", "4");
    in(&g, "z", "3");
    add(&g, named(node("Add", "x,z", "y"), "/deep/inside/Add"));
    out(&g, "y");
    refuses(g, FAC_E_SHAPE, "deep.inside.Add");
}

/* ---- functions ---- */

typedef struct function { bytes b; } function;

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
    } else w_text(&f.b, 6, "slope");
    return f;
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
    does(&f, node("Relu", "outside", "b"));                 /* a function sees its inputs only */
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
    /* each of 40 functions calls the next one twice */
    m = main_graph(calls("f0", "x", "y"));
    for (int k = 0; k < 40; k++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "f%d", k);
        snprintf(next, sizeof next, "f%d", k + 1);
        f = make(name, "a", "c");
        does(&f, k < 39 ? calls(next, "a", "b") : node("Relu", "a", "b"));
        does(&f, k < 39 ? calls(next, "b", "c") : node("Relu", "b", "c"));
        has(&m, f);
    }
    refuses_with(m, NULL, FAC_E_UNSUPPORTED, "too many nodes");
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

/* ---- damage ---- */

/* A model with something of everything: every prefix and every turned bit is an error or a graph. */
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
        if (status != FAC_OK && status != FAC_E_NOMEM) fail_msg("allocation %ld: %s", fails_at, err.text);
        if (status) assert_null(g);
        fac_graph_free(g);
    }
    assert_true(fails_at > 20);
    fails_at = -1;
    free(m.p);
}

/* The file itself is found wanting, by name. */
static void files(void **state) {
    (void)state;
    fac_graph *g = NULL;
    fac_error err;
    assert_int_equal(fac_onnx_load("/nowhere/model.onnx", NULL, &g, &err), FAC_E_IO);
    assert_non_null(strstr(err.text, "/nowhere/model.onnx"));
    assert_int_equal(fac_onnx_load("/", NULL, &g, &err), FAC_E_IO);
    assert_int_equal(fac_onnx_load("/dev/null", NULL, &g, &err), FAC_E_IO);
    assert_null(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_types), cmocka_unit_test(runs_right), cmocka_unit_test(leaves), cmocka_unit_test(any_order),
        cmocka_unit_test(constants), cmocka_unit_test(shapes), cmocka_unit_test(given_shapes), cmocka_unit_test(wrong_graphs),
        cmocka_unit_test(missing), cmocka_unit_test(wrong_opset), cmocka_unit_test(attributes), cmocka_unit_test(functions),
        cmocka_unit_test(wrong_functions), cmocka_unit_test(torn), cmocka_unit_test(lost_memory), cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
