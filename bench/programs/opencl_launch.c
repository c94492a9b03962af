/* What a launch costs: a chain of tiny kernels through the driver alone (arguments set, enqueued),
 * through our launch path, and as a program of that many steps.  Ratios against the driver, medians
 * of alternating runs.
 *   opencl_launch [DEVICE [KERNELS [RUNS]]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "backends/opencl/device/launch.h"
#include "facula/facula.h"

enum { MOST = 200 };
static const char text[] = "kernel void tiny(global float *x, ulong n) { size_t i = "
                           "get_global_id(0); if (i < n) x[i] += 1.0f; }";

typedef struct chain {
    fac_opencl *o;
    fac_cl_kernel ours;
    cl_kernel bare;
    fac_span memory;
    int kernels;
    fac_program *program;
    fac_tensor *x, *y;
} chain;

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(fac_status status, const fac_error *err) {
    if (!status) return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void bare(chain *c) {
    const size_t items = 64, group = 64;
    const cl_mem memory = fac_cl_buffer(c->memory);
    const cl_ulong n = 64;
    for (int i = 0; i < c->kernels; i++) {
        c->o->cl.SetKernelArg(c->bare, 0, sizeof memory, &memory);
        c->o->cl.SetKernelArg(c->bare, 1, sizeof n, &n);
        c->o->cl.EnqueueNDRangeKernel(c->o->queue, c->bare, 1, NULL, &items, &group, 0, NULL, NULL);
    }
}

static void ours(chain *c) {
    const fac_cl_range range = { 1, { 64 }, { 64 } };
    const cl_ulong n = 64;
    fac_error err = { 0 };
    for (int i = 0; i < c->kernels; i++) {
        const fac_cl_arg args[] = { fac_cl_arg_span(c->memory), fac_cl_arg_value(&n, sizeof n) };
        check(fac_cl_launch(c->o, &c->ours, &range, 2, args, &err), &err);
    }
}

static void program(chain *c) {
    fac_error err = { 0 };
    check(fac_program_run(c->program, &c->x, &c->y, &err), &err);
}

/* Enqueueing alone, as time of this thread's processor, and until all is done. */
static void timed(void (*run)(chain *), chain *c, double *submit, double *all) {
    const double start = seconds(CLOCK_MONOTONIC), own = seconds(CLOCK_THREAD_CPUTIME_ID);
    run(c);
    *submit = seconds(CLOCK_THREAD_CPUTIME_ID) - own;
    c->o->cl.Finish(c->o->queue);
    *all = seconds(CLOCK_MONOTONIC) - start;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, by_size);
    return x[n / 2];
}

static void make_program(chain *c, fac_device *d) {
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new();
    fac_value *v = fac_input(g, "x", FAC_F32, fac_shape(64));
    for (int i = 0; i < c->kernels; i++) v = fac_relu(v);
    fac_output(g, "y", v);
    check(fac_program_new(g, d, &(fac_program_opts){ .no_fuse = true }, &c->program, &err), &err);
    fac_graph_free(g);
    check(fac_tensor_new(d, FAC_F32, fac_shape(64), &c->x, &err), &err);
    check(fac_tensor_new(d, FAC_F32, fac_shape(64), &c->y, &err), &err);
}

int main(int argc, char **argv) {
    static double submit[4][MOST], all[4][MOST];
    static const char *const names[] = { "the driver alone", "fac_cl_launch, all events",
                                         "fac_cl_launch", "a program" };
    const char *name = argc > 1 ? argv[1] : "opencl";
    int runs = argc > 3 ? atoi(argv[3]) : 31;
    chain c = { .kernels = argc > 2 ? atoi(argv[2]) : 1000 };
    fac_device *d = NULL;
    fac_error err = { 0 };
    if (runs > MOST) runs = MOST;
    check(fac_device_open(name, NULL, &d, &err), &err);
    c.o = fac_opencl_of(d);
    check(fac_cl_kernel_new(c.o, text, "", "tiny", &c.ours, &err), &err);
    cl_kernel made;
    cl_int code;
    check(fac_cl_kernel_get(c.o, &c.ours, &made, &err), &err);
    c.bare = c.o->cl.CreateKernel(c.ours.build->program, "tiny", &code);
    check(d->backend->alloc(d, 4096, &c.memory.memory, &err), &err);
    make_program(&c, d);
    for (int i = -3; i < runs; i++) {
        const int k = i < 0 ? 0 : i;
        timed(bare, &c, &submit[0][k], &all[0][k]);
        c.o->traced = true;
        timed(ours, &c, &submit[1][k], &all[1][k]);
        c.o->traced = false;
        timed(ours, &c, &submit[2][k], &all[2][k]);
        timed(program, &c, &submit[3][k], &all[3][k]);
        check(fac_device_sync(d, &err), &err);
    }
    printf("%s: %s; %d kernels, median of %d\n", fac_device_name(d), fac_device_about(d), c.kernels,
           runs);
    const double base[] = { median(submit[0], runs), median(all[0], runs) };
    for (int k = 0; k < 4; k++) {
        const double s = median(submit[k], runs), a = median(all[k], runs);
        printf("%-28s submit %7.3f us (%4.2f x)   done %7.3f us (%4.2f x)\n", names[k],
               1e6 * s / c.kernels, s / base[0], 1e6 * a / c.kernels, a / base[1]);
    }
    c.o->cl.ReleaseKernel(c.bare);
    fac_cl_kernel_free(c.o, &c.ours);
    d->backend->free(d, c.memory.memory, 4096);
    fac_program_free(c.program);
    fac_tensor_free(c.x);
    fac_tensor_free(c.y);
    fac_device_free(d);
    return 0;
}
