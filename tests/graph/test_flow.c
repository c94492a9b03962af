/* call, if, loop and scan: types, expansion, gradients, what OpenCL makes of them. */
#include "flow_models.h"

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_their_bodies),
        cmocka_unit_test(loops_are_their_iterations),
        cmocka_unit_test(data_says_how_often),
        cmocka_unit_test(the_rest_follows_sizes),
        cmocka_unit_test(carried_values_may_grow),
        cmocka_unit_test(ifs_are_one_of_their_bodies),
        cmocka_unit_test(scans_are_loops_over_slices),
        cmocka_unit_test(gradients),
        cmocka_unit_test(opencl_does_the_same),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
