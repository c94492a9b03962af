/* call, if, loop and scan: types, text, expansion, gradients, ONNX; what is malformed. */
#include "opencl_check.h"
#include "flow_check.h"
#include "op_list.h"

static const numbers usual = { 7, 3, true };

/* ---- what they mean ---- */

static void calls_are_their_bodies(void **state) {
    (void)state;
    same("input x f32[2,3]\ninput b f32[3]\ny = call(x, b) {t0 = add(x0, x1); t1 = relu(t0); t1, "
         "t0} !layer\noutput y = y\n",
         "input x f32[2,3]\ninput b f32[3]\n%1 = add(x, b)\n%2 = relu(%1)\noutput y = %2\n",
         &usual);
    same("input x f32[4]\n%1, %2 = call(x) {t0 = call(x0) {t0 = mul(x0, x0); t0}; t1 = neg(t0); "
         "t1, x0}\n"
         "output a = %1\noutput b = %2\n",
         "input x f32[4]\n%1 = mul(x, x)\n%2 = neg(%1)\noutput a = %2\noutput b = x\n", &usual);
}

static const char by_hand[] = "input x f64[2]\ninput w f64[2]\n%1 = mul(x, w)\n%2 = add(%1, 0)\n%3 "
                              "= mul(%2, w)\n%4 = add(%3, 1)\n%5 = mul(%4, w)\n"
                              "%6 = add(%5, 2)\n%7 = unsqueeze(%1, i64{0})\n%8 = unsqueeze(%3, "
                              "i64{0})\n%9 = unsqueeze(%5, i64{0})\n"
                              "%10 = concat(%7, %8, %9)\noutput y = %6\noutput rows = %10\n";
#define LOOP(trips, cond, next)                                                                    \
    "%1, %2 = loop(" trips ", " cond ", x, w) carried=1 {(i64[], bool[], f64[2], f64[2]) "         \
    "t0 = mul(x2, x3); t1 = cast(x0) to=f64; t2 = add(t0, t1); " next                              \
    "}\noutput y = %1\noutput rows = %2\n"

static void loops_are_their_iterations(void **state) {
    (void)state;
    same("input x f64[2]\ninput w f64[2]\n" LOOP("i64(3)", "-", "x1, t2, t0"), by_hand, &usual);
    same("input x f64[2]\ninput w f64[2]\n" LOOP("i64{3}", "bool(1)", "bool(1), t2, t0"), by_hand,
         &usual);
    same("input x f64[2]\ninput w f64[2]\n%0 = shape(x)\n" LOOP("i64(1)", "bool(1)",
                                                                "bool(0), t2, t0"),
         "input x f64[2]\ninput w f64[2]\n%1 = mul(x, w)\n%2 = add(%1, 0)\n%3 = unsqueeze(%1, "
         "i64{0})\n"
         "output y = %2\noutput rows = %3\n",
         &usual);
}

/* The trip count, then the condition, are inputs: known when it runs. */
static void data_says_how_often(void **state) {
    (void)state;
    fac_graph *hand = read_text(by_hand);
    fac_graph *g =
        read_text("input x f64[2]\ninput w f64[2]\ninput n i64[]\n" LOOP("n", "-", "x1, t2, t0"));
    fac_tensor *want[MOST], *got[MOST];
    run_on(device, hand, &usual, want);
    run_on(device, g, &usual, got);
    for (int k = 0; k < 2; k++) {
        assert_equal_tensors(got[k], want[k], 1e-12);
        fac_tensor_free(got[k]);
    }
    fac_graph_free(g);
    /* while iteration < 2 */
    g = read_text("input x f64[2]\ninput w f64[2]\ninput c bool[]\n" LOOP(
        "-", "c", "t3 = less(x0, i64(2)); t3, t2, t0"));
    run_on(device, g, &usual, got);
    for (int k = 0; k < 2; k++) {
        assert_equal_tensors(got[k], want[k], 1e-12);
        fac_tensor_free(got[k]);
    }
    /* no iteration: the first values, and no rows */
    run_on(device, g, &(numbers){ 7, 0, false }, got);
    const fac_type rows = fac_tensor_type(got[1]);
    assert_int_equal(rows.dims.d[0], 0);
    assert_int_equal(rows.dims.d[1], 2);
    for (int k = 0; k < 2; k++) {
        fac_tensor_free(got[k]);
        fac_tensor_free(want[k]);
    }
    fac_graph_free(g);
    fac_graph_free(hand);
}

