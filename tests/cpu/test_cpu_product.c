/* The solvers of products with matrices that change in every run: "linear/thin", "matmul/thin",
 * "fused_matmul", and the kernel of Adam's update in it and in groups. */
#include "solver_check.h"
#include "backends/cpu/elementwise/chain.h"
#include "facula/facula.h"
#include "facula/ops.h"

static bool solve_as(const char *solver, const char *text, double lo, double tolerance,
                     bool weights) {
    fac_error err = { 0 };
    fac_graph *g = NULL;
    bool took = true;
    if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof check_isas / sizeof *check_isas; i++)
        for (int round = 0; round < 3; round++) {
            check c = { .seed = 31 + (uint64_t)round,
                        .lo = lo,
                        .hi = 2,
                        .tolerance = tolerance,
                        .isa = check_isas[i],
                        .threads = 1 + round,
                        .strided = round == 1,
                        .weights = weights };
            took = check_node(&c, solver, g->last) && took;
        }
    fac_graph_free(g);
    return took;
}

static bool solve(const char *solver, const char *text, double lo, double tolerance) {
    return solve_as(solver, text, lo, tolerance, false);
}

static void rows_times_large_matrices(void **state) {
    (void)state;
    static const char *const linear[] = {
        "linear(f32[1,512], f32[130,512], f32[130])",
        "linear(f32[8,700], f32[333,700], f32[333]) {relu}",
        "linear(f32[33,1100], f32[90,1100])",
        "linear(f32[2,5,130], f32[300,130], f32[300]) {clip(_, -3, 3)}",
        "linear(f32[64,90], f32[400,90], f32[400])",
        "linear(f32[7,13], f32[701,13])",
        "linear(f32[3,517], f32[64,517], f32[64])",
        "linear(f32[31,261], f32[130,261])",
        "linear(f32[4,6,16], f32[515,16]) {relu}"
    };
    static const char *const matmul[] = { "matmul(f32[1,300], f32[300,130])",
                                          "matmul(f32[8,333], f32[333,700])",
                                          "matmul(f32[33,90], f32[90,1100]) {relu}",
                                          "matmul(f32[64,17], f32[17,999])" };
    for (size_t i = 0; i < sizeof linear / sizeof *linear; i++)
        if (!solve("linear/thin", linear[i], -2, 2e-4)) fail_msg("no offer for %s", linear[i]);
    for (size_t i = 0; i < sizeof matmul / sizeof *matmul; i++)
        if (!solve("matmul/thin", matmul[i], -2, 2e-4)) fail_msg("no offer for %s", matmul[i]);
    assert_false(solve("linear/thin", "linear(f32[65,512], f32[130,512])", -2,
                       1e-4)); /* many rows: packing pays */
    assert_false(
        solve("matmul/thin", "matmul(f32[4,8], f32[8,9])", -2, 1e-4)); /* nothing to gain */
    assert_false(solve("matmul/thin", "matmul(f32[2,8,64], f32[2,64,600])", -2,
                       1e-4)); /* a batch of matrices */
}

/* A bias in the body is what gemm's c is; numbers for each row, or of products that other solvers
 * do better, are not. */
static void biases_of_columns(void **state) {
    (void)state;
    static const char *const takes[] = {
        "matmul(f32[2,17,40], f32[40,70], f32[70]) {add(_, x1)}",
        "matmul(f32[30,40], f32[40,33], f32[1,33]) {add(x1, _) relu}",
        "matmul(f32[30,600], f32[600,70], f32[70], f32[30,70]) {add(_, x1) add(_, x2) gelu}",
        "matmul(f32[3,5,64], f32[64,96], f32[3,5,96], f32[96]) {add(_, x1) add(x2, _)}",
        "matmul(f32[29,1], f32[1,1], f32[1]) {add(_, x1)}"
    };
    static const char *const leaves[] = {
        "matmul(f32[8,40], f32[40,70], f32[70]) {add(_, x1)}",
        "matmul(f32[30,40], f32[40,30], f32[30,1]) {add(_, x1)}",
        "matmul(f32[30,40], f32[40,70], f32[70], f32[70]) {add(_, x1) add(_, x2)}",
        "matmul(f32[30,40], f32[40,70], f32[70]) {relu add(_, x1)}",
        "linear(f32[30,40], f32[70,40], f32[70], f32[70]) {add(_, x1)}"
    };
    const char *solver[] = { "matmul/gemm", "linear/gemm" };
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++)
        if (!solve_as("matmul/gemm", takes[i], -2, 2e-4, true))
            fail_msg("no offer for %s", takes[i]);
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++)
        if (solve_as(solver[leaves[i][0] == 'l'], leaves[i], -2, 2e-4, true))
            fail_msg("an offer for %s", leaves[i]);
    assert_false(solve("matmul/gemm", takes[0], -2, 2e-4)); /* packed in each run: another's */
}

