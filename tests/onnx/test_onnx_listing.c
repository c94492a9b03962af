/* The operators of a file as it spells them: known ones and others, shapes, roles, attributes with
 * defaults, sums. */
#include "allocations.h"
#include "onnx_check.h"
#include <unistd.h>
#include "facula/report/analyze.h"

static fac_error err;

static const char *write_file(bytes model) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/facula-listing-%d.onnx", (int)getpid());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(model.p, 1, model.n, f), model.n);
    fclose(f);
    free(model.p);
    return path;
}

static fac_onnx_listing *list(bytes model) {
    fac_onnx_listing *l = NULL;
    const char *path = write_file(model);
    if (fac_onnx_list_nodes(path, &l, &err)) fail_msg("%s", err.text);
    unlink(path);
    return l;
}

/* x [N,3,8,8] -> Conv with bias -> Foo of com.acme -> Relu -> y; declared: the type of Foo's
 * result. */
static bytes with_foo(const char *declared) {
    static const float none[54];
    bytes g = { 0 };
    in(&g, "x", "N,3,8,8");
    w_sub(&g, INITIALIZER, w_tensor_f32("w", "2,3,3,3", none, 54));
    w_sub(&g, INITIALIZER, w_tensor_f32("b", "2", none, 2));
    bytes conv = named(node("Conv", "x,w,b", "a"), "/features/Conv");
    w_attr_int(&conv, "group", 1);
    add(&g, conv);
    bytes foo = named(domain(node("Foo", "a", "f"), "com.acme"), "foo");
    w_attr_f32(&foo, "alpha", 0.5f);
    add(&g, foo);
    add(&g, named(node("Relu", "f", "y"), "relu"));
    if (declared) w_sub(&g, 13, w_value("f", F32, declared));
    out(&g, "y");
    bytes m = w_model(g, 8, 17);
    w_opset(&m, 8, "com.acme", 3);
    return m;
}

static const fac_onnx_said *attr(const fac_onnx_listed *n, const char *name) {
    for (int k = 0; k < n->nattrs; k++)
        if (!strcmp(n->attrs[k].name, name)) return &n->attrs[k];
    fail_msg("no attribute %s", name);
    return NULL;
}

static void says(const fac_onnx_listed *n, const char *name, const char *value, bool given) {
    const fac_onnx_said *a = attr(n, name);
    assert_string_equal(a->value, value);
    assert_int_equal(a->given, given);
}

static void shape(const fac_onnx_arg *a, const char *want, double size) {
    char text[64] = "?";
    size_t n = 0;
    for (int k = 0; k < a->rank; k++) {
        const fac_onnx_dim *d = &a->dims[k];
        const char *comma = k ? "," : "";
        if (d->size < 0)
            n +=
                (size_t)snprintf(text + n, sizeof text - n, "%s%s", comma, d->name ? d->name : "?");
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", comma, (long long)d->size);
    }
    assert_string_equal(a->rank < 0 ? "unknown" : text, want);
    assert_true(a->bytes == size);
}

static void nodes_of_a_file(void **state) {
    (void)state;
    fac_onnx_listing *l = list(with_foo(NULL));
    assert_int_equal(fac_onnx_listing_count(l), 3);
    const fac_onnx_listed *conv = fac_onnx_listing_node(l, 0), *foo = fac_onnx_listing_node(l, 1);
    const fac_onnx_listed *relu = fac_onnx_listing_node(l, 2);
    assert_string_equal(conv->name, "/features/Conv");
    assert_int_equal(conv->opset, 17);
    assert_int_equal(conv->whose, FAC_ONNX_KNOWN);
    shape(&conv->in[0], "N,3,8,8", 768);
    shape(&conv->in[1], "2,3,3,3", 216);
    shape(&conv->in[2], "2", 8);
    shape(&conv->out[0], "N,2,6,6", 288);
    assert_int_equal(conv->in[0].role, FAC_ONNX_DATA);
    assert_int_equal(conv->in[1].role, FAC_ONNX_WEIGHT);
    assert_int_equal(conv->in[2].role, FAC_ONNX_BIAS);
    says(conv, "group", "1", true);
    says(conv, "dilations", "1,1", false);
    says(conv, "pads", "0,0,0,0", false);
    says(conv, "auto_pad", "NOTSET", false);
    assert_int_equal(foo->whose, FAC_ONNX_UNKNOWN);
    assert_string_equal(foo->domain, "com.acme");
    assert_int_equal(foo->opset, 3);
    says(foo, "alpha", "0.5", true);
    shape(&foo->out[0], "unknown", 0);
    assert_int_equal(relu->whose, FAC_ONNX_KNOWN);
    shape(&relu->out[0], "unknown", 0);
    const fac_onnx_sums s = fac_onnx_listing_sums(l);
    assert_true(s.inputs == 768 && s.results == 288 && s.weights == 224);
    assert_int_equal(s.unknown, 2);
    assert_null(fac_onnx_listing_node(l, 3));
    fac_onnx_listing_free(l);
}

