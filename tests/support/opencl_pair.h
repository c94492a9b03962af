/* For tests of programs: the OpenCL device and the cpu beside it, and random tensors. */
#ifndef FACULA_TESTS_OPENCL_PAIR_H
#define FACULA_TESTS_OPENCL_PAIR_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/facula.h"
#include "opencl_check.h"
#include "tensor/tensor_internal.h"

static fac_error err;
static fac_device *opencl, *cpu;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)
#define NEEDS_DEVICE()                                                                             \
    do {                                                                                           \
        if (!opencl) skip();                                                                       \
    } while (0)

static inline int open_devices(void **state) {
    (void)state;
    if (opencl_open(&opencl, &err)) return -1;
    return fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &cpu, &err);
}

static inline int close_devices(void **state) {
    (void)state;
    fac_device_free(opencl);
    fac_device_free(cpu);
    return 0;
}

/* device NULL: of the host. */
static inline fac_tensor *random_tensor(fac_device *device, fac_dims dims, uint64_t stream) {
    size_t n = (size_t)fac_dims_count(&dims);
    float *x = malloc((n + 1) * sizeof *x);
    fac_tensor *t = NULL;
    fac_random_fill(7, stream, -1, 1, n, x);
    OK(fac_tensor_new(device, FAC_F32, dims, &t, &err));
    OK(fac_tensor_write(t, x, n * sizeof *x, &err));
    free(x);
    return t;
}

/* Whether only a device has the newest contents. */
static inline bool away(const fac_tensor *t) { return fac_tensor_storage(t)->away; }

/* y = x + x of n elements. */
static inline fac_program *doubling(fac_device *d, int64_t n) {
    fac_graph *g = fac_graph_new();
    fac_program *p = NULL;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(n));
    fac_output(g, "y", fac_add(x, x));
    OK(fac_program_new(g, d, NULL, &p, &err));
    fac_graph_free(g);
    return p;
}
#endif