/* What comes after is planned when the sizes are there, for each of them; what comes before is not
 * run twice. */
static void the_rest_follows_sizes(void **state) {
    (void)state;
    fac_graph *g = read_text("input x f32[3]\ninput n i64[]\n%0 = exp(x)\n"
                             "%1, %2 = loop(n, -, %0) carried=1 {(i64[], bool[], f32[3]) t0 = "
                             "mul(x2, 0.5); x1, t0, t0}\n"
                             "%3 = sum(%2, i64{0})\n%4 = add(%3, %0)\n%5 = transpose(%2) perm=1,0\n"
                             "output s = %4\noutput t = %5\n");
    for (int64_t n = 0; n < 5; n++) {
        fac_tensor *out[MOST];
        int64_t count;
        run_on(device, g, &(numbers){ 3, n, true }, out);
        const fac_type t = fac_tensor_type(out[1]);
        assert_int_equal(t.dims.d[1], n);
        double *s = doubles(out[0], &count);
        for (int k = 0; k < 3; k++) {
            const double x = exp((double)(float)(2 * fac_random_uniform(3, 0, (uint64_t)k) - 1));
            assert_true(fabs(s[k] - x * (2 - pow(0.5, (double)n))) < 1e-5);
        }
        free(s);
        for (int k = 0; k < 2; k++) fac_tensor_free(out[k]);
    }
    fac_graph_free(g);
}

/* A carried value that grows has an open size, which its iterations know. */
static void carried_values_may_grow(void **state) {
    (void)state;
    const char *loop = "%1 = loop(n, -, x) carried=1 {(i64[], bool[], f32[2]) t0 = concat(x2, x2); "
                       "x1, t0}\noutput y = %1\n";
    char text[512];
    snprintf(text, sizeof text, "input x f32[2]\ninput n i64[]\n%s", loop);
    fac_graph *g = read_text(text);
    assert_true(fac_value_type(fac_graph_output(g, 0)).dims.d[0] < 0);
    fac_tensor *out[MOST];
    run_on(device, g, &(numbers){ 1, 4, true }, out);
    const fac_type y = fac_tensor_type(out[0]);
    assert_int_equal(y.dims.d[0], 32);
    fac_tensor_free(out[0]);
    fac_graph_free(g);
    same("input x f32[2]\n%1 = loop(i64(2), -, x) carried=1 {(i64[], bool[], f32[2]) t0 = "
         "concat(x2, x2); x1, t0}\n"
         "output y = %1\n",
         "input x f32[2]\n%1 = concat(x, x, x, x)\noutput y = %1\n", &usual);
}

static void ifs_are_one_of_their_bodies(void **state) {
    (void)state;
    const char *text = "input c bool[]\ninput x f32[3]\n%1 = if(c, x) {t0 = exp(x1); t0} {t0 = "
                       "neg(x1); t1 = slice(t0, i64{0}, "
                       "i64{2}); t1}\noutput y = %1\n";
    same(text, "input c bool[]\ninput x f32[3]\n%1 = exp(x)\noutput y = %1\n",
         &(numbers){ 5, 0, true });
    same(text,
         "input c bool[]\ninput x f32[3]\n%1 = neg(x)\n%2 = slice(%1, i64{0}, i64{2})\noutput y = "
         "%2\n",
         &(numbers){ 5, 0, false });
    same("input x f32[3]\n%1 = if(bool(0), x) {t0 = exp(x1); t0} {t0 = neg(x1); t0}\noutput y = "
         "%1\n",
         "input x f32[3]\n%1 = neg(x)\noutput y = %1\n", &usual);
}

