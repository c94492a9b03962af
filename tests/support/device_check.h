/* A device for all tests of a program, and the seed of their random numbers: FACULA_SEED repeats
 * what was printed. */
#ifndef FACULA_TESTS_DEVICE_CHECK_H
#define FACULA_TESTS_DEVICE_CHECK_H
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
#include "facula/facula.h"

static fac_error err;
static fac_device *device;
static uint64_t seed, stream;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static inline int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", NULL, &device, &err);
}

static inline int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}

/* Weights of both signs that keep the size of what goes through them, so that nothing saturates;
 * biases to 0.5; variances near 1. */
static inline void lively_params(fac_graph *g) {
    for (int i = 0; i < fac_graph_params(g); i++) {
        fac_tensor *t = fac_value_tensor(fac_graph_param(g, i));
        const fac_type type = fac_tensor_type(t);
        const int64_t n = fac_dims_count(&type.dims),
                      each = type.dims.n > 1 ? n / type.dims.d[0] : 12;
        const bool variance = strstr(fac_value_name(fac_graph_param(g, i)), "var") != NULL;
        float *w = calloc((size_t)n, sizeof *w), room = 1;
        while (room * room * (float)each > 3) room *= 0.9f;
        stream++;
        for (int64_t k = 0; k < n; k++) {
            const float u = (float)fac_random_uniform(seed, stream, (uint64_t)k);
            w[k] = variance ? 0.5f + u : room * (2 * u - 1);
        }
        OK(fac_tensor_write(t, w, (size_t)n * sizeof *w, &err));
        free(w);
    }
}
#endif
