/* Graphs of layers, and allocations that fail. */
#ifndef FACULA_TESTS_NN_INIT_CHECK_H
#define FACULA_TESTS_NN_INIT_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "facula/nn.h"
#include "facula/train.h"
#include "graph/graph_internal.h"

static long allowed = -1; /* allocations until one fails; below 0: none does */
bool fac_test_allows(size_t bytes);
bool fac_test_allows(size_t bytes) {
    (void)bytes;
    return allowed < 0 || allowed-- > 0;
}

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static inline fac_graph *seeded(uint64_t seed) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, seed);
    return g;
}

static inline fac_value *x_of(fac_graph *g, fac_dims dims) {
    return fac_input(g, "x", FAC_F32, dims);
}

static inline const float *values(fac_graph *g, const char *name, int64_t *n) {
    const fac_value *v = fac_graph_find(g, name);
    if (!v) fail_msg("there is no %s", name);
    *n = fac_dims_count(&v->type.dims);
    return fac_tensor_data(fac_value_tensor(v));
}

static inline void check(fac_graph *g) {
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
}

#endif
