/* The caller's context, queue, buffers and events.  Skipped where no driver is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backends/opencl/device/opencl.h"
#include "facula/facula.h"
#include "facula/opencl.h"
#include "opencl_check.h"

static fac_error err;
static fac_device *opencl, *shared;
static cl_context context;
static cl_command_queue queue;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)
#define NEEDS_DEVICE()                                                                             \
    do {                                                                                           \
        if (!opencl) skip();                                                                       \
    } while (0)
#define CL (fac_opencl_of(opencl)->cl)

enum { N = 256 };

static int open_devices(void **state) {
    (void)state;
    cl_int code;
    if (opencl_open(&opencl, &err)) return -1;
    if (!opencl) return 0;
    cl_device_id device = fac_opencl_of(opencl)->place.device;
    context = CL.CreateContext(NULL, 1, &device, NULL, NULL, &code);
    queue = CL.CreateCommandQueue(context, device, 0, &code);
    return fac_opencl_device(context, queue, NULL, &shared, &err);
}

static int close_devices(void **state) {
    (void)state;
    fac_device_free(shared);
    if (opencl) {
        CL.ReleaseCommandQueue(queue);
        CL.ReleaseContext(context);
    }
    fac_device_free(opencl);
    return 0;
}

static fac_program *doubling(fac_device *d) {
    fac_graph *g = fac_graph_new();
    fac_program *p = NULL;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(N));
    fac_output(g, "y", fac_add(x, x));
    OK(fac_program_new(g, d, NULL, &p, &err));
    fac_graph_free(g);
    return p;
}

static cl_mem buffer_of(const float *contents, size_t n) {
    cl_int code;
    cl_mem m = CL.CreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                               n * sizeof *contents, (void *)(uintptr_t)contents, &code);
    assert_int_equal(code, 0);
    return m;
}

static void programs_run_on_the_callers_buffers(void **state) {
    (void)state;
    NEEDS_DEVICE();
    float x[2 * N], y[2 * N] = { 0 };
    for (int i = 0; i < 2 * N; i++) x[i] = (float)i;
    cl_mem from = buffer_of(x, 2 * N), to = buffer_of(y, 2 * N);
    fac_tensor *in = NULL, *out = NULL;
    size_t at = 0;
    const size_t held = fac_device_memory(shared).now;
    OK(fac_opencl_tensor(shared, from, 16 * sizeof *x, FAC_F32, fac_shape(N), &in, &err));
    OK(fac_opencl_tensor(shared, to, 8 * sizeof *y, FAC_F32, fac_shape(N), &out, &err));
    assert_ptr_equal(fac_opencl_buffer(in, &at), from);
    assert_int_equal(at, 16 * sizeof *x);
    assert_int_equal(fac_device_memory(shared).now, held); /* theirs is not ours */
    CL.ReleaseMemObject(from);                             /* the tensor holds it */
    fac_program *p = doubling(shared);
    OK(fac_program_run(p, &in, &out, &err));
    assert_int_equal(CL.EnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof y, y, 0, NULL, NULL),
                     0); /* in order after the run */
    for (int i = 0; i < 2 * N; i++)
        assert_true(y[i] == (i >= 8 && i < 8 + N ? 2 * (float)(i + 8) : 0));
    float back[N];
    OK(fac_tensor_read(out, back, sizeof back, &err));
    assert_memory_equal(back, y + 8, sizeof back);
    fac_program_free(p);
    fac_tensor_free(in);
    fac_tensor_free(out);
    CL.ReleaseMemObject(to);
}

/* A parameter in a buffer of the caller, who writes it between runs. */
static void parameters_may_be_the_callers(void **state) {
    (void)state;
    NEEDS_DEVICE();
    float w[N], y[N];
    for (int i = 0; i < N; i++) w[i] = (float)i;
    cl_mem memory = buffer_of(w, N);
    fac_tensor *t = NULL, *out = NULL;
    OK(fac_opencl_tensor(shared, memory, 0, FAC_F32, fac_shape(N), &t, &err));
    fac_graph *g = fac_graph_new();
    fac_program *p = NULL;
    fac_value *v = fac_param(g, "w", t);
    fac_output(g, "y", fac_neg(v));
    fac_update(v, fac_add(v, v));
    OK(fac_program_new(g, shared, NULL, &p, &err));
    for (int turn = 0; turn < 2; turn++) {
        OK(fac_program_run(p, NULL, &out, &err));
        OK(fac_tensor_read(out, y, sizeof y, &err));
        for (int i = 0; i < N; i++) assert_true(y[i] == -w[i]);
        assert_int_equal(
            CL.EnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof y, y, 0, NULL, NULL), 0);
        for (int i = 0; i < N; i++) assert_true(y[i] == 2 * w[i]);
        for (int i = 0; i < N; i++) w[i] = 3 * w[i] + 1;
        assert_int_equal(
            CL.EnqueueWriteBuffer(queue, memory, CL_TRUE, 0, sizeof w, w, 0, NULL, NULL), 0);
        fac_opencl_changed(t);
    }
    fac_program_free(p);
    fac_graph_free(g);
    fac_tensor_free(t);
    fac_tensor_free(out);
    CL.ReleaseMemObject(memory);
}