/* What the file declares of the unknown one's result is enough for all that follows. */
static void declared_shapes(void **state) {
    (void)state;
    fac_onnx_listing *l = list(with_foo("N,5,4"));
    shape(&fac_onnx_listing_node(l, 1)->out[0], "N,5,4", 80);
    shape(&fac_onnx_listing_node(l, 2)->out[0], "N,5,4", 80);
    assert_int_equal(fac_onnx_listing_sums(l).unknown, 0);
    fac_onnx_listing_free(l);
}

/* x [N,6] -> Shape, Gather, Unsqueeze, Concat with -1 -> Reshape: sizes are no data, and what they
 * shape is apart. */
static void sums_of_sizes(void **state) {
    (void)state;
    const int64_t zero = 0, rest = -1;
    bytes g = { 0 };
    in(&g, "x", "N,2,3");
    ints(&g, "zero", "", &zero, 1);
    ints(&g, "axes", "1", &zero, 1);
    ints(&g, "rest", "1", &rest, 1);
    add(&g, node("Shape", "x", "s"));
    add(&g, node("Gather", "s,zero", "n"));
    add(&g, node("Unsqueeze", "n,axes", "n1"));
    bytes concat = node("Concat", "n1,rest", "to");
    w_attr_int(&concat, "axis", 0);
    add(&g, concat);
    add(&g, node("Relu", "x", "r"));
    add(&g, node("Reshape", "r,to", "y"));
    out(&g, "y");
    fac_onnx_listing *l = list(w_model(g, 8, 17));
    const fac_onnx_sums s = fac_onnx_listing_sums(l);
    assert_true(s.shapes == 24 + 8 + 16);
    assert_true(s.scalars == 8);
    assert_true(s.results == 48);
    assert_true(s.reshaped == 24);
    fac_onnx_listing_free(l);
}

/* Such a graph can be analysed, but not run. */
static void analysis_goes_on(void **state) {
    (void)state;
    fac_graph *g = load_with(with_foo("N,5,4"), &(fac_onnx_opts){ .opaque = true });
    fac_analysis *a;
    fac_device *cpu;
    fac_program *p = NULL;
    if (fac_analyze(g, 2, &a, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_analysis_totals(a).layers, 3);
    assert_true(fac_analysis_totals(a).macs == 2 * 2 * 27 * 36);
    assert_int_equal(fac_analysis_layer(a, 2)->out.dims.d[0], 2);
    fac_analysis_free(a);
    assert_int_equal(fac_device_open("cpu", NULL, &cpu, &err), FAC_OK);
    fac_tensor *x, *y[1] = { NULL };
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(1, 3, 8, 8), &x, &err), FAC_OK);
    fac_status status = fac_program_new(g, cpu, NULL, &p, &err);
    if (!status) status = fac_program_run(p, &x, y, &err);
    assert_int_not_equal(status, FAC_OK);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_device_free(cpu);
    fac_graph_free(g);
    refuses_with(with_foo("N,5,4"), NULL, FAC_E_UNSUPPORTED, "Foo");
}

/* Every allocation may fail: the listing comes whole or not at all. */
static void lost_memory(void **state) {
    (void)state;
    const char *path = write_file(with_foo(NULL));
    int failures = 0;
    for (long k = 0; k < 5000; k++) {
        fac_onnx_listing *l = NULL;
        allocations_left = k;
        const fac_status status = fac_onnx_list_nodes(path, &l, &err);
        allocations_left = -1;
        if (!status) {
            fac_onnx_listing_free(l);
            break;
        }
        assert_null(l);
        assert_int_equal(status, FAC_E_NOMEM);
        failures++;
    }
    assert_true(failures > 20);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(nodes_of_a_file),
                                        cmocka_unit_test(declared_shapes),
                                        cmocka_unit_test(sums_of_sizes),
                                        cmocka_unit_test(analysis_goes_on),
                                        cmocka_unit_test(lost_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