static void scans_are_loops_over_slices(void **state) {
    (void)state;
    same("input s f32[2]\ninput x f32[2,3]\n%1, %2 = scan(s, x) states=1 slices=1 in_axes=1 "
         "out_axes=1 in_back=1 "
         "{(f32[2], f32[2]) t0 = add(x0, x1); t1 = mul(t0, 2); t0, t1}\noutput y = %1\noutput rows "
         "= %2\n",
         "input s f32[2]\ninput x f32[2,3]\n%1, %2, %3 = split(x) axis=1 parts=3\n%4 = squeeze(%3, "
         "i64{1})\n%5 = add(s, %4)\n"
         "%6 = squeeze(%2, i64{1})\n%7 = add(%5, %6)\n%8 = squeeze(%1, i64{1})\n%9 = add(%7, "
         "%8)\n%10 = unsqueeze(%5, i64{1})\n"
         "%11 = unsqueeze(%7, i64{1})\n%12 = unsqueeze(%9, i64{1})\n%13 = concat(%10, %11, %12) "
         "axis=1\n%14 = mul(%13, 2)\n"
         "output y = %9\noutput rows = %14\n",
         &usual);
}

/* ---- gradients ---- */

/* d sum(y^2) / dx against central differences, with the condition or the trip count known or not.
 */
static void gradient_holds(const char *text, bool flag) {
    fac_graph *g = read_text(text);
    fac_value *y = fac_graph_output(g, 0), *x = fac_graph_find(g, "x"), *dx = NULL;
    fac_value *loss = fac_sum(fac_mul(y, y), (fac_dims){ 0 }, false);
    fac_grad(loss, 1, &x, &dx);
    fac_output(g, "loss", loss);
    fac_output(g, "dx", dx);
    assert_ok(g);
    fac_program *p = NULL;
    OK(fac_program_new(g, device, NULL, &p, err));
    const int inputs = fac_graph_inputs(g), outputs = fac_graph_outputs(g);
    double at[2] = { 0.3, -0.7 }, slope[2] = { 0, 0 }, loss_at[2], d[2];
    for (int probe = 0; probe < 5;
         probe++) { /* the point itself, then both sides of each element */
        const double h = 1e-5;
        double v[2] = { at[0], at[1] };
        if (probe) v[(probe - 1) / 2] += probe % 2 ? h : -h;
        fac_tensor *in[2] = { NULL, NULL }, *out[MOST] = { NULL };
        OK(fac_tensor_new(NULL, FAC_F64, fac_shape(2), &in[0], err));
        OK(fac_tensor_write(in[0], v, sizeof v, err));
        if (inputs > 1) {
            OK(fac_tensor_new(NULL, FAC_BOOL, (fac_dims){ 0 }, &in[1], err));
            OK(fac_tensor_write(in[1], &flag, sizeof flag, err));
        }
        OK(fac_program_run(p, in, out, err));
        double l;
        OK(fac_tensor_read(out[outputs - 2], &l, sizeof l, err));
        if (!probe)
            OK(fac_tensor_read(out[outputs - 1], d, sizeof d, err));
        else
            loss_at[(probe + 1) % 2] = l;
        if (probe && probe % 2 == 0) slope[probe / 2 - 1] = (loss_at[0] - loss_at[1]) / (2 * h);
        for (int k = 0; k < outputs; k++) fac_tensor_free(out[k]);
        fac_tensor_free(in[0]);
        fac_tensor_free(in[1]);
    }
    for (int k = 0; k < 2; k++)
        if (fabs(d[k] - slope[k]) > 1e-6 * (1 + fabs(slope[k])))
            fail_msg("dx[%d] is %.9g, differences say %.9g", k, d[k], slope[k]);
    fac_program_free(p);
    fac_graph_free(g);
}

