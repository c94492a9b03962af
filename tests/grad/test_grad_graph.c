/* Gradients of whole graphs: unused outputs, what is not connected, symbols, refusals, fast
 * kernels, dropout. */
#include "grad_check.h"
#include "op_list.h"

static double value_of(fac_value *v) {
    fac_tensor *t = NULL;
    double x = 0;
    OK(fac_eval(v, device, &t, &err));
    OK(fac_tensor_read(t, &x, sizeof x, &err));
    fac_tensor_free(t);
    return x;
}

static void what_is_not_connected_gets_zeros(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *a = fac_number(g, FAC_F64, 3), *b = fac_number(g, FAC_F64, 5), *d[2];
    fac_grad(fac_mul(a, a), 2, (fac_value *[]){ a, b }, d);
    OK(fac_graph_check(g, &err));
    assert_true(value_of(d[0]) == 6 && value_of(d[1]) == 0);
    fac_grad(fac_mul(fac_stop(a), a), 1, &a, d);
    OK(fac_graph_check(g, &err));
    assert_true(value_of(d[0]) == 3);
    fac_graph_free(g);
}

static void unused_outputs_have_no_gradient(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F64, fac_shape(2, 3, 4)), *dx;
    fac_value *y = fac_layer_norm(x, NULL, NULL, 1, 1e-5);
    /* only the statistics are used, not the normalized tensor */
    fac_grad(fac_sum(fac_mul(fac_value_other(y, 1), fac_value_other(y, 2)), (fac_dims){ 0 }, false),
             1, &x, &dx);
    OK(fac_graph_check(g, &err));
    assert_true(fac_dims_equal(&dx->type.dims, &x->type.dims));
    fac_graph_free(g);
}

/* loss = sum over k of (k + 1) sum(y_k^2), where y are x cut into `parts` and z was joined from
 * as many: dz is 2 (k + 1) z, whatever the number of parts; a part that is asked for itself has
 * a gradient too. */
static void any_number_of_parts_has_gradients(void **state) {
    (void)state;
    enum { PARTS = 300 };
    fac_graph *g = fac_graph_new();
    fac_value *z[PARTS], *y[PARTS], *loss = NULL, *wrt[PARTS + 1], *d[PARTS + 1];
    for (int k = 0; k < PARTS; k++) {
        z[k] = fac_number(g, FAC_F64, k + 2);
        wrt[k] = z[k];
    }
    fac_value *rows[PARTS];
    for (int k = 0; k < PARTS; k++) rows[k] = fac_unsqueeze(z[k], fac_shape(0));
    fac_split(fac_concat(rows, PARTS, 0), 0, PARTS, y);
    for (int k = 0; k < PARTS; k++) {
        fac_value *term = fac_sum(fac_mul(fac_mul(y[k], y[k]), fac_number(g, FAC_F64, k + 1)),
                                  (fac_dims){ 0 }, false);
        loss = loss ? fac_add(loss, term) : term;
    }
    wrt[PARTS] = y[PARTS - 1];
    fac_grad(loss, PARTS + 1, wrt, d);
    OK(fac_graph_check(g, &err));
    for (int k = 0; k < PARTS; k += 23) assert_true(value_of(d[k]) == 2.0 * (k + 1) * (k + 2));
    assert_true(value_of(d[PARTS - 1]) == 2.0 * PARTS * (PARTS + 1));
    assert_true(value_of(fac_sum(d[PARTS], (fac_dims){ 0 }, false)) == 2.0 * PARTS * (PARTS + 1));
    fac_graph_free(g);
}

/* Training with a batch of any size: gradients of a small network of many ops, built with symbols,
 * run at two sizes and compared with the graph that knows the sizes. */
static fac_value *network(fac_graph *g, fac_value *x, fac_value *w[4]) {
    fac_type four = { FAC_F64, fac_shape(4) };
    const fac_dims dims[] = { fac_shape(4, 3, 3, 3), fac_shape(4), fac_shape(4), fac_shape(5, 4) };
    for (int k = 0; k < 4; k++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", k);
        stream = 100 + (uint64_t)k;
        fac_tensor *t = random_tensor((fac_type){ FAC_F64, dims[k] }, -1, 1);
        w[k] = fac_param(g, name, t);
        fac_tensor_free(t);
    }
    fac_tensor *zeros = NULL;
    OK(fac_tensor_new(NULL, four.dtype, four.dims, &zeros, &err));
    fac_value *stat = fac_const(g, zeros);
    fac_tensor_free(zeros);
    fac_value *y = fac_conv2d(x, w[0], NULL, &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } });
    y = fac_apply(g, &fac_op_batch_norm, "training_mode epsilon=1e-5", 5,
                  (fac_value *[]){ y, w[1], w[2], stat, stat });
    y = fac_add(fac_max_pool2d(fac_relu(y), 2, 2, NULL), fac_avg_pool2d(y, 2, 2, NULL));
    y = fac_linear(fac_mean(y, fac_shape(2, 3), false), w[3], NULL);
    return fac_mean(fac_mul(fac_log_softmax(y, -1), fac_softmax(y, 1)), (fac_dims){ 0 }, false);
}

