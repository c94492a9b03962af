/* lq:wWaA without training: small networks, and what the tests of it share. */
#ifndef FACULA_TESTS_LQ_NET_H
#define FACULA_TESTS_LQ_NET_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "base/rng.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "fresh_seed.h"

enum { CHANNELS = 16, SIDE = 9, IMAGES = 3 };

static fac_device *dev;
static fac_error err;
static uint64_t seed, at;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s", err.text);                                                        \
    } while (0)

static inline int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", NULL, &dev, NULL);
}
static inline int close_device(void **state) {
    (void)state;
    fac_device_free(dev);
    return 0;
}

static inline double next_unit(void) { return fac_random_uniform(seed, 0, at++); }

/* levels 0: any numbers; 2: +-s for each filter; 4: +-1 and +-3 times it. */
static inline fac_tensor *weights(fac_dims d, int levels) {
    fac_tensor *t;
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, &err));
    float *to = (float *)(uintptr_t)fac_tensor_data(t);
    const int64_t n = fac_dims_count(&d), each = n / d.d[0];
    double s = 1;
    for (int64_t k = 0; k < n; k++) {
        const double x = 2 * next_unit() - 1;
        if (k % each == 0) s = 0.02 + 0.1 * next_unit();
        const double odd = levels == 2 || fabs(x) < 0.5 ? 1 : 3;
        to[k] = (float)(levels ? copysign(odd, x) * s : x * 0.2);
    }
    return t;
}

static inline fac_value *conv(fac_graph *g, fac_value *x, const char *name, int64_t from,
                              int levels) {
    char text[64];
    const fac_conv2d_opts o = { .pad = { 1, 1, 1, 1 } };
    snprintf(text, sizeof text, "%s.weight", name);
    fac_tensor *w = weights(fac_shape(CHANNELS, from, 3, 3), levels);
    fac_graph_push(g, name);
    fac_value *y = fac_conv2d(x, fac_param(g, text, w), NULL, &o);
    fac_graph_pop(g);
    fac_tensor_free(w);
    return y;
}

/* Four layers; relu: the second reads what a relu gives. */
static inline fac_graph *network(int levels, bool relu) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(IMAGES, 3, SIDE, SIDE));
    fac_value *y = conv(g, x, "first", 3, 0);
    y = conv(g, relu ? fac_relu(y) : y, "second", CHANNELS, levels);
    y = conv(g, fac_relu(y), "third", CHANNELS, levels);
    y = conv(g, fac_relu(y), "last", CHANNELS, 0);
    fac_output(g, "y", y);
    OK(fac_graph_check(g, &err));
    return g;
}

static inline fac_tensor *sample(void) { return weights(fac_shape(IMAGES, 3, SIDE, SIDE), 0); }

static inline fac_graph *quantized(const fac_graph *g, const char *scheme, fac_calibrator **c) {
    const fac_integers how = { .scheme = scheme };
    fac_graph *out;
    OK(fac_calibrator_new(g, dev, &how, c, &err));
    for (int k = 0; k < 2; k++) {
        fac_tensor *x = sample();
        OK(fac_calibrator_add(*c, &x, &err));
        fac_tensor_free(x);
    }
    OK(fac_calibrator_finish(*c, &out, &err));
    return out;
}

static inline int quantizers(const fac_graph *g, bool positive) {
    int count = 0;
    for (const fac_node *n = g->first; n; n = n->next)
        if (FAC_IS(n, quantize_basis))
            count += ((const fac_basis_opts *)n->attrs)->positive == positive;
    return count;
}

#endif
