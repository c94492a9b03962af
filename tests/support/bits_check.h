/* Convolutions of few bits on whole numbers, whose sums are exact in any order: random problems,
    and what a solver of
 * a device gives. */
#ifndef FACULA_TESTS_BITS_CHECK_H
#define FACULA_TESTS_BITS_CHECK_H
#include "problem_check.h"
#include "backends/cpu/device/cpu.h"
#include "facula/facula.h"

static uint64_t seed;
/* Every bit is set, and numbers are the largest: sums as large as they can be. */
static bool full;

/* Whether the CPU counts bits by tables, too. */
static inline bool has_tables(const char *isa) {
    fac_device *d;
    if (fac_device_open("cpu", &(fac_device_opts){ .isa = isa }, &d, NULL)) return false;
    const bool has = fac_cpu_of(d)->bit_tables;
    fac_device_free(d);
    return has;
}

static inline int below(uint64_t *s, int n) {
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (int)((*s >> 33) % (uint64_t)n);
}

/* Whole numbers everywhere. */
static inline void fill(fac_tensor *t, uint64_t *s, int lo, int hi) {
    const fac_type type = fac_tensor_type(t);
    const size_t n = (size_t)fac_dims_count(&type.dims);
    float *x = malloc((n + 1) * sizeof *x);
    uint8_t *bits = malloc(n + 1);
    assert_true(x && bits);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(full ? hi : lo + below(s, hi - lo + 1));
        bits[i] = (uint8_t)(full ? 255 : below(s, 256));
    }
    const void *from = x;
    size_t size = sizeof *x;
    if (type.dtype == FAC_U8) {
        from = bits;
        size = 1;
    }
    assert_int_equal(fac_tensor_write(t, from, n * size, NULL), FAC_OK);
    free(x);
    free(bits);
}

static inline float *results(const char *problem, const char *device, const char *isa,
                             const char *solver, size_t *n) {
    fac_graph *g;
    fac_program *p;
    fac_device *d;
    fac_error err = { 0 };
    fac_tensor *x, *y = NULL;
    uint64_t s = seed;
    if (fac_device_open(device, &(fac_device_opts){ .isa = isa }, &d, &err))
        fail_msg("%s", err.text);
    if (fac_problem_graph(problem, true, &g, &err)) fail_msg("%s: %s", problem, err.text);
    const fac_type t = fac_value_type(fac_graph_input(g, 0));
    assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &x, NULL), FAC_OK);
    fill(x, &s, -3, 9);
    for (int k = 0; k < fac_graph_params(g); k++)
        fill(fac_value_tensor(fac_graph_param(g, k)), &s, -5, 5);
    const fac_program_opts o = { .solver = solver, .no_fuse = !strcmp(solver, "ref") };
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, &x, &y, &err))
        fail_msg("%s: %s", problem, err.text);
    const fac_dims dims = fac_tensor_type(y).dims;
    *n = (size_t)fac_dims_count(&dims);
    float *to = malloc((*n + 1) * sizeof *to);
    assert_int_equal(fac_tensor_read(y, to, *n * sizeof *to, NULL), FAC_OK);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
    return to;
}

/* Levels that are whole numbers: their sums are exact in f32, in any order. */
static const char *const x_bases[] = { "-",         "f32{1}",       "f32{1, 2}",
                                       "f32{2, 1}", "f32{1, 2, 4}", "f32{8, 1, 4, 2}",
                                       "f32{3, -1}" };

/* Random sizes; the smaller half of them has kernels that hang over. */
static const char *const optional[] = { "-", "f32[KK]" };
static inline void random_problem(uint64_t *s, char *to, size_t size) {
    const int lanes = 16, groups = below(s, 4) ? 1 : 2;
    const int C = groups > 1 ? lanes * (1 + below(s, 3)) : 1 + below(s, 70);
    const int words = below(s, 3) ? 0 : 32 * (1 + below(s, 3));
    int K = groups > 1 ? lanes * (1 + below(s, 2)) : 1 + below(s, 50);
    if (words) K = words;
    const int R = 1 + below(s, 3), S = 1 + below(s, 4), M = 1 + below(s, 4);
    const int H = R * 2 + below(s, 12), W = S * 2 + below(s, 20);
    const int stride = 1 + below(s, 2), dilation = 1 + below(s, 2);
    const int all = groups * K, bytes = (C * R * S + 7) / 8;
    const bool b = below(s, 2), scale = below(s, 2);
    snprintf(to, size,
             "conv2d_basis(f32[%d,%d,%d,%d], u8[%d,%d,%d], %s, %s, f32[%d,%d], %s) stride=%d,%d "
             "dilation=%d,%d "
             "pad=%d,%d,%d,%d groups=%d dims=%d,%d,%d,%d%s",
             1 + below(s, 3), groups * C, H, W, M, all, bytes, optional[b], x_bases[below(s, 7)], M,
             all, optional[scale], stride, 1 + below(s, 2), dilation, 1 + below(s, 2),
             below(s, R + 1), below(s, S + 1), below(s, 3), below(s, 2), groups, all, C, R, S,
             below(s, 2) ? " relu" : "");
    char k[16], *at;
    snprintf(k, sizeof k, "%d", all);
    while ((at = strstr(to, "KK"))) { /* as many digits as there are */
        memmove(at + strlen(k), at + 2, strlen(at + 2) + 1);
        memcpy(at, k, strlen(k));
    }
}

#endif
