/* ONNX export: what is written is read back and computes the same.  Every case of every op that
 * ONNX can say, at several opsets; networks of the zoo; leaves, symbols and outputs in all their
 * forms; and what cannot be said is refused. */
#include "onnx_save_check.h"
#include "op_list.h"

/* ---- every op ---- */

static double epsilon(fac_dtype d) {
    return d == FAC_F16    ? 0x1p-10
           : d == FAC_BF16 ? 0x1p-7
           : d == FAC_F32  ? 0x1p-23
           : d == FAC_F64  ? 0x1p-52
                           : 0;
}

static void fill_params(fac_graph *g, double lo, double hi) {
    for (int i = 0; i < fac_graph_params(g); i++) {
        fac_value *v = fac_graph_param(g, i);
        fac_tensor *x = random_tensor(v->type, lo, hi);
        OK(fac_tensor_write(fac_value_tensor(v), fac_tensor_data(x), fac_type_bytes(&v->type),
                            &err));
        fac_tensor_free(x);
    }
}

/* Attributes are f32 in ONNX, ours are f64: what that alone may change. */
static double tolerance(const fac_case *c, const fac_graph *g) {
    fac_dtype d = fac_graph_output(g, 0)->type.dtype;
    if (kind(d) != 'f') return 0;
    return fmax(fmax(c->tolerance, 8 * epsilon(d)), d == FAC_F64 ? 1e-6 : 0);
}

static bool has_spelling(const fac_op *op) {
    bool plain = false;
    for (const fac_onnx *how = op->onnx; how && how->type; how++)
        plain |= !how->load && !*how->domain && how->since <= FAC_ONNX_NEWEST;
    return plain || op->save || (op->expand && !(op->is & FAC_OP_BODIES));
}

/* What is said at no opset although its op can be, or expands: noise, and what expands to the
 * gradient of a convolution. */
static bool exempt(const fac_op *op, const char *problem) {
    static const fac_op *const noise[] = { &fac_op_random_uniform, &fac_op_random_normal,
                                           &fac_op_bernoulli,      &fac_op_randint,
                                           &fac_op_permutation,    NULL };
    if (fac_op_is_one_of(op, noise)) return true;
    const bool trains = op == &fac_op_dropout || op == &fac_op_mask_spectrum;
    return (trains && strstr(problem, "training")) || op == &fac_op_conv2d_grad_x_norm;
}

static void one_case(const fac_op *op, const fac_case *c, int opset, bool params, int *written,
                     int *refused) {
    char what[200];
    fac_graph *g = NULL;
    snprintf(what, sizeof what, "%s at opset %d%s", c->problem, opset,
             params ? ", with parameters" : "");
    if (fac_problem_graph(c->problem, params, &g, &err)) fail_msg("%s: %s", what, err.text);
    fill_params(g, c->lo, c->hi);
    double worst = round_trip(g, opset, c->lo, c->hi, what);
    if (worst < 0) {
        ++*refused;
        if (!op->expand && !strstr(err.text, op->name))
            fail_msg("%s: the refusal does not name it: %s", what, err.text);
        if (!opset && has_spelling(op) && !exempt(op, c->problem))
            fail_msg("%s: %s", what, err.text);
    } else {
        ++*written;
        if (worst > tolerance(c, g)) fail_msg("%s: differs by %g", what, worst);
    }
    fac_graph_free(g);
}

static void every_case(void **state) {
    static const int opsets[] = { 0, 13, 17, 20, FAC_ONNX_NEWEST };
    (void)state;
    int written[5] = { 0 }, refused[5] = { 0 };
    for (const fac_op *const *op = fac_ops; *op; op++)
        for (const fac_case *c = (*op)->cases; c && c->problem; c++)
            for (int k = 0; k < 5; k++) {
                if ((*op)->is & FAC_OP_BODIES)
                    continue; /* they come from files, or are made after the exporter */
                one_case(*op, c, opsets[k], false, &written[k], &refused[k]);
                if (k == 0) one_case(*op, c, opsets[k], true, &written[k], &refused[k]);
            }
    for (int k = 0; k < 5; k++)
        print_message("opset %d: %d written, %d refused\n", opsets[k], written[k], refused[k]);
}

/* ---- networks ---- */

