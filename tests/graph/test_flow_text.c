/* call, if, loop and scan as text and as ONNX; what is malformed, and where nesting ends. */
#include "flow_models.h"

/* ---- text and ONNX ---- */

static fac_graph *by_file(const fac_graph *g, const fac_onnx_opts *opts) {
    char path[] = "/tmp/facula-flow-XXXXXX.onnx";
    const int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    close(fd);
    fac_graph *again = NULL;
    OK(fac_onnx_save(g, path, NULL, err));
    OK(fac_onnx_load(path, opts, &again, err));
    unlink(path);
    return again;
}

static void texts_read_back(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        fac_graph *g = read_text(models[k]), *copy = fac_graph_clone(g);
        char *text = text_of(g);
        fac_graph *again = read_text(text);
        char *second = text_of(again);
        assert_string_equal(text, second);
        assert_true(fac_hash_equal(fac_graph_hash(g), fac_graph_hash(again)));
        assert_true(fac_hash_equal(fac_graph_hash(g), fac_graph_hash(copy)));
        free(text);
        free(second);
        fac_graph_free(g);
        fac_graph_free(copy);
        fac_graph_free(again);
    }
}

/* The second time round nothing changes any more, and all three compute the same. */
static void onnx_keeps_them(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        fac_graph *g = read_text(models[k]);
        fac_graph *once = by_file(g, NULL), *twice = by_file(once, NULL);
        fac_graph *plain = by_file(g, &(fac_onnx_opts){ .functions = FAC_ONNX_INLINE });
        assert_true(fac_hash_equal(fac_graph_hash(once), fac_graph_hash(twice)));
        if (k) { /* the first one has an open size */
            same_graphs(device, g, once, &usual, 1e-6);
            same_graphs(device, g, plain, &usual, 1e-6);
        }
        int calls = 0;
        for (const fac_node *n = plain->first; n; n = n->next) calls += FAC_IS(n, call);
        assert_int_equal(calls, 0);
        fac_graph_free(g);
        fac_graph_free(once);
        fac_graph_free(twice);
        fac_graph_free(plain);
    }
}

/* Names of what is inside are paths. */
static void paths_of_names(void **state) {
    (void)state;
    fac_graph *g =
        read_text("input x f32[3]\n%1 = call(x) {t0 = exp(x0); t0} @net !layer\noutput y = %1\n");
    fac_graph *out = fac_graph_new();
    fac_value *x = fac_input(out, "x", FAC_F32, fac_shape(3)), *y[1];
    fac_node_expand(out, g->first, &x, y);
    assert_ok(out);
    assert_string_equal(y[0]->node->scope, "net.layer");
    fac_graph_free(g);
    fac_graph_free(out);
}

/* ---- what is malformed ---- */

static void malformed(void **state) {
    (void)state;
    refuses("input x f32[3]\n%1 = call(x)\noutput y = %1\n", FAC_E_ARGUMENT,
            "it is what its body says, and has none");
    refuses("input x f32[3]\n%1 = call(x) {(f32[3], f32[3]) t0 = exp(x0); t0}\noutput y = %1\n",
            FAC_E_ARGUMENT, "its body has 2 inputs, it needs 1");
    refuses("input x f32[3]\n%1 = call(x) {(f64[3]) t0 = exp(x0); t0}\noutput y = %1\n",
            FAC_E_DTYPE, "input 0 of its body is f64, what feeds it is f32");
    refuses("input x f32[3]\n%1 = call(x) {(f32[3,1]) t0 = exp(x0); t0}\noutput y = %1\n",
            FAC_E_SHAPE, "2 dims, what feeds it has 1");
    refuses("input x f32[3]\n%1 = loop(-, -, x) carried=1 {(i64[], bool[], f32[3]) t0 = exp(x2); "
            "x1, t0}\noutput y = %1\n",
            FAC_E_ARGUMENT, "no trip count, and its condition stays true");
    refuses("input x f32[3]\n%1 = loop(i64(2), -, x) carried=2 {(i64[], bool[], f32[3]) t0 = "
            "exp(x2); x1, t0}\noutput y = %1\n",
            FAC_E_ARGUMENT, "2 carried values, and 1 inputs for them");
    refuses("input x f32[3]\n%1 = loop(i64(2), -, x) carried=1 {(i64[], bool[], f32[3]) t0 = "
            "cast(x2) to=f64; x1, t0}\n"
            "output y = %1\n",
            FAC_E_SHAPE, "carried value 0 is f32 with 1 dims, after an iteration f64");
    refuses("input x f32[3]\n%1 = loop(i64(2), -, x) carried=1 {(i64[], bool[], f32[3]) t0 = "
            "exp(x2); t0, t0}\noutput y = %1\n",
            FAC_E_DTYPE, "it must be one bool");
    refuses("input c bool[2]\ninput x f32[3]\n%1 = if(c, x) {t0 = exp(x1); t0} {t0 = neg(x1); "
            "t0}\noutput y = %1\n",
            FAC_E_SHAPE, "cond must be one element");
    refuses("input c bool[]\ninput x f32[3]\n%1 = if(c, x) {t0 = exp(x1); t0}\noutput y = %1\n",
            FAC_E_ARGUMENT, "has none");
    refuses(
        "input c bool[]\ninput x f32[3]\n%1 = if(c, x) {t0 = exp(x1); t0} {x0}\noutput y = %1\n",
        FAC_E_UNSUPPORTED, "output 0 is f32 or bool");
    refuses("input x f32[3]\n%1 = scan(x) slices=2 {x0}\noutput y = %1\n", FAC_E_ARGUMENT,
            "2 inputs for slices");
    refuses("input x f32[]\n%1 = scan(x) slices=1 {x0}\noutput y = %1\n", FAC_E_SHAPE,
            "no such axis");
}