static void symbols_have_gradients(void **state) {
    (void)state;
    for (int n = 1; n < 4; n += 2) {
        fac_tensor *grads[2][4] = { { NULL } }, *x = NULL;
        for (int symbolic = 0; symbolic < 2; symbolic++) {
            fac_graph *g = fac_graph_new();
            fac_value *w[4], *d[4];
            fac_dims dims = symbolic ? fac_shape(fac_symbol(g, "N"), 3, fac_symbol(g, "H"), 8)
                                     : fac_shape(n, 3, 6, 8);
            fac_value *loss = network(g, fac_input(g, "x", FAC_F64, dims), w);
            fac_grad(loss, 4, w, d);
            for (int k = 0; k < 4; k++) fac_output(g, (char[]){ 'd', (char)('0' + k), 0 }, d[k]);
            OK(fac_graph_check(g, &err));
            fac_program *p = NULL;
            OK(fac_program_new(g, device, NULL, &p, &err));
            stream = 55;
            if (!x) x = random_tensor((fac_type){ FAC_F64, fac_shape(n, 3, 6, 8) }, -1, 1);
            OK(fac_program_run(p, &x, grads[symbolic], &err));
            fac_program_free(p);
            fac_graph_free(g);
        }
        for (int k = 0; k < 4; k++) {
            fac_type type = fac_tensor_type(grads[0][k]);
            double largest = 0;
            for (int64_t i = 0; i < fac_dims_count(&type.dims); i++) {
                double a = ((const double *)fac_tensor_data(grads[0][k]))[i];
                double b = ((const double *)fac_tensor_data(grads[1][k]))[i];
                assert_true(fabs(a - b) <= 1e-12);
                largest = fmax(largest, fabs(a));
            }
            assert_true(largest > 1e-6);
            fac_tensor_free(grads[0][k]);
            fac_tensor_free(grads[1][k]);
        }
        fac_tensor_free(x);
    }
}

/* What the planner makes of gradients for the cpu, against the reference: with enough pixels
 * gradients of convolutions are convolutions with flipped weights. */
static void fast_gradients_are_those_of_the_reference(void **state) {
    (void)state;
    static const char *const problems[] = {
        "conv2d_grad_x(f32[2,16,14,14], f32[16,8,3,3], f32[2,8,14,14]) pad=1,1,1,1",
        "conv2d_grad_x(f32[2,6,15,11], f32[6,4,3,2], f32[2,8,14,13]) pad=2,0,1,0 dilation=1,2 "
        "groups=2",
        "conv2d_grad_x(f32[3,5,12,12], f32[5,1,5,5], f32[3,5,12,12]) pad=2,2,2,2 groups=5",
        "conv2d_grad_x(f32[3,10,12,12], f32[10,1,3,3], f32[3,5,14,14]) groups=5",
        "conv2d_grad_x(f32[2,20,12,12], f32[20,7,1,1], f32[2,7,12,12])",
        "conv2d_grad_x(f32[2,8,16,16], f32[8,8,3,3], f32[2,8,12,12]) pad=3,3,3,3",
        "conv2d_grad_x(f32[2,8,17,17], f32[8,6,3,3], f32[2,6,33,33]) stride=2,2 pad=1,1,1,1",
        "conv2d_grad_w(f32[2,6,33,33], f32[2,8,17,17], f32[8,6,3,3]) stride=2,2 pad=1,1,1,1",
        "conv2d_grad_w(f32[3,5,20,31], f32[3,10,20,31], f32[10,1,3,3]) pad=1,1,1,1 groups=5",
        "max_pool2d_grad(f32[3,5,30,31], f32[3,5,15,16]) kernel=3,3 stride=2,2 pad=1,1,1,1",
        "avg_pool2d_grad(f32[3,5,30,31], f32[3,5,15,16]) kernel=3,3 stride=2,2 pad=1,1,1,1 "
        "count_include_pad",
        "batch_norm_grad(f32[3,5,20,31], f32[3,5,20,31], f32[5]) epsilon=1e-5",
        "batch_norm(f32[3,5,20,31], f32[5], f32[5], f32[5], f32[5]) epsilon=1e-5 momentum=0.9 "
        "training_mode"
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        fac_graph *g = NULL;
        fac_tensor *in[OPERANDS], *out[2][OPERANDS] = { { NULL } };
        OK(fac_problem_graph(problems[i], false, &g, &err));
        for (int k = 0; k < fac_graph_inputs(g); k++)
            in[k] = random_tensor(fac_graph_input(g, k)->type, -1, 1);
        for (int how = 0; how < 2; how++) {
            fac_program *p = NULL;
            const fac_program_opts ref = { .solver = "ref", .no_fuse = true };
            OK(fac_program_new(g, device, how ? &ref : NULL, &p, &err));
            if (fac_program_run(p, in, out[how], &err)) fail_msg("%s: %s", problems[i], err.text);
            fac_program_free(p);
        }
        for (int k = 0; k < fac_graph_outputs(g); k++) {
            fac_type type = fac_tensor_type(out[0][k]);
            for (int64_t e = 0; e < fac_dims_count(&type.dims); e++) {
                double a = (double)((const float *)fac_tensor_data(out[0][k]))[e];
                double b = (double)((const float *)fac_tensor_data(out[1][k]))[e];
                if (!(fabs(a - b) <= 5e-5 * (1 + fabs(b))))
                    fail_msg("%s: output %d[%lld] is %g, not %g", problems[i], k, (long long)e, a,
                             b);
            }
            fac_tensor_free(out[0][k]);
            fac_tensor_free(out[1][k]);
        }
        for (int k = 0; k < fac_graph_inputs(g); k++) fac_tensor_free(in[k]);
        fac_graph_free(g);
    }
}

