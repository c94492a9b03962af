/* Programs on the OpenCL device: the same answers as on the cpu, for networks, trainings, tensors
 * of either side, observers; what a run borrows is given back.  Skipped where no driver is. */
#include "opencl_pair.h"
#include "allocations.h"

static void expect_close(const fac_tensor *a, const fac_tensor *b, double tolerance) {
    fac_type type = fac_tensor_type(a);
    size_t n = (size_t)fac_dims_count(&type.dims);
    float *x = malloc((n + 1) * sizeof *x), *y = malloc((n + 1) * sizeof *y);
    OK(fac_tensor_read(a, x, n * sizeof *x, &err));
    OK(fac_tensor_read(b, y, n * sizeof *y, &err));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= tolerance * (1 + fabs((double)y[i]))))
            fail_msg("element %zu: %g and %g", i, x[i], y[i]);
    free(x);
    free(y);
}

static void networks_answer_alike(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_graph *g = NULL;
    fac_tensor *y[2] = { NULL };
    OK(fac_zoo_new("lenet", NULL, 3, &g, &err));
    fac_tensor *x = random_tensor(NULL, fac_shape(3, 1, 28, 28), 1);
    size_t held = 0;
    for (int k = 0; k < 2; k++) {
        fac_program *p = NULL;
        OK(fac_program_new(g, k ? cpu : opencl, NULL, &p, &err));
        for (int turn = 0; turn < 3; turn++) {
            fac_tensor_free(y[k]);
            y[k] = NULL;
            OK(fac_program_run(p, &x, &y[k], &err));
            if (turn == 1) held = fac_device_memory(k ? cpu : opencl).now;
        }
        assert_int_equal(fac_device_memory(k ? cpu : opencl).now, held);
        assert_non_null(
            fac_tensor_data(y[k])); /* a result that the program made is in host memory */
        fac_program_free(p);
    }
    expect_close(y[0], y[1], 1e-5);
    fac_tensor_free(y[0]);
    fac_tensor_free(y[1]);
    fac_tensor_free(x);
    fac_graph_free(g);
}

/* Once its shapes were planned, with what it reads and writes on the device. */
static void runs_allocate_nothing(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_graph *g = NULL;
    fac_program *p = NULL;
    fac_tensor *x = random_tensor(opencl, fac_shape(2, 1, 28, 28), 1), *y = NULL;
    OK(fac_zoo_new("lenet", NULL, 3, &g, &err));
    OK(fac_program_new(g, opencl, NULL, &p, &err));
    OK(fac_tensor_new(opencl, FAC_F32, fac_shape(2, 10), &y, &err));
    for (int turn = 0; turn < 4; turn++) {
        allocations_left = turn < 2 ? -1 : 0;
        fac_status status = fac_program_run(p, &x, &y, &err);
        if (!status) status = fac_device_sync(opencl, &err);
        allocations_left = -1;
        if (status) fail_msg("run %d: %s", turn, err.text);
    }
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(g);
}

/* Inputs and outputs may be on the device, be windows of larger tensors, or be given. */
static void tensors_of_either_side(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_graph *g = fac_graph_new();
    fac_value *a = fac_input(g, "a", FAC_F32, fac_shape(4, 5)),
              *b = fac_input(g, "b", FAC_F32, fac_shape(5));
    fac_output(g, "sum", fac_add(a, b));
    fac_output(g, "product", fac_matmul(a, fac_transpose(a, fac_shape(1, 0))));
    fac_tensor *wide = random_tensor(opencl, fac_shape(4, 10), 2),
               *x[2] = { NULL, random_tensor(NULL, fac_shape(5), 3) };
    fac_tensor *out[2] = { NULL }, *want[2] = { NULL };
    fac_program *p = NULL, *q = NULL;
    OK(fac_tensor_view(wide, fac_shape(4, 5), (const int64_t[]){ 10, 2 }, 1, &x[0], &err));
    OK(fac_tensor_new(opencl, FAC_F32, fac_shape(4, 5), &out[0], &err));
    OK(fac_program_new(g, opencl, NULL, &p, &err));
    OK(fac_program_new(g, cpu, NULL, &q, &err));
    OK(fac_program_run(p, x, out, &err));
    OK(fac_program_run(q, x, want, &err));
    for (int k = 0; k < 2; k++) expect_close(out[k], want[k], 1e-6);
    assert_null(fac_tensor_data(out[0]));
    assert_non_null(fac_tensor_data(out[1]));
    for (int k = 0; k < 2; k++)
        fac_tensor_free(x[k]), fac_tensor_free(out[k]), fac_tensor_free(want[k]);
    fac_tensor_free(wide);
    fac_program_free(p);
    fac_program_free(q);
    fac_graph_free(g);
}

static fac_value *small_net(fac_graph *g) {
    fac_nn_seed(g, 5);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 2));
    x = fac_tanh(fac_nn_linear(x, "fc1", 16));
    return fac_nn_linear(x, "fc2", 2);
}

static void trainings_go_alike(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_train_result r[2];
    fac_dataset data = { 0 };
    OK(fac_dataset_toy("xor", 50, 3, &data, &err));
    for (int k = 0; k < 2; k++) {
        fac_graph *g = fac_graph_new();
        fac_trainer *t = NULL;
        const fac_train_opts how = { .epochs = 4,
                                     .batches = { .size = 25, .shuffle = true },
                                     .schedule = { .lr = 0.02 } };
        fac_output(g, "logits", small_net(g));
        OK(fac_trainer_new(g, k ? cpu : opencl, NULL, &t, &err));
        OK(fac_train(t, &data, &data, &how, &r[k], &err));
        fac_trainer_free(t);
        fac_graph_free(g);
    }
    if (!(fabs(r[0].test.loss - r[1].test.loss) <= 1e-6))
        fail_msg("losses %.9g and %.9g", r[0].test.loss, r[1].test.loss);
    assert_true(r[0].test.accuracy == r[1].test.accuracy);
    fac_dataset_free(&data);
}

static bool seen(void *self, const char *node, const fac_tensor *value) {
    (void)node;
    ++*(int *)self;
    return fac_tensor_data(value) != NULL;
}

static void observers_see_every_node(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_graph *g = fac_graph_new();
    fac_program *p = NULL;
    int nodes = 0;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(3, 4));
    fac_output(g, "y", fac_softmax(fac_relu(x), 1));
    fac_tensor *in = random_tensor(NULL, fac_shape(3, 4), 4), *y = NULL;
    OK(fac_program_new(g, opencl, &(fac_program_opts){ .observe = seen, .observe_self = &nodes },
                       &p, &err));
    OK(fac_program_run(p, &in, &y, &err));
    assert_int_equal(nodes, 2);
    fac_tensor_free(in);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_answer_alike),    cmocka_unit_test(runs_allocate_nothing),
        cmocka_unit_test(tensors_of_either_side),   cmocka_unit_test(trainings_go_alike),
        cmocka_unit_test(observers_see_every_node),
    };
    return cmocka_run_group_tests_name("opencl run", tests, open_devices, close_devices);
}