static void events_order_queues(void **state) {
    (void)state;
    NEEDS_DEVICE();
    cl_int code;
    float x[N], y[N] = { 0 };
    for (int i = 0; i < N; i++) x[i] = (float)i;
    cl_mem from = buffer_of(y, N);
    cl_command_queue other =
        CL.CreateCommandQueue(context, fac_opencl_of(opencl)->place.device, 0, &code);
    fac_tensor *in = NULL, *out = NULL;
    fac_program *p = doubling(shared);
    OK(fac_opencl_tensor(shared, from, 0, FAC_F32, fac_shape(N), &in, &err));
    OK(fac_tensor_new(shared, FAC_F32, fac_shape(N), &out, &err));
    cl_event gate = CL.CreateUserEvent(context, &code), written, done = NULL;
    assert_int_equal(
        CL.EnqueueWriteBuffer(other, from, CL_FALSE, 0, sizeof x, x, 1, &gate, &written), 0);
    CL.Flush(other);
    OK(fac_opencl_wait_for(shared, &written, 1, &err));
    OK(fac_program_run(p, &in, &out, &err)); /* submitted, and waiting */
    OK(fac_opencl_event(shared, &done, &err));
    cl_int status = CL_COMPLETE;
    CL.GetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    assert_true(status != CL_COMPLETE);
    assert_int_equal(CL.SetUserEventStatus(gate, CL_COMPLETE), 0);
    assert_int_equal(CL.WaitForEvents(1, &done), 0);
    OK(fac_tensor_read(out, y, sizeof y, &err));
    for (int i = 0; i < N; i++) assert_true(y[i] == 2 * x[i]);
    CL.ReleaseEvent(gate), CL.ReleaseEvent(written), CL.ReleaseEvent(done);
    CL.ReleaseCommandQueue(other);
    fac_program_free(p);
    fac_tensor_free(in);
    fac_tensor_free(out);
    CL.ReleaseMemObject(from);
}

static void wrong_objects_are_refused(void **state) {
    (void)state;
    NEEDS_DEVICE();
    cl_int code;
    const float x[4] = { 0 };
    fac_tensor *t = NULL;
    fac_device *d = NULL, *cpu = NULL;
    cl_mem four = buffer_of(x, 4);
    assert_int_equal(fac_opencl_tensor(shared, four, 0, FAC_F32, fac_shape(5), &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_opencl_tensor(shared, four, 8, FAC_F32, fac_shape(3), &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_opencl_tensor(shared, four, 2, FAC_F32, fac_shape(1), &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_opencl_tensor(shared, four, SIZE_MAX - 3, FAC_F32, fac_shape(4), &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_opencl_tensor(opencl, four, 0, FAC_F32, fac_shape(4), &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_opencl_tensor(shared, NULL, 0, FAC_F32, fac_shape(4), &t, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_opencl_device(fac_opencl_context(opencl), queue, NULL, &d, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_opencl_device(NULL, queue, NULL, &d, &err), FAC_E_ARGUMENT);
    cl_command_queue any = CL.CreateCommandQueue(context, fac_opencl_of(opencl)->place.device,
                                                 CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    if (!code) {
        assert_int_equal(fac_opencl_device(context, any, NULL, &d, &err), FAC_E_ARGUMENT);
        CL.ReleaseCommandQueue(any);
    }
    OK(fac_device_open("cpu", NULL, &cpu, &err));
    assert_int_equal(fac_opencl_wait_for(cpu, NULL, 1, &err), FAC_E_ARGUMENT);
    assert_null(fac_opencl_queue(cpu));
    OK(fac_tensor_new(cpu, FAC_F32, fac_shape(4), &t, &err));
    assert_null(fac_opencl_buffer(t, NULL));
    fac_tensor_free(t);
    fac_device_free(cpu);
    CL.ReleaseMemObject(four);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_run_on_the_callers_buffers),
        cmocka_unit_test(parameters_may_be_the_callers),
        cmocka_unit_test(events_order_queues),
        cmocka_unit_test(wrong_objects_are_refused),
    };
    return cmocka_run_group_tests_name("opencl interop", tests, open_devices, close_devices);
}