/* The gradient of a weight multiplies with dy transposed, which is a view: it must reach the
 * product without a copy. */
static void transposed_operands_are_not_copied(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(70, 33)),
              *dy = fac_input(g, "dy", FAC_F32, fac_shape(70, 45));
    fac_output(g, "dw", fac_matmul(fac_transpose(dy, fac_shape(1, 0)), x));
    fac_program *p = NULL;
    fac_tensor *in[2] = { random_tensor((fac_type){ FAC_F32, fac_shape(70, 33) }, -1, 1),
                          random_tensor((fac_type){ FAC_F32, fac_shape(70, 45) }, -1, 1) },
               *out[1] = { NULL };
    OK(fac_program_new(g, device, NULL, &p, &err));
    OK(fac_program_run(p, in, out, &err));
    const float *a = fac_tensor_data(in[0]), *b = fac_tensor_data(in[1]),
                *y = fac_tensor_data(out[0]);
    for (int i = 0; i < 45; i++)
        for (int k = 0; k < 33; k++) {
            double want = 0;
            for (int n = 0; n < 70; n++) want += (double)b[n * 45 + i] * (double)a[n * 33 + k];
            assert_true(fabs((double)y[i * 33 + k] - want) <= 1e-4);
        }
    fac_step_stat steps[4];
    size_t count = fac_program_steps(p, steps, 4);
    for (size_t i = 0; i < count; i++)
        assert_false(!strcmp(steps[i].solver, "reorder") || !strcmp(steps[i].solver, "move"));
    fac_tensor_free(in[0]);
    fac_tensor_free(in[1]);
    fac_tensor_free(out[0]);
    fac_program_free(p);
    fac_graph_free(g);
}

/* Noise is a function of the counter: the same for the same, half of it zeros, and its gradient has
 * the same zeros. */
static void dropout_drops_and_its_gradient_too(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1000)),
              *counter = fac_input(g, "counter", FAC_I64, (fac_dims){ 0 }), *d;
    fac_value *y = fac_dropout_train(x, 0.5, counter), *z = fac_dropout_train(x, 0.5, counter);
    fac_grad(fac_sum(y, (fac_dims){ 0 }, false), 1, &x, &d);
    fac_output(g, "y", y);
    fac_output(g, "z", z);
    fac_output(g, "d", d);
    fac_program *p = NULL, *quiet = NULL;
    fac_graph *inference = fac_graph_inference(g);
    OK(fac_program_new(g, device, NULL, &p, &err));
    OK(fac_program_new(inference, device, NULL, &quiet, &err));
    fac_tensor *in[2] = { random_tensor((fac_type){ FAC_F32, fac_shape(1000) }, 1, 2), NULL },
               *out[3][3] = { { NULL } };
    OK(fac_tensor_new(NULL, FAC_I64, (fac_dims){ 0 }, &in[1], &err));
    OK(fac_program_run(p, in, out[0], &err));
    OK(fac_program_run(quiet, in, out[2], &err));
    OK(fac_tensor_write(in[1], &(int64_t){ 7 }, sizeof(int64_t), &err));
    OK(fac_program_run(p, in, out[1], &err));
    int zeros = 0, other_stream = 0, other_counter = 0;
    for (int i = 0; i < 1000; i++) {
        float v[3][3], from = ((const float *)fac_tensor_data(in[0]))[i];
        for (int k = 0; k < 9; k++)
            v[k / 3][k % 3] = ((const float *)fac_tensor_data(out[k / 3][k % 3]))[i];
        assert_true(v[0][0] == 0 ? v[0][2] == 0 : v[0][0] == 2 * from && v[0][2] == 2);
        assert_true(v[2][0] == from);
        assert_true((v[0][1] == 0) ==
                    (fac_random_uniform(0, 1, (uint64_t)i) < 0.5)); /* stream 1, counter 0 */
        assert_true((v[1][0] == 0) == (fac_random_uniform(7, 0, (uint64_t)i) < 0.5));
        zeros += v[0][0] == 0;
        other_stream += (v[0][0] == 0) != (v[0][1] == 0);
        other_counter += (v[0][0] == 0) != (v[1][0] == 0);
    }
    assert_true(zeros > 400 && zeros < 600 && other_stream > 400 && other_stream < 600 &&
                other_counter > 400 && other_counter < 600);
    for (int k = 0; k < 9; k++) fac_tensor_free(out[k / 3][k % 3]);
    fac_tensor_free(in[0]);
    fac_tensor_free(in[1]);
    fac_program_free(p);
    fac_program_free(quiet);
    fac_graph_free(inference);
    fac_graph_free(g);
}