#define ADAM(g)                                                                                    \
    "t1 = sub(" g ", x3); t2 = mul(t1, x5); t3 = add(x3, t2); t4 = mul(x4, x6); t5 = mul(" g       \
    ", " g "); "                                                                                   \
    "t6 = mul(t5, x7); t7 = add(t4, t6); t8 = sqrt(t7); t9 = mul(t8, x8); t10 = add(t9, x9); t11 " \
    "= div(t3, t10); "                                                                             \
    "t12 = mul(x10, t11); t13 = sub(x2, t12); "
#define FIRST "{t0 = neg(x0); "
#define NUMBERS "f32[], f32[], f32[], f32[], f32[], f32[]"

static void gradients_are_used_up_by_their_update(void **state) {
    (void)state;
    static const char cast[] =
        "fused_matmul(f32[15,8], f32[8,1024], f32[15,1024], f64[1]) {t0 = matmul(x0, x1); "
        "t1 = cast(x3) to=f32; t2 = mul(t0, t1); t3 = add(t2, x2); t3}";
    static const char *const texts[] = {
        "fused_matmul(f32[40,3], f32[3,700], f32[40,700], f32[]) {t0 = matmul(x0, x1); t1 = "
        "mul(t0, x3); t2 = sub(x2, t1); t2}",
        "fused_matmul(f32[14,33], f32[33,1541], f32[14,1541]) {t0 = matmul(x0, x1); t1 = add(t0, "
        "x2); t2 = relu(t1); t1, t2}",
        cast
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!solve("fused_matmul", texts[i], -2, 1e-4)) fail_msg("no offer for %s", texts[i]);
    static const char adam[] =
        "fused_matmul(f32[37,5], f32[5,1090], f32[37,1090], f32[37,1090], f32[37,1090], " NUMBERS
        ") "
        "{t0 = matmul(x0, x1); " ADAM("t0") "t13, t3, t7}";
    if (!solve("fused_matmul", adam, 0.1, 1e-4)) fail_msg("no offer for %s", adam);
    static const char narrow[] = "fused_matmul(f32[40,3], f32[3,100], f32[40,100]) {t0 = "
                                 "matmul(x0, x1); t1 = add(t0, x2); t1}";
    assert_false(solve("fused_matmul", narrow, -2, 1e-4));
}

static bool recognized(const char *text) {
    fac_error err = { 0 };
    fac_graph *g = NULL;
    static fac_chain chain;
    const fac_simd *simd = NULL;
    assert_int_equal(fac_cpu_simd("portable", &simd, &err), FAC_OK);
    if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s", err.text);
    fac_operand in[CHECK_OPERANDS], out[3];
    const fac_node *n = g->last;
    for (int i = 0; i < n->nin; i++)
        in[i] =
            (fac_operand){ n->in[i]->type, fac_layout_plain(&n->in[i]->type.dims), FAC_RUN, NULL };
    for (int k = 0; k < n->nout; k++)
        out[k] = (fac_operand){ n->out[k]->type, fac_layout_plain(&n->out[k]->type.dims), FAC_RUN,
                                NULL };
    const fac_problem p = { .node = n, .nin = n->nin, .nout = n->nout, .in = in, .out = out };
    assert_true(fac_chain_build(&p, simd, &chain));
    fac_graph_free(g);
    return chain.is_adam;
}