static void zoo_networks(void **state) {
    static const char *const names[] = { "lenet", "squeezenet1_1", "mobilenet_v2",
                                         "efficientnet_lite0", "resnet18" };
    (void)state;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        fac_graph *g = NULL;
        const fac_zoo *zoo = fac_zoo_find(names[k]);
        if (!zoo) fail_msg("the zoo has no %s", names[k]);
        OK(fac_zoo_new(names[k], NULL, seed, &g, &err));
        fac_graph *quiet = fac_graph_inference(g);
        OK(fac_onnx_save(quiet, path, NULL, &err));
        fac_graph *h = NULL;
        OK(fac_onnx_load(path, NULL, &h, &err));
        assert_string_equal(fac_value_name(fac_graph_input(h, 0)), "x");
        assert_string_equal(fac_graph_output_name(h, 0), "logits");
        assert_string_equal(fac_symbol_name(h, fac_graph_input(h, 0)->type.dims.d[0]), "N");
        for (int i = 0; i < fac_graph_params(g); i++) {
            const char *name = fac_value_name(fac_graph_param(g, i));
            if (!fac_graph_find(quiet, name)) continue;
            fac_value *v = fac_graph_find(h, name);
            if (!v || v->leaf != FAC_PARAM) fail_msg("%s: parameter %s is lost", names[k], name);
        }
        fac_type type = { FAC_F32, fac_shape(2, zoo->channels, zoo->height, zoo->width) };
        fac_tensor *x = random_tensor(type, -1, 1), *a = NULL, *b = NULL;
        run(g, &x, &a, names[k]);
        run(h, &x, &b, names[k]);
        double worst = difference(b, a);
        print_message("%s: logits differ by %g\n", names[k], worst);
        assert_true(worst <= 1e-5);
        fac_tensor_free(x);
        fac_tensor_free(a);
        fac_tensor_free(b);
        fac_graph_free(quiet);
        fac_graph_free(g);
        fac_graph_free(h);
    }
}

/* ---- leaves, symbols, outputs ---- */

/* Outputs that are leaves, twice the same value, and one with the name of its own input. */
static void outputs_of_all_kinds(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 3));
    fac_tensor *t = ramp(fac_shape(2, 3));
    fac_value *w = fac_param(g, "w", t), *y = fac_add(x, w);
    fac_output(g, "x", x);
    fac_output(g, "copy", x);
    fac_output(g, "weight", w);
    fac_output(g, "sum", y);
    fac_output(g, "sum again", y);
    fac_output(g, "number", fac_number(g, FAC_F32, 2.5));
    OK(fac_graph_check(g, &err));
    assert_true(round_trip(g, 0, -1, 1, "outputs") == 0);
    fac_output(g, "w", y);
    assert_int_equal(fac_onnx_save(g, path, NULL, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"w\""));
    fac_tensor_free(t);
    fac_graph_free(g);
}

/* A constant list of numbers and symbols becomes shapes of what has those sizes; the model runs at
 * any of them. */
static void symbols_in_lists(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    int64_t N = fac_symbol(g, "N"), T = fac_symbol(g, "T");
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(N, 6, T)), *r = fac_relu(x);
    fac_output(g, "split", fac_reshape(r, fac_shape(N, 2, 3, T)));
    fac_output(g, "transposed", fac_reshape(r, fac_shape(T, 6, N)));
    fac_output(g, "wide", fac_expand(fac_number(g, FAC_F32, 3), fac_shape(N)));
    fac_output(g, "dims", fac_shape_of(fac_flatten(x, 1)));
    OK(fac_graph_check(g, &err));
    OK(fac_onnx_save(g, path, NULL, &err));
    fac_graph *h = loaded();
    assert_string_equal(fac_symbol_name(h, fac_graph_input(h, 0)->type.dims.d[2]), "T");
    for (int n = 1; n < 4; n++) {
        fac_tensor *in = random_tensor((fac_type){ FAC_F32, fac_shape(n, 6, 5 - n) }, -1, 1),
                   *a[4] = { 0 }, *b[4] = { 0 };
        run(g, &in, a, "symbols");
        run(h, &in, b, "symbols");
        for (int k = 0; k < 4; k++) {
            assert_true(difference(b[k], a[k]) == 0);
            fac_tensor_free(a[k]);
            fac_tensor_free(b[k]);
        }
        fac_tensor_free(in);
    }
    unlink(path);
    fac_graph_free(g);
    fac_graph_free(h);
}

/* A size that no value has can be said nowhere. */
static void lost_symbols(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_input(g, "x", FAC_F32, fac_shape(2));
    fac_output(g, "y", fac_expand(fac_number(g, FAC_F32, 3), fac_shape(fac_symbol(g, "M"))));
    OK(fac_graph_check(g, &err));
    assert_int_equal(fac_onnx_save(g, path, NULL, &err), FAC_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "expand"));
    assert_int_not_equal(access(path, F_OK), 0);
    fac_graph_free(g);
}

