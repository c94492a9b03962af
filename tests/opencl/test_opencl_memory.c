/* Where contents are: parameters that stay on the device through a training, results that come on
 * the first read, trainings that move between devices, memory that is short, errors that come late.
 * Skipped where no driver is. */
#include <unistd.h>
#include "opencl_pair.h"
#include "backends/opencl/device/launch.h"
#include "graph/graph_internal.h"

static void expect_close(const fac_tensor *a, const fac_tensor *b, double tolerance,
                         const char *what) {
    const fac_type type = fac_tensor_type(a);
    const size_t n = (size_t)fac_dims_count(&type.dims);
    const float *x = fac_tensor_data(a), *y = fac_tensor_data(b);
    if (type.dtype != FAC_F32) {
        assert_memory_equal(x, y, fac_type_bytes(&type));
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= tolerance * (1 + fabs((double)y[i]))))
            fail_msg("%s[%zu]: %g and %g", what, i, x[i], y[i]);
}

/* ---- trainings ---- */

static fac_trainer *trainer(fac_device *d, fac_graph **g) {
    fac_trainer *t = NULL;
    fac_value *x;
    *g = fac_graph_new();
    fac_nn_seed(*g, 5);
    x = fac_input(*g, "x", FAC_F32, fac_shape(fac_symbol(*g, "N"), 6));
    x = fac_relu(fac_nn_linear(x, "fc1", 9));
    fac_output(*g, "logits", fac_nn_linear(x, "fc2", 3));
    OK(fac_trainer_new(*g, d, NULL, &t, &err));
    return t;
}

static void steps(fac_trainer *t, int from, int to) {
    fac_tensor *labels = NULL;
    const int64_t truth[4] = { 0, 2, 1, 2 };
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(4), &labels, &err));
    OK(fac_tensor_write(labels, truth, sizeof truth, &err));
    for (int i = from; i < to; i++) {
        fac_tensor *x = random_tensor(NULL, fac_shape(4, 6), (uint64_t)i);
        OK(fac_trainer_step(t, x, labels, 0.01, NULL, &err));
        fac_tensor_free(x);
    }
    fac_tensor_free(labels);
}

static void parameters_stay_on_the_device(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_graph *g[2];
    fac_trainer *t[2] = { trainer(opencl, &g[0]), trainer(cpu, &g[1]) };
    const char *const names[] = { "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias" };
    for (int k = 0; k < 2; k++) steps(t[k], 0, 5);
    for (int i = 0; i < 4; i++) {
        const fac_tensor *w = fac_value_tensor(fac_graph_find(g[0], names[i]));
        assert_true(away(w));
        const uint64_t version = fac_tensor_version(w);
        expect_close(w, fac_value_tensor(fac_graph_find(g[1], names[i])), 1e-4, names[i]);
        assert_false(away(w));
        assert_true(fac_tensor_version(w) == version); /* looking is not writing */
    }
    const size_t held = fac_device_memory(opencl).now;
    for (int k = 0; k < 2; k++) steps(t[k], 5, 8);
    assert_int_equal(fac_device_memory(opencl).now,
                     held); /* no step holds more than the one before */
    const float one[3] = { 1, 1, 1 };
    for (int k = 0; k < 2; k++)
        OK(fac_tensor_write(fac_value_tensor(fac_graph_find(g[k], "fc2.bias")), one, sizeof one,
                            &err));
    for (int k = 0; k < 2; k++)
        steps(t[k], 8, 10); /* what the host writes is what the device goes on with */
    for (int i = 0; i < 4; i++)
        expect_close(fac_value_tensor(fac_graph_find(g[0], names[i])),
                     fac_value_tensor(fac_graph_find(g[1], names[i])), 1e-4, names[i]);
    for (int k = 0; k < 2; k++) {
        fac_trainer_free(t[k]);
        fac_graph_free(g[k]);
    }
}

