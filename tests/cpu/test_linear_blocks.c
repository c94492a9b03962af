/* Linear layers whose weights stay in blocks or halves: every type on every instruction set against
 * sums in f64 of what the blocks stand for, with x in f32 (exact but for the order of the sum) and
 * rounded to 8 bits (within that rounding). */
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
static uint64_t draw(uint64_t below) { return fac_random_bits(seed, 0, drawn++) % below; }

static const fac_dtype types[] = { FAC_Q4_0,   FAC_Q4_1,   FAC_Q5_0, FAC_Q5_1, FAC_Q8_0,
                                   FAC_IQ4_NL, FAC_Q2_K,   FAC_Q3_K, FAC_Q4_K, FAC_Q5_K,
                                   FAC_Q6_K,   FAC_IQ4_XS, FAC_F16,  FAC_BF16 };
enum { TYPES = sizeof types / sizeof *types };

static fac_tensor *floats(fac_dims d) {
    fac_tensor *t;
    const int64_t n = fac_dims_count(&d);
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, &err));
    float *x = fac_tensor_storage(t)->host;
    fac_random_fill(seed, drawn++, -1, 1, (size_t)n, x);
    return t;
}

/* Random bytes are blocks; their scales (see test_gguf.c) are made small and finite. */
static fac_tensor *weights(fac_dtype type, int64_t rows, int64_t depth) {
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

static fac_tensor *run(fac_device *d, fac_tensor *x, fac_tensor *w, fac_tensor *b,
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
static double worst(const fac_tensor *x, const fac_tensor *w, const fac_tensor *b,
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

/* Whole numbers up to 127, which is in each block of 32: they are 8 bits already, and nothing is
 * rounded. */
static fac_tensor *wholes(int64_t M, int64_t K) {
    fac_tensor *t = floats(fac_shape(M, K));
    float *x = malloc((size_t)(M * K) * sizeof *x);
    for (int64_t k = 0; k < M * K; k++) x[k] = k % 32 ? (float)((int)draw(255) - 127) : 127;
    OK(fac_tensor_write(t, x, (size_t)(M * K) * sizeof *x, &err));
    free(x);
    return t;
}

static void usual_is_exact(fac_device *d, fac_tensor *w, fac_tensor *b, int64_t M, int64_t K) {
    fac_tensor *x = wholes(M, K);
    fac_tensor *y = run(d, x, w, b, FAC_PRECISION_DEFAULT);
    const double off = worst(x, w, b, y);
    if (!(off < 1e-6))
        fail_msg("%s: %lld x %lld: products of whole numbers are off by %g",
                 fac_dtype_get(fac_tensor_type(w).dtype)->name, (long long)M, (long long)K, off);
    fac_tensor_free(x);
    fac_tensor_free(y);
}

static void every_type(const char *isa) {
    fac_device *d;
    const fac_device_opts o = { .threads = 2, .isa = isa };
    if (fac_device_open("cpu", &o, &d, &err)) return; /* this machine has no such instructions */
    for (int k = 0; k < TYPES; k++)
        for (int round = 0; round < 4; round++) {
            const int64_t block = fac_dtype_get(types[k])->block_elements,
                          K = block > 1 ? block * (1 + (int64_t)draw(block > 32 ? 5 : 40))
                                        : 1 + (int64_t)draw(90);
            const int64_t M = round == 0   ? 1
                              : round == 1 ? 2 + (int64_t)draw(3)
                                           : 5 + (int64_t)draw(40),
                          N = 1 + (int64_t)draw(150);
            fac_tensor *x = floats(fac_shape(M, K)), *w = weights(types[k], N, K),
                       *b = draw(2) ? floats(fac_shape(N)) : NULL;
            fac_tensor *exact = run(d, x, w, b, FAC_PRECISION_HIGHEST),
                       *usual = run(d, x, w, b, FAC_PRECISION_DEFAULT);
            usual_is_exact(d, w, b, M, K);
            const double off = worst(x, w, b, exact), rounded = worst(x, w, b, usual);
            if (!(off < 1e-6))
                fail_msg("%s of %s: %lld x %lld x %lld, f32 is off by %g",
                         fac_dtype_get(types[k])->name, isa, (long long)M, (long long)K,
                         (long long)N, off);
            if (!(rounded < 0.5 / 127 + 1e-6)) /* each x is off by half a step at most */
                fail_msg("%s of %s: %lld x %lld x %lld, 8 bits are off by %g",
                         fac_dtype_get(types[k])->name, isa, (long long)M, (long long)K,
                         (long long)N, rounded);
            fac_tensor_free(x);
            fac_tensor_free(w);
            fac_tensor_free(b);
            fac_tensor_free(exact);
            fac_tensor_free(usual);
        }
    fac_device_free(d);
}

static void portable(void **state) {
    (void)state;
    every_type("portable");
}
static void avx2(void **state) {
    (void)state;
    every_type("avx2");
}
static void avx512(void **state) {
    (void)state;
    every_type("avx512");
}

/* Rows of a table in blocks, then as floats. */
static void gathering(void **state) {
    (void)state;
    for (int k = 0; k < TYPES; k++) {
        const int64_t block = fac_dtype_get(types[k])->block_elements;
        fac_tensor *w = weights(types[k], 7, 2 * block), *plain, *y, *all;
        const int64_t rows[] = { 6, 0, 3 };
        fac_graph *g = fac_graph_new();
        fac_tensor *at;
        OK(fac_tensor_new(NULL, FAC_I64, fac_shape(3), &at, &err));
        OK(fac_tensor_write(at, rows, sizeof rows, &err));
        fac_device *d;
        OK(fac_device_open("cpu", NULL, &d, &err));
        OK(fac_eval(fac_cast(fac_gather(fac_state(g, "w", w), fac_const(g, at), 0), FAC_F32), d, &y,
                    &err));
        OK(fac_tensor_convert(w, FAC_F32, &plain, &err));
        all = fac_tensor_retain(plain);
        for (int r = 0; r < 3; r++)
            assert_memory_equal((const float *)fac_tensor_data(y) + r * 2 * block,
                                (const float *)fac_tensor_data(all) + rows[r] * 2 * block,
                                (size_t)(2 * block) * sizeof(float));
        fac_tensor_free(all);
        fac_tensor_free(plain);
        fac_tensor_free(y);
        fac_tensor_free(at);
        fac_tensor_free(w);
        fac_graph_free(g);
        fac_device_free(d);
    }
}

static void other_ops_refuse_blocks(void **state) {
    (void)state;
    fac_tensor *w = weights(FAC_Q8_0, 2, 32);
    fac_graph *g = fac_graph_new();
    fac_relu(fac_state(g, "w", w));
    assert_int_equal(fac_graph_check(g, &err), FAC_E_DTYPE);
    assert_non_null(strstr(err.text, "q8_0"));
    fac_graph_free(g);
    g = fac_graph_new();
    fac_gather(fac_state(g, "w", w), fac_ints(g, fac_shape(1)), 1);
    assert_int_equal(fac_graph_check(g, &err), FAC_E_SHAPE);
    fac_graph_free(g);
    fac_tensor_free(w);
}

static int start(void **state) {
    (void)state;
    seed = fresh_seed();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(portable), cmocka_unit_test(avx2),
                                        cmocka_unit_test(avx512), cmocka_unit_test(gathering),
                                        cmocka_unit_test(other_ops_refuse_blocks) };
    return cmocka_run_group_tests(tests, start, NULL);
}
