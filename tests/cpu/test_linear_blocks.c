/* Linear layers whose weights stay in blocks or halves: every type on every instruction set against
 * sums in f64 of what the blocks stand for, with x in f32 (exact but for the order of the sum) and
 * rounded to 8 bits (within that rounding). */
#include "blocks_check.h"

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
            const int64_t block = fac_dtype_get(types[k])->block_elements;
            const unsigned blocks = block > 32 ? 5 : 40;
            const int64_t K =
                block > 1 ? block * (1 + (int64_t)draw(blocks)) : 1 + (int64_t)draw(90);
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

static bool rounds(fac_dtype t) {
    return t == FAC_Q4_0 || t == FAC_Q4_1 || t == FAC_Q8_0 || t == FAC_Q4_K || t == FAC_Q6_K;
}

/* A row of x gives the same bits alone and among others: an answer does not depend on what else is
 * written in its batch. */
static void bits_of_one(const char *isa) {
    fac_device *d;
    const fac_device_opts o = { .threads = 2, .isa = isa };
    if (fac_device_open("cpu", &o, &d, &err)) return;
    for (int k = 0; k < TYPES; k++) {
        const int64_t K = 256 * (1 + (int64_t)draw(3)), N = 1 + (int64_t)draw(100);
        const int64_t M = 2 + (int64_t)draw(15), at = (int64_t)draw((uint64_t)M);
        fac_tensor *x = floats(fac_shape(M, K)), *w = weights(types[k], N, K), *one;
        OK(fac_tensor_view(x, fac_shape(1, K), NULL, at * K, &one, &err));
        fac_tensor *all = run(d, x, w, NULL, FAC_PRECISION_DEFAULT);
        fac_tensor *alone = run(d, one, w, NULL, FAC_PRECISION_DEFAULT);
        const float *y = (const float *)fac_tensor_data(all) + at * N;
        const bool same = !memcmp(y, fac_tensor_data(alone), (size_t)N * sizeof *y);
        if (rounds(types[k]) && !same)
            fail_msg("%s of %s: row %lld of %lld x %lld x %lld has other bits alone",
                     fac_dtype_get(types[k])->name, isa, (long long)at, (long long)M, (long long)K,
                     (long long)N);
        fac_tensor_free(x);
        fac_tensor_free(w);
        fac_tensor_free(one);
        fac_tensor_free(all);
        fac_tensor_free(alone);
    }
    fac_device_free(d);
}

static void batches_change_no_bits(void **state) {
    (void)state;
    bits_of_one("portable");
    bits_of_one("avx2");
    bits_of_one("avx512");
}

/* What is no number in a row of x is none in its results, an infinite one makes none that is
 * finite, and neither reaches another row. */
static bool as_it_should(float x, float y) {
    if (isnan(x)) return isnan(y);
    return !isfinite(x) == !isfinite(y);
}

static void strange_ones(const char *isa) {
    fac_device *d;
    const fac_device_opts o = { .threads = 2, .isa = isa };
    const float strange[] = { NAN, INFINITY, -INFINITY, 1e-42f };
    if (fac_device_open("cpu", &o, &d, &err)) return;
    for (int k = 0; k < 4 * TYPES; k++) {
        const float odd = strange[k % 4];
        const int64_t K = 256 * (1 + (int64_t)draw(3)), N = 1 + (int64_t)draw(40);
        const int64_t M = 1 + (int64_t)draw(12), at = (int64_t)draw((uint64_t)M);
        if (!rounds(types[k / 4])) continue;
        fac_tensor *x = floats(fac_shape(M, K)), *w = weights(types[k / 4], N, K);
        float *row = (float *)fac_tensor_data(x) + at * K;
        if (isfinite(odd)) memset(row, 0, (size_t)K * sizeof *row);
        row[draw((uint64_t)K)] = odd;
        fac_tensor *y = run(d, x, w, NULL, FAC_PRECISION_DEFAULT);
        const float *got = fac_tensor_data(y);
        for (int64_t i = 0; i < M * N; i++)
            if (!as_it_should(i / N == at ? odd : 0, got[i]))
                fail_msg("%s of %s: %g in row %lld of %lld x %lld x %lld: y[%lld] is %g",
                         fac_dtype_get(types[k / 4])->name, isa, (double)odd, (long long)at,
                         (long long)M, (long long)K, (long long)N, (long long)i, (double)got[i]);
        fac_tensor_free(x);
        fac_tensor_free(w);
        fac_tensor_free(y);
    }
    fac_device_free(d);
}

static void strange_numbers(void **state) {
    (void)state;
    strange_ones("portable");
    strange_ones("avx2");
    strange_ones("avx512");
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(portable),
                                        cmocka_unit_test(avx2),
                                        cmocka_unit_test(avx512),
                                        cmocka_unit_test(batches_change_no_bits),
                                        cmocka_unit_test(strange_numbers),
                                        cmocka_unit_test(gathering),
                                        cmocka_unit_test(other_ops_refuse_blocks) };
    return cmocka_run_group_tests(tests, start, NULL);
}