static void adam_has_a_kernel(void **state) {
    (void)state;
    static const char plain[] =
        "fused(f32[7,3000], i64[], f32[7,3000], f32[7,3000], f32[7,3000], " NUMBERS
        ") " FIRST ADAM("x0") "t7, t13, t3}";
    static const char guarded[] =
        "fused(f32[9000], bool[], f32[9000], f32[9000], f32[9000], " NUMBERS
        ") " FIRST ADAM("x0") "t14 = where(x1, t13, x2); t15 = where(x1, t3, x3); t16 = where(x1, "
                              "t7, x4); t14, t16, t15}";
    static const char each[] =
        "fused(f32[900], bool[900], f32[900], f32[900], f32[900], " NUMBERS
        ") " FIRST ADAM("x0") "t14 = where(x1, t13, x2); t15 = where(x1, t3, x3); t16 = where(x1, "
                              "t7, x4); t14, t15, t16}";
    static const char torn[] =
        "fused(f32[900], bool[], f32[900], f32[900], f32[900], " NUMBERS
        ") " FIRST ADAM("x0") "t14 = where(x1, t13, x2); t15 = where(x1, t3, x4); t16 = where(x1, "
                              "t7, x3); t14, t15, t16}";
    static const char computed[] = "fused(f32[900], i64[], f32[900], f32[900], f32[900], " NUMBERS
                                   ") " FIRST ADAM("t0") "t13, t3, t7}";
    assert_true(recognized(plain) && recognized(guarded) &&
                recognized(each)); /* of each, elements choose */
    assert_false(recognized(torn) || recognized(computed));
    static const char *const all[] = { plain, guarded, each, torn, computed };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!solve("fused", all[i], 0.1, 1e-4)) fail_msg("no offer for %s", all[i]);
}

enum { ROWS = 8, IN = 600, OUT = 64, STEPS = 3 };

/* A few steps of Adam for one large matrix, as fused as can be or not at all: its contents; *fused:
 * a step that uses the gradient up. */
static fac_tensor *train(bool fuse, bool *fused) {
    fac_error err = { 0 };
    fac_device *device = NULL;
    fac_program *p = NULL;
    fac_tensor *t = NULL, *in[2] = { NULL }, *out = NULL;
    fac_graph *g = fac_graph_new();
    static float data[OUT * IN];
    const double rate = 0.01;
    fac_random_fill(3, 1, -1, 1, OUT * IN, data);
    fac_status status = fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &device, &err);
    if (!status) status = fac_tensor_new(NULL, FAC_F32, fac_shape(OUT, IN), &t, &err);
    if (!status) status = fac_tensor_write(t, data, sizeof data, &err);
    if (!status) status = fac_tensor_new(NULL, FAC_F32, fac_shape(ROWS, IN), &in[0], &err);
    if (!status) status = fac_tensor_write(in[0], data, ROWS * IN * sizeof *data, &err);
    if (!status) status = fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &in[1], &err);
    if (!status) status = fac_tensor_write(in[1], &rate, sizeof rate, &err);
    fac_value *y =
        fac_linear(fac_input(g, "x", FAC_F32, fac_shape(ROWS, IN)), fac_param(g, "w", t), NULL);
    fac_value *loss = fac_sum(fac_mul(y, y), (fac_dims){ 0 }, false);
    fac_output(g, "loss", loss);
    fac_optim_find("adam")->build(loss, fac_input(g, "lr", FAC_F64, (fac_dims){ 0 }),
                                  &(fac_optim_opts){ .weight_decay = 0 });
    if (!status)
        status = fac_program_new(g, device, &(fac_program_opts){ .no_fuse = !fuse }, &p, &err);
    for (int s = 0; s < STEPS && !status; s++) status = fac_program_run(p, in, &out, &err);
    if (status) fail_msg("%s", err.text);
    static fac_step_stat all[256];
    const size_t n = fac_program_steps(p, all, 256);
    *fused = false;
    for (size_t i = 0; i < n && i < 256; i++) *fused |= !strcmp(all[i].solver, "fused_matmul");
    fac_program_free(p);
    fac_graph_free(g);
    for (int i = 0; i < 2; i++) fac_tensor_free(in[i]);
    fac_tensor_free(out);
    fac_device_free(device);
    return t;
}

static void large_gradients_are_never_stored(void **state) {
    (void)state;
    bool fused;
    fac_tensor *plain = train(false, &fused);
    assert_false(fused);
    fac_tensor *t = train(true, &fused);
    assert_true(fused);
    const float *a = fac_tensor_data(plain), *b = fac_tensor_data(t);
    for (int i = 0; i < OUT * IN; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-6f))
            fail_msg("element %d: %g and %g", i, (double)a[i], (double)b[i]);
    fac_tensor_free(plain);
    fac_tensor_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows_times_large_matrices),
                                        cmocka_unit_test(biases_of_columns),
                                        cmocka_unit_test(gradients_are_used_up_by_their_update),
                                        cmocka_unit_test(adam_has_a_kernel),
                                        cmocka_unit_test(large_gradients_are_never_stored) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
