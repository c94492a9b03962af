/* A device and fresh random tensors of any element type, for tests of many ops. */
#ifndef FACULA_TESTS_RANDOM_CHECK_H
#define FACULA_TESTS_RANDOM_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "base/rng.h"
#include "facula/device.h"
#include "facula/op.h"

enum { OPERANDS = 16 };

static fac_device *device;
static fac_error err;
static uint64_t seed, stream;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static inline int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}

/* Ports of an op's table. */
static inline int ports(const fac_port *p) {
    int n = 0;
    while (p && p[n].name) n++;
    return n;
}

static inline char kind(fac_dtype d) { return fac_dtype_get(d)->kind; }

/* Integers include both ends of lo..hi. */
static inline fac_tensor *random_tensor(fac_type type, double lo, double hi) {
    int64_t n = fac_dims_count(&type.dims);
    double *x = calloc((size_t)n + 1, sizeof *x);
    stream++;
    for (int64_t k = 0; k < n; k++) {
        double u = fac_random_uniform(seed, stream, (uint64_t)k);
        x[k] = kind(type.dtype) == 'f' ? lo + (hi - lo) * u : floor(lo + (hi - lo + 1) * u);
        if (kind(type.dtype) == 'b') x[k] = u < 0.5;
        if (kind(type.dtype) == 'u') x[k] = fabs(x[k]);
    }
    fac_tensor *wide = NULL, *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F64, type.dims, &wide, &err));
    OK(fac_tensor_write(wide, x, (size_t)n * sizeof *x, &err));
    OK(fac_tensor_convert(wide, type.dtype, &t, &err));
    fac_tensor_free(wide);
    free(x);
    return t;
}
#endif