/* Parameters that lie strided or on no boundary of an element are written as they read. */
static void strided_parameters(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_tensor *t = ramp(fac_shape(5, 4)), *transposed = NULL;
    OK(fac_tensor_view(t, fac_shape(4, 3), (int64_t[]){ 1, 4 }, 4, &transposed, &err));
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 4));
    fac_output(g, "y", fac_matmul(x, fac_param(g, "w", transposed)));
    assert_true(round_trip(g, 0, -1, 1, "strided") == 0);
    fac_tensor_free(t);
    fac_tensor_free(transposed);
    fac_graph_free(g);
}

/* Floats that are no parameters read as none: the same steps remain after a way to disk. */
static void constants_stay_constants(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_tensor *t = ramp(fac_shape(3)), *large = ramp(fac_shape(300));
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 3));
    fac_value *w = fac_param(g, "w", t), *c = fac_const(g, t);
    fac_output(g, "y", fac_add(fac_mul(x, c), w));
    fac_output(g, "z", fac_const(g, large));
    OK(fac_graph_check(g, &err));
    OK(fac_onnx_save(g, path, NULL, &err));
    fac_graph *h = loaded();
    assert_int_equal(h->nparams, 2); /* w, and what is too large for a node */
    assert_string_equal(h->params[0]->name, "w");
    fac_graph_free(h);
    assert_true(round_trip(g, 0, -1, 1, "constants") == 0);
    fac_tensor_free(t);
    fac_tensor_free(large);
    fac_graph_free(g);
}

/* ---- what is refused ---- */

static void training_graphs(void **state) {
    (void)state;
    fac_graph *g = two_layers();
    fac_value *w = fac_graph_find(g, "w");
    fac_update(w, fac_mul(w, fac_number(g, FAC_F32, 0.5)));
    assert_int_equal(fac_onnx_save(g, path, NULL, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"w\""));
    fac_graph *quiet = fac_graph_inference(g);
    assert_true(round_trip(quiet, 0, -1, 1, "inference") == 0);
    fac_graph_free(quiet);
    fac_graph_free(g);
    g = fac_graph_new();
    fac_input(g, "x", FAC_F32, fac_shape(2));
    assert_int_equal(fac_onnx_save(g, path, NULL, &err), FAC_E_ARGUMENT);
    fac_graph_free(g);
}

/* All ops without a spelling in one message, each once. */
static void refusals_name_all(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1, 2, 6, 6)),
              *n = fac_input(g, "n", FAC_I64, (fac_dims){ 0 });
    fac_value *a = fac_dropout_train(x, 0.5, n), *b = fac_dropout_train(a, 0.5, n), *loss, *dx;
    loss = fac_sum(fac_max_pool2d(b, 2, 2, NULL), (fac_dims){ 0 }, false);
    fac_grad(loss, 1, &x, &dx);
    fac_output(g, "dx", dx);
    OK(fac_graph_check(g, &err));
    assert_int_equal(fac_onnx_save(g, path, NULL, &err), FAC_E_UNSUPPORTED);
    const char *first = strstr(err.text, "dropout");
    assert_non_null(first);
    assert_null(strstr(first + 1, "dropout"));
    assert_non_null(strstr(err.text, "max_pool2d_grad"));
    assert_int_equal(files_in_folder(), 0);
    fac_graph_free(g);
}

/* ---- gradients that are made of ops ---- */

static void gradients(void **state) {
    (void)state;
    fac_graph *g = two_layers();
    fac_value *y = fac_graph_output(g, 0),
              *w[] = { fac_graph_find(g, "w"), fac_graph_find(g, "b") }, *d[2];
    fac_grad(fac_sum(fac_mul(y, y), (fac_dims){ 0 }, false), 2, w, d);
    fac_output(g, "dw", d[0]);
    fac_output(g, "db", d[1]);
    OK(fac_graph_check(g, &err));
    double worst = round_trip(g, 0, -1, 1, "gradients");
    assert_true(worst >= 0 && worst < 1e-6);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_of_all_kinds),
        cmocka_unit_test(symbols_in_lists),
        cmocka_unit_test(lost_symbols),
        cmocka_unit_test(strided_parameters),
        cmocka_unit_test(constants_stay_constants),
        cmocka_unit_test(training_graphs),
        cmocka_unit_test(refusals_name_all),
        cmocka_unit_test(gradients),
        cmocka_unit_test(every_case),
        cmocka_unit_test(zoo_networks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