static void what_has_no_gradient_is_named(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(3)), *d = NULL;
    fac_grad(x, 1, &x, &d);
    fac_error e = { 0 };
    assert_int_equal(fac_graph_check(g, &e), FAC_E_SHAPE);
    assert_non_null(strstr(e.text, "one floating-point number"));
    fac_graph_free(g);
}

static int count(const fac_graph *g, const fac_op *op) {
    int n = 0;
    for (const fac_node *k = g->first; k; k = k->next) n += k->op == op;
    return n;
}

/* dx of  sum(w gather(x, order)):  w back at their places. */
static void rows_in_another_order_go_back(void **state) {
    (void)state;
    enum { ROWS = 4, WIDE = 3 };
    static const int64_t orders[][ROWS] = { { 2, 0, 3, 1 }, { 2, -4, 3, 1 }, { 2, 0, 2, 1 } };
    for (int k = 0; k < 3; k++) {
        fac_graph *g = fac_graph_new();
        fac_tensor *order, *values, *weights, *t = NULL;
        double w[ROWS * WIDE], got[ROWS * WIDE], want[ROWS * WIDE] = { 0 };
        for (int i = 0; i < ROWS * WIDE; i++) w[i] = i + 1;
        OK(fac_tensor_new(NULL, FAC_I64, fac_shape(ROWS), &order, &err));
        OK(fac_tensor_new(NULL, FAC_F64, fac_shape(ROWS, WIDE), &values, &err));
        OK(fac_tensor_new(NULL, FAC_F64, fac_shape(ROWS, WIDE), &weights, &err));
        OK(fac_tensor_write(order, orders[k], sizeof orders[k], &err));
        OK(fac_tensor_write(values, w, sizeof w, &err));
        OK(fac_tensor_write(weights, w, sizeof w, &err));
        fac_value *x = fac_param(g, "x", values), *dx,
                  *y = fac_mul(fac_gather(x, fac_const(g, order), 0), fac_const(g, weights));
        fac_grad(fac_sum(y, (fac_dims){ 0 }, false), 1, &x, &dx);
        OK(fac_graph_check(g, &err));
        assert_int_equal(count(g, &fac_op_gather_grad), k == 2); /* what is named twice is added */
        OK(fac_eval(dx, device, &t, &err));
        OK(fac_tensor_read(t, got, sizeof got, &err));
        for (int i = 0; i < ROWS * WIDE; i++)
            want[(orders[k][i / WIDE] + ROWS) % ROWS * WIDE + i % WIDE] += w[i];
        assert_memory_equal(got, want, sizeof want);
        fac_tensor_free(t);
        fac_graph_free(g);
        fac_tensor_free(order);
        fac_tensor_free(values);
        fac_tensor_free(weights);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_connected_gets_zeros),
        cmocka_unit_test(rows_in_another_order_go_back),
        cmocka_unit_test(unused_outputs_have_no_gradient),
        cmocka_unit_test(any_number_of_parts_has_gradients),
        cmocka_unit_test(symbols_have_gradients),
        cmocka_unit_test(fast_gradients_are_those_of_the_reference),
        cmocka_unit_test(transposed_operands_are_not_copied),
        cmocka_unit_test(dropout_drops_and_its_gradient_too),
        cmocka_unit_test(what_has_no_gradient_is_named),
    };
    return cmocka_run_group_tests_name("grad graph", tests, open_device, close_device);
}