static void gradients(void **state) {
    (void)state;
    gradient_holds("input x f64[2]\n%1, %2 = loop(i64(3), -, x, x) carried=1 {(i64[], bool[], "
                   "f64[2], f64[2]) t0 = mul(x2, x3); "
                   "t1 = sin(t0); x1, t1, t0}\n%3 = mul(%1, %2)\noutput y = %3\n",
                   true);
    gradient_holds(
        "input x f64[2]\n%1 = call(x) {t0 = exp(x0); t1 = mul(t0, x0); t1}\noutput y = %1\n", true);
    gradient_holds("input x f64[2]\n%1, %2 = scan(x, x) states=1 slices=1 {(f64[2], f64[]) t0 = "
                   "mul(x0, x1); t0, t0}\n"
                   "%3 = add(%1, %2)\noutput y = %3\n",
                   true);
    for (int flag = 0; flag < 2; flag++)
        gradient_holds("input x f64[2]\ninput c bool[]\n%1 = if(c, x) {t0 = exp(x1); t0} {t0 = "
                       "mul(x1, x1); t0}\noutput y = %1\n",
                       flag);
}

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

static const char *const models[] = {
    "input x f32[N,3]\nparam b f32[3]\ny = call(x, b) name=layer {t0 = add(x0, x1); t1 = relu(t0); "
    "t1} !one\n"
    "z = call(y, b) name=layer {t0 = add(x0, x1); t1 = relu(t0); t1} !two\noutput z = z\n",
    "input x f64[2]\ninput w f64[2]\n" LOOP("i64(3)", "-", "x1, t2, t0"),
    "input x f32[3]\ninput n i64[]\ninput c bool[]\n%1, %2 = loop(n, c, x) carried=1 {(i64[], "
    "bool[], f32[3]) t0 = mul(x2, 0.5); "
    "t1 = less(x0, i64(9)); t1, t0, t0}\noutput a = %1\noutput b = %2\n",
    "input c bool[]\ninput x f32[3]\n%1 = if(c, x) {t0 = exp(x1); t0} {t0 = neg(x1); t0}\noutput y "
    "= %1\n",
    "input s f32[2]\ninput x f32[2,3]\n%1, %2 = scan(s, x) states=1 slices=1 in_axes=1 out_axes=1 "
    "in_back=1 "
    "{(f32[2], f32[2]) t0 = add(x0, x1); t1 = mul(t0, 2); t0, t1}\noutput y = %1\noutput rows = "
    "%2\n",
    "input c bool[]\ninput x f32[3]\n%1 = if(c, x) {t0 = call(x1) name=f {t0 = exp(x0); t1 = "
    "neg(t0); t1}; t0} "
    "{t0, t1 = loop(i64(2), -, x1) carried=1 {(i64[], bool[], f32[3]) t0 = add(x2, x2); x1, t0, "
    "t0}; t0}\noutput y = %1\n"
};

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

static void opencl_does_the_same(void **state) {
    (void)state;
    fac_device *gpu = NULL;
    fac_error why = { 0 };
    if (opencl_open(&gpu, &why)) fail_msg("%s", why.text);
    if (!gpu) skip();
    for (size_t k = 1; k < sizeof models / sizeof *models; k++) {
        fac_graph *g = read_text(models[k]);
        fac_tensor *here[MOST], *there[MOST];
        run_on(device, g, &usual, here);
        run_on(gpu, g, &usual, there);
        for (int i = 0; i < fac_graph_outputs(g); i++) {
            assert_equal_tensors(there[i], here[i], 1e-5);
            fac_tensor_free(here[i]);
            fac_tensor_free(there[i]);
        }
        fac_graph_free(g);
    }
    fac_device_free(gpu);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(calls_are_their_bodies),
                                        cmocka_unit_test(loops_are_their_iterations),
                                        cmocka_unit_test(data_says_how_often),
                                        cmocka_unit_test(the_rest_follows_sizes),
                                        cmocka_unit_test(carried_values_may_grow),
                                        cmocka_unit_test(ifs_are_one_of_their_bodies),
                                        cmocka_unit_test(scans_are_loops_over_slices),
                                        cmocka_unit_test(gradients),
                                        cmocka_unit_test(texts_read_back),
                                        cmocka_unit_test(onnx_keeps_them),
                                        cmocka_unit_test(paths_of_names),
                                        cmocka_unit_test(malformed),
                                        cmocka_unit_test(nesting_ends),
                                        cmocka_unit_test(huge_trip_counts),
                                        cmocka_unit_test(contents_steer_after_the_cut),
                                        cmocka_unit_test(places_of_a_scalar),
                                        cmocka_unit_test(opencl_does_the_same) };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