/* Bodies hold bodies down to a limit. */
static void nesting_ends(void **state) {
    (void)state;
    fac_graph *body = fac_graph_new();
    fac_output(body, "y", fac_neg(fac_input(body, "x", FAC_F32, fac_shape(2))));
    int depth = 0;
    for (; depth < 100; depth++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2)), *y;
        fac_call(g, NULL, body, 1, &x, &y);
        body = g;
        if (g->error.status) break;
        fac_output(g, "y", y);
    }
    assert_int_equal(depth, FAC_BODY_DEPTH);
    assert_int_equal(body->error.status, FAC_E_UNSUPPORTED);
    assert_non_null(strstr(body->error.text, "nested more than 16 deep"));
    fac_graph_free(body);
}

static void huge_trip_counts(void **state) {
    (void)state;
    /* no gradient without unrolling, which has a limit; and no memory for so many rows */
    fac_graph *g = read_text("input x f32[3]\n%1, %2 = loop(i64(1000000000000), -, x) carried=1 "
                             "{(i64[], bool[], f32[3]) "
                             "t0 = exp(x2); x1, t0, t0}\noutput y = %1\noutput z = %2\n");
    fac_value *x = fac_graph_find(g, "x"), *dx;
    fac_grad(fac_sum(fac_graph_output(g, 0), (fac_dims){ 0 }, false), 1, &x, &dx);
    assert_int_equal(g->error.status, FAC_E_UNSUPPORTED);
    assert_non_null(strstr(g->error.text, "loop has no gradient"));
    fac_graph_free(g);
    /* many iterations run without being unrolled */
    same("input x f32[3]\n%1 = loop(i64(30000), -, x) carried=1 {(i64[], bool[], f32[3]) t0 = "
         "neg(x2); x1, t0}\noutput y = %1\n",
         "input x f32[3]\n%1 = identity(x)\noutput y = %1\n", &usual);
}

/* A node of the rest that changes sizes of its own by contents the front computes. */
static void contents_steer_after_the_cut(void **state) {
    (void)state;
    fac_graph *g = read_text(
        "input x f32[4]\n%1 = greater(x, -2)\n%2 = cast(%1) to=i64\n%3 = sum(%2, i64{0})\n"
        "%4 = range(i64(0), %3, i64(1))\n%5 = cast(%4) to=f32\n%6 = add(%5, 1)\noutput y = %6\n");
    fac_tensor *out[MOST];
    run_on(device, g, &usual, out);
    int64_t n;
    double *y = doubles(out[0], &n);
    assert_int_equal(n, 4);
    for (int k = 0; k < 4; k++) assert_true(y[k] == k + 1);
    free(y);
    fac_tensor_free(out[0]);
    fac_graph_free(g);
}

/* The same where the host cannot look. */
/* A scalar has no indices: what is there shows in the second size alone. */
static void places_of_a_scalar(void **state) {
    (void)state;
    fac_graph *g = read_text("input x bool[]\n%1 = cast(x) to=i64\n%2 = nonzero(x, %1)\noutput "
                             "count = %1\noutput places = %2\n");
    fac_tensor *out[MOST];
    run_on(device, g, &usual, out);
    const fac_type places = fac_tensor_type(out[1]);
    assert_int_equal(places.dims.n, 2);
    assert_int_equal(places.dims.d[0], 0);
    assert_int_equal(places.dims.d[1], *(const int64_t *)fac_tensor_data(out[0]));
    for (int i = 0; i < 2; i++) fac_tensor_free(out[i]);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_read_back),
        cmocka_unit_test(onnx_keeps_them),
        cmocka_unit_test(paths_of_names),
        cmocka_unit_test(malformed),
        cmocka_unit_test(nesting_ends),
        cmocka_unit_test(huge_trip_counts),
        cmocka_unit_test(contents_steer_after_the_cut),
        cmocka_unit_test(places_of_a_scalar),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
