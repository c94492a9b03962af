/* Several threads and several queues: a program run by two threads at once, on two devices; where
 * there is one GPU (or CPU) only, it is opened twice, with a context and a queue each; every answer
 * is the cpu's.  Skipped where no driver is. */
#include <pthread.h>
#include "opencl_pair.h"

enum { DEVICES = 2, THREADS = 4, RUNS = 6, CLASSES = 10, IMAGES = 2 };

typedef struct worker {
    pthread_t thread;
    fac_program *program;
    fac_tensor *x;
    float right[IMAGES * CLASSES];
    double worst;
    fac_error error;
} worker;

static fac_status answer(fac_program *p, fac_tensor *x, float *to, fac_error *e) {
    fac_tensor *y = NULL;
    fac_status status = fac_program_run(p, &x, &y, e);
    if (!status) status = fac_tensor_read(y, to, IMAGES * CLASSES * sizeof *to, e);
    fac_tensor_free(y);
    return status;
}

static void *work(void *arg) {
    worker *w = arg;
    float y[IMAGES * CLASSES];
    for (int i = 0; i < RUNS && !w->error.status; i++) {
        if (answer(w->program, w->x, y, &w->error)) break;
        for (int k = 0; k < IMAGES * CLASSES; k++)
            w->worst = fmax(w->worst, fabs((double)y[k] - (double)w->right[k]));
    }
    return NULL;
}

static void threads_and_queues(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_graph *g;
    fac_device *device[DEVICES] = { opencl, NULL };
    fac_program *program[DEVICES], *judge;
    worker w[THREADS] = { 0 };
    OK(fac_zoo_new("lenet", NULL, 3, &g, &err));
    if (opencl_open_other(opencl, &device[1], &err)) fail_msg("%s", err.text);
    OK(fac_program_new(g, cpu, NULL, &judge, &err));
    for (int d = 0; d < DEVICES; d++) OK(fac_program_new(g, device[d], NULL, &program[d], &err));
    for (int i = 0; i < THREADS; i++) {
        w[i].program = program[i % DEVICES];
        w[i].x = random_tensor(i < DEVICES ? NULL : device[i % DEVICES],
                               fac_shape(IMAGES, 1, 28, 28), (uint64_t)i);
        fac_tensor *host = random_tensor(NULL, fac_shape(IMAGES, 1, 28, 28), (uint64_t)i);
        OK(answer(judge, host, w[i].right, &err));
        fac_tensor_free(host);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(w[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        if (w[i].error.status) fail_msg("thread %d: %s", i, w[i].error.text);
        if (!(w[i].worst < 1e-5)) fail_msg("thread %d is off by %g", i, w[i].worst);
        fac_tensor_free(w[i].x);
    }
    for (int d = 0; d < DEVICES; d++) fac_program_free(program[d]);
    fac_program_free(judge);
    fac_device_free(device[1]);
    fac_graph_free(g);
}

/* What one queue made is an input of the other: through the host, in order. */
static void from_queue_to_queue(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_device *other = NULL;
    if (opencl_open_other(opencl, &other, &err)) fail_msg("%s", err.text);
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1000));
    fac_output(g, "y", fac_add(fac_mul(x, x), fac_number(g, FAC_F32, 1)));
    fac_program *p[DEVICES];
    fac_tensor *t = random_tensor(NULL, fac_shape(1000), 9);
    float all[1000], right;
    OK(fac_tensor_read(t, all, sizeof all, &err));
    right = all[0];
    for (int d = 0; d < DEVICES; d++) OK(fac_program_new(g, d ? other : opencl, NULL, &p[d], &err));
    for (int i = 0; i < RUNS; i++) {
        fac_tensor *y = NULL;
        OK(fac_program_run(p[i % DEVICES], &t, &y, &err));
        fac_tensor_free(t);
        t = y;
        right = right * right + 1;
    }
    OK(fac_tensor_read(t, all, sizeof all, &err));
    assert_true(fabs((double)all[0] / (double)right - 1) < 1e-4);
    fac_tensor_free(t);
    for (int d = 0; d < DEVICES; d++) fac_program_free(p[d]);
    fac_graph_free(g);
    fac_device_free(other);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(threads_and_queues),
                                        cmocka_unit_test(from_queue_to_queue) };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