/* cpu -> opencl -> cpu by checkpoints equals the cpu alone. */
static void trainings_move_between_devices(void **state) {
    (void)state;
    NEEDS_DEVICE();
    char path[] = "/tmp/facula-moves-XXXXXX";
    close(mkstemp(path));
    fac_graph *alone, *g;
    fac_trainer *t, *all = trainer(cpu, &alone);
    steps(all, 0, 9);
    for (int part = 0; part < 3; part++) {
        t = trainer(part == 1 ? opencl : cpu, &g);
        if (part) OK(fac_trainer_load(t, path, &err));
        assert_int_equal(fac_trainer_steps(t), 3 * part);
        steps(t, 3 * part, 3 * part + 3);
        OK(fac_trainer_save(t, path, &err));
        if (part == 2)
            for (int i = 0; i < fac_graph_params(g); i++) {
                const char *name = fac_value_name(fac_graph_param(g, i));
                expect_close(fac_value_tensor(fac_graph_find(g, name)),
                             fac_value_tensor(fac_graph_find(alone, name)), 1e-4, name);
            }
        fac_trainer_free(t);
        fac_graph_free(g);
    }
    unlink(path);
    fac_trainer_free(all);
    fac_graph_free(alone);
}

/* ---- programs with updates that are copies ---- */

/* a <- b and b <- a at once, c <- a transposed: none of them can be written by a step over its
 * parameter. */
static void updates_are_parallel(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_tensor *t[2][3];
    for (int k = 0; k < 2; k++) {
        fac_graph *g = fac_graph_new();
        fac_program *p = NULL;
        for (int i = 0; i < 3; i++)
            t[k][i] = random_tensor(NULL, i == 2 ? fac_shape(4, 3) : fac_shape(3, 4), (uint64_t)i);
        fac_value *a = fac_param(g, "a", t[k][0]), *b = fac_param(g, "b", t[k][1]),
                  *c = fac_param(g, "c", t[k][2]);
        fac_update(a, b);
        fac_update(b, a);
        fac_update(c, fac_transpose(a, fac_shape(1, 0)));
        OK(fac_program_new(g, k ? cpu : opencl, NULL, &p, &err));
        for (int turn = 0; turn < 3; turn++) OK(fac_program_run(p, NULL, NULL, &err));
        assert_int_equal(away(t[k][0]), k == 0);
        fac_program_free(p);
        fac_graph_free(g);
    }
    for (int i = 0; i < 3; i++) {
        expect_close(t[0][i], t[1][i], 0, "updated");
        fac_tensor_free(t[0][i]);
        fac_tensor_free(t[1][i]);
    }
}

/* ---- results ---- */

static void results_come_when_looked_at(void **state) {
    (void)state;
    NEEDS_DEVICE();
    enum { N = 1000 };
    fac_program *p = doubling(opencl, N);
    fac_tensor *x = random_tensor(NULL, fac_shape(N), 1), *y = NULL, *z = NULL,
               *given = random_tensor(NULL, fac_shape(N), 2);
    OK(fac_program_run(p, &x, &y, &err));
    assert_true(away(y));
    OK(fac_program_run(p, &y, &z, &err)); /* from one to the next without the host */
    OK(fac_program_run(p, &z, &given, &err));
    assert_true(away(y) && away(z) && away(given));
    const float *a = fac_tensor_data(x), *b = fac_tensor_data(given);
    for (int i = 0; i < N; i++) assert_true(b[i] == 8 * a[i]);
    assert_true(away(y) && !away(given));
    fac_tensor *half = NULL; /* a part of a tensor keeps the rest */
    OK(fac_tensor_view(given, fac_shape(N / 2), NULL, N / 4, &half, &err));
    fac_program *q = doubling(opencl, N / 2);
    fac_tensor *in = half;
    OK(fac_program_run(q, &in, &half, &err));
    b = fac_tensor_data(given);
    for (int i = 0; i < N; i++) assert_true(b[i] == (i >= N / 4 && i < 3 * N / 4 ? 16 : 8) * a[i]);
    fac_program_free(p);
    fac_program_free(q);
    fac_tensor_free(half);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_tensor_free(z);
    fac_tensor_free(given);
}

static void contents_outlive_the_device(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_device *d = NULL;
    OK(fac_device_open(fac_device_name(opencl), NULL, &d, &err));
    fac_program *p = doubling(d, 64);
    fac_tensor *x = random_tensor(NULL, fac_shape(64), 3), *y = NULL;
    OK(fac_program_run(p, &x, &y, &err));
    fac_program_free(p);
    assert_true(away(y));
    fac_device_free(d);
    assert_false(away(y));
    for (int i = 0; i < 64; i++)
        assert_true(((const float *)fac_tensor_data(y))[i] ==
                    2 * ((const float *)fac_tensor_data(x))[i]);
    fac_tensor_free(x);
    fac_tensor_free(y);
}

