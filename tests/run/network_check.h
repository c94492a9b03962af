/* A small network and random tensors for it. */
#ifndef FACULA_NETWORK_CHECK_H
#define FACULA_NETWORK_CHECK_H
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/facula.h"
#include "facula/op.h"
#include "op_list.h"
#include "program_check.h"

static fac_tensor *random_tensor(fac_dims d, uint64_t stream) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, err));
    size_t n = (size_t)fac_dims_count(&d);
    float *x = malloc((n + 1) * sizeof *x);
    fac_random_fill(7, stream, -1, 1, n, x);
    OK(fac_tensor_write(t, x, n * sizeof *x, err));
    free(x);
    return t;
}

static float at(const fac_tensor *t, size_t i) { return ((const float *)fac_tensor_data(t))[i]; }

/* A small network with everything that planning does: convolution, batch norm, residual, concat,
 * views, a product. */
static fac_graph *network(fac_tensor **weight) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(
        g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, fac_symbol(g, "H"), fac_symbol(g, "W")));
    fac_nn_seed(g, 3);
    fac_value *a = fac_relu(fac_nn_batch_norm(
        fac_nn_conv2d(x, "c1", 16, 3, &(fac_nn_conv2d_opts){ .pad = 1 }), "bn", 0));
    fac_value *b = fac_nn_conv2d(a, "c2", 16, 3, &(fac_nn_conv2d_opts){ .pad = 1 });
    fac_value *c = fac_relu(fac_add(a, b));
    fac_value *parts[] = { c, fac_sigmoid(a) };
    fac_value *d = fac_concat(parts, 2, 1);
    fac_value *m = fac_mean(d, fac_shape(2, 3), false);
    fac_output(g, "y", fac_nn_linear(m, "fc", 5));
    fac_output(g, "c", c);
    OK(fac_graph_check(g, err));
    if (weight) *weight = fac_value_tensor(fac_graph_find(g, "c1.weight"));
    return g;
}
#endif
