/* What tests of weights in blocks share: random ones, a layer of them, and how far off it is. */
#ifndef FACULA_TESTS_BLOCKS_CHECK_H
#define FACULA_TESTS_BLOCKS_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "base/rng.h"
#include "facula/device.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "fresh_seed.h"
#include "tensor/blocks.h"
#include "tensor/tensor_internal.h"

static fac_error err;
static uint64_t seed, drawn;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)
static inline uint64_t draw(uint64_t below) { return fac_random_bits(seed, 0, drawn++) % below; }

static const fac_dtype types[] = { FAC_Q4_0,   FAC_Q4_1,   FAC_Q5_0, FAC_Q5_1, FAC_Q8_0,
                                   FAC_IQ4_NL, FAC_Q2_K,   FAC_Q3_K, FAC_Q4_K, FAC_Q5_K,
                                   FAC_Q6_K,   FAC_IQ4_XS, FAC_F16,  FAC_BF16 };
enum { TYPES = sizeof types / sizeof *types };

static inline fac_tensor *floats(fac_dims d) {
    fac_tensor *t;
    const int64_t n = fac_dims_count(&d);
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, &err));
    float *x = fac_tensor_storage(t)->host;
    fac_random_fill(seed, drawn++, -1, 1, (size_t)n, x);
    return t;
}

/* Random bytes are blocks; their scales (see test_gguf.c) are made small and finite. */
static inline fac_tensor *weights(fac_dtype type, int64_t rows, int64_t depth) {
    static const int halves[FAC_DTYPES][2] = {
        [FAC_Q2_K] = { 80, 82 }, [FAC_Q3_K] = { 108, 108 }, [FAC_Q6_K] = { 208, 208 },
        [FAC_Q4_1] = { 0, 2 },   [FAC_Q5_1] = { 0, 2 },     [FAC_Q4_K] = { 0, 2 },
        [FAC_Q5_K] = { 0, 2 }
    };
    fac_tensor *t;
    const fac_dtype_info *i = fac_dtype_get(type);
    if (i->kind == 'f') {
        fac_tensor *x = floats(fac_shape(rows, depth));
        OK(fac_tensor_convert(x, type, &t, &err));
        fac_tensor_free(x);
        return t;
    }
    OK(fac_tensor_new(NULL, type, fac_shape(rows, depth), &t, &err));
    unsigned char *p = fac_tensor_storage(t)->host;
    const int64_t blocks = rows * depth / i->block_elements;
    for (int64_t k = 0; k < blocks * i->block_bytes; k++) p[k] = (unsigned char)draw(256);
    for (int64_t b = 0; b < blocks; b++)
        for (int k = 0; k < 2; k++) {
            unsigned char *high = p + b * i->block_bytes + halves[type][k] + 1;
            *high = (unsigned char)((*high & 0x83) | 0x20);
        }
    return t;
}

static inline fac_tensor *run(fac_device *d, fac_tensor *x, fac_tensor *w, fac_tensor *b,
                              fac_precision precision) {
    fac_graph *g = fac_graph_new();
    fac_program *p;
    fac_tensor *y = NULL;
    const fac_type type = fac_tensor_type(x);
    fac_value *in = fac_input(g, "x", type.dtype, type.dims),
              *bias = b ? fac_param(g, "b", b) : NULL;
    fac_output(g, "y", fac_linear(in, fac_state(g, "w", w), bias));
    const fac_program_opts o = { .precision = precision, .solver = "linear/blocks" };
    OK(fac_program_new(g, d, &o, &p, &err));
    OK(fac_program_run(p, &x, &y, &err));
    fac_program_free(p);
    fac_graph_free(g);
    return y;
}

/* The largest difference, beyond the rounding of the bias, in units of the sum of magnitudes
 * (bound) of the products: x may be near 0 where the bias is not. */
static inline double worst(const fac_tensor *x, const fac_tensor *w, const fac_tensor *b,
                           const fac_tensor *y) {
    const fac_dims xd = fac_tensor_type(x).dims, wd = fac_tensor_type(w).dims;
    const int64_t K = wd.d[1], N = wd.d[0], M = fac_dims_count(&xd) / K;
    fac_tensor *plain;
    OK(fac_tensor_convert(w, FAC_F32, &plain, &err));
    const float *a = fac_tensor_data(x), *c = fac_tensor_data(plain),
                *bias = b ? fac_tensor_data(b) : NULL, *got = fac_tensor_data(y);
    double most = 0;
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            const double first = bias ? (double)bias[n] : 0;
            double sum = first, all = 0, largest_x = 0;
            for (int64_t k = 0; k < K; k++) {
                const double term = (double)a[m * K + k] * (double)c[n * K + k];
                sum += term;
                all += fabs((double)c[n * K + k]);
                largest_x = fmax(largest_x, fabs((double)a[m * K + k]));
            }
            const double beside = fabs(sum - (double)got[m * N + n]) - 0x1p-23 * fabs(first),
                         off = beside > 0 ? beside / (all * largest_x + 1e-30) : 0;
            if (isnan(beside)) return INFINITY;
            if (off > most) most = off;
        }
    fac_tensor_free(plain);
    return most;
}
#endif