/* Two devices pass a tensor to each other; each sees what the other one wrote. */
static void devices_share_tensors(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_device *second = NULL;
    if (opencl_open_other(opencl, &second, &err)) fail_msg("%s", err.text);
    fac_tensor *w = random_tensor(NULL, fac_shape(50), 4), *first = NULL;
    OK(fac_tensor_copy_contiguous(w, &first, &err));
    fac_program *p[2];
    for (int k = 0; k < 2; k++) {
        fac_graph *g = fac_graph_new();
        fac_value *v = fac_param(g, "w", w);
        fac_update(v, fac_add(v, v));
        OK(fac_program_new(g, k ? second : opencl, NULL, &p[k], &err));
        fac_graph_free(g);
    }
    for (int turn = 0; turn < 6; turn++) OK(fac_program_run(p[turn & 1], NULL, NULL, &err));
    for (int i = 0; i < 50; i++)
        assert_true(((const float *)fac_tensor_data(w))[i] ==
                    64 * ((const float *)fac_tensor_data(first))[i]);
    for (int k = 0; k < 2; k++) fac_program_free(p[k]);
    fac_device_free(second);
    fac_tensor_free(w);
    fac_tensor_free(first);
}

/* ---- memory ---- */

static void large_transfers_arrive(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_opencl *o = fac_opencl_of(opencl);
    const bool gpu = o->limits.gpu;
    const size_t sizes[] = { 1,       100,           65536,   65537,
                             1 << 20, (1 << 20) + 1, 9 << 20, (11 << 20) + 12345 };
    for (size_t k = 0; k < 2 * sizeof sizes / sizeof *sizes; k++) {
        const size_t n = sizes[k / 2];
        unsigned char *x = malloc(n), *y = calloc(1, n);
        fac_cl_block *b;
        o->limits.gpu = k & 1; /* both ways of reading */
        for (size_t i = 0; i < n; i++) x[i] = (unsigned char)(i * 31 + i / 251);
        OK(fac_cl_take(o, n, &b, &err));
        OK(opencl->backend->write(opencl, (fac_span){ b, 0 }, x, n, &err));
        OK(opencl->backend->read(opencl, (fac_span){ b, 0 }, y, n, &err));
        assert_memory_equal(x, y, n);
        OK(opencl->backend->zero(opencl, (fac_span){ b, 0 }, n / 2, &err));
        OK(opencl->backend->read(opencl, (fac_span){ b, 0 }, y, n, &err));
        for (size_t i = 0; i < n; i++) assert_true(y[i] == (i < n / 2 ? 0 : x[i]));
        fac_cl_give(o, b);
        free(x), free(y);
    }
    o->limits.gpu = gpu;
}

/* Copies of host tensors that nothing uses go when memory is short, but not what only the device
 * has; the error says who holds what. */
static void short_memory_is_made_room_in(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_device *d = NULL;
    enum { N = 100000 };
    OK(fac_device_open(fac_device_name(opencl),
                       &(fac_device_opts){ .memory_limit = 6 * N * sizeof(float) }, &d, &err));
    fac_program *p = doubling(d, N);
    fac_tensor *x = random_tensor(NULL, fac_shape(N), 5), *y[4] = { NULL };
    for (int i = 0; i < 4; i++) OK(fac_program_run(p, &x, &y[i], &err));
    for (int i = 0; i < 3; i++) fac_tensor_data(y[i]); /* now the host has three of them, too */
    fac_tensor *big = NULL, *more = NULL;
    OK(fac_tensor_new(d, FAC_F32, fac_shape(4 * N), &big, &err));
    assert_true(away(y[3]));
    assert_int_equal(fac_tensor_new(d, FAC_F32, fac_shape(2 * N), &more, &err), FAC_E_NOMEM);
    assert_non_null(strstr(err.text, "held for tensors 1600000"));
    assert_non_null(strstr(err.text, "parameters and results 400000"));
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < N; k += 997)
            assert_true(((const float *)fac_tensor_data(y[i]))[k] ==
                        2 * ((const float *)fac_tensor_data(x))[k]);
    const fac_memory_stat m = fac_device_memory(d);
    assert_int_equal(m.tensors, 1600000);
    assert_true(m.reserved >= m.now && m.peak <= 6 * N * sizeof(float));
    fac_tensor_free(big);
    assert_true(fac_device_trim(d) >= 1600000);
    fac_program_free(p);
    for (int i = 0; i < 4; i++) fac_tensor_free(y[i]);
    fac_tensor_free(x);
    fac_device_free(d);
}

/* More than 2^32 bytes in one tensor: byte offsets and places of elements are 64-bit.  On devices
 * that have room for two of them.
 */
static void tensors_may_be_huge(void **state) {
    (void)state;
    NEEDS_DEVICE();
    enum { TAIL = 1000 };
    const int64_t n = ((int64_t)5 << 30) / 4 + 77;
    const fac_gpu_limits *l = &fac_opencl_of(opencl)->limits;
    if (!l->gpu || l->largest / 4 < (size_t)n || l->memory / 16 < (size_t)n) skip();
    fac_tensor *x = NULL, *y = NULL, *tail = NULL;
    fac_program *p = doubling(opencl, n);
    OK(fac_tensor_new(opencl, FAC_F32, fac_shape(n), &x, &err));
    OK(fac_tensor_new(opencl, FAC_F32, fac_shape(n), &y, &err));
    float back[TAIL], want[TAIL];
    for (int i = 0; i < TAIL; i++) want[i] = (float)i;
    OK(fac_tensor_view(x, fac_shape(TAIL), NULL, n - TAIL, &tail, &err));
    OK(fac_tensor_write(tail, want, sizeof want, &err));
    fac_tensor_free(tail);
    OK(fac_program_run(p, &x, &y, &err));
    OK(fac_tensor_view(y, fac_shape(TAIL), NULL, n - TAIL, &tail, &err));
    OK(fac_tensor_read(tail, back, sizeof back, &err));
    for (int i = 0; i < TAIL; i++) assert_true(back[i] == 2 * want[i]);
    fac_tensor_free(tail);
    /* 2^32 bytes before: untouched */
    OK(fac_tensor_view(y, fac_shape(TAIL), NULL, n - TAIL - ((int64_t)1 << 30), &tail, &err));
    OK(fac_tensor_read(tail, back, sizeof back, &err));
    for (int i = 0; i < TAIL; i++) assert_true(back[i] == 0);
    fac_tensor_free(tail);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_device_trim(opencl);
}

/* ---- errors ---- */

/* A command that fails after it was submitted: the wait tells it with the name of its step, and so
 * does all that follows. */
static void late_errors_name_their_step(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_device *d = NULL;
    OK(fac_device_open(fac_device_name(opencl), NULL, &d, &err));
    fac_opencl *o = fac_opencl_of(d);
    cl_int code;
    cl_event gate = o->cl.CreateUserEvent(o->context, &code);
    assert_int_equal(code, 0);
    assert_int_equal(o->cl.SetUserEventStatus(gate, -14), 0);
    const char *const names[] = { "relu_1", "conv2d \"layer3.conv1\"", "conv2d \"layer3.conv1\"",
                                  "add_7" };
    cl_event good;
    assert_int_equal(o->cl.EnqueueMarkerWithWaitList(o->queue, 0, NULL, &good), 0);
    o->cl.Finish(o->queue);
    for (int i = 0; i < 4; i++) { /* the third one leaves the failed event, as a kernel does */
        d->backend->step(d, names[i]);
        pthread_mutex_lock(&o->launch);
        const cl_event events[] = { good, NULL, gate, NULL };
        fac_cl_pending_add(o, events[i]);
        pthread_mutex_unlock(&o->launch);
    }
    d->backend->step(d, NULL);
    assert_int_equal(fac_cl_blame(o, CL_OUT_OF_RESOURCES, "waiting", &err), FAC_E_DEVICE);
    assert_non_null(strstr(err.text, "opencl:"));
    assert_non_null(strstr(err.text, "layer3.conv1"));
    assert_null(strstr(err.text, "relu_1"));
    assert_null(strstr(err.text, "add_7"));
    assert_int_equal(fac_device_sync(d, &err), FAC_E_DEVICE);
    assert_non_null(strstr(err.text, "layer3.conv1"));
    fac_tensor *t = NULL;
    assert_int_equal(fac_tensor_new(d, FAC_F32, fac_shape(4), &t, &err), FAC_E_DEVICE);
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_stay_on_the_device),
        cmocka_unit_test(trainings_move_between_devices),
        cmocka_unit_test(updates_are_parallel),
        cmocka_unit_test(results_come_when_looked_at),
        cmocka_unit_test(contents_outlive_the_device),
        cmocka_unit_test(devices_share_tensors),
        cmocka_unit_test(large_transfers_arrive),
        cmocka_unit_test(short_memory_is_made_room_in),
        cmocka_unit_test(tensors_may_be_huge),
        cmocka_unit_test(late_errors_name_their_step),
    };
    return cmocka_run_group_tests_name("opencl memory", tests, open_devices, close_devices);
}
