/* Matrix products for the tests of NVIDIA's matrix units: problems, bounds, one solver on one of
 * them. */
#ifndef NV_MATMUL_CHECK_H
#define NV_MATMUL_CHECK_H
#include "opencl_solver_check.h"

static inline int below(int n) { return (int)(fac_random_bits(seed, ++stream, 0) % (uint64_t)n); }

/* Errors against exact sums, of the largest result. */
static inline double bound(const char *text, fac_precision p) {
    if (strstr(text, "bf16")) return 1.2e-2;
    if (strstr(text, "(f16")) return 2e-3;
    if (p == FAC_PRECISION_HIGH) return 2e-3;
    return p == FAC_PRECISION_MEDIUM ? 1.2e-2 : 3e-6;
}

/* A variant of the solver, 0: its own choice; false: it makes no offer. */
static inline bool pose_to(const fac_solver *solver, const char *text, fac_precision p, int number,
                           bool gaps) {
    fac_graph *g = NULL;
    const fac_case c = { text, -1, 1, bound(text, p) };
    if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s: %s", text, err.text);
    precision = p;
    variant = number;
    of_largest = true;
    const bool took = solve(solver, g->last, &c, gaps);
    if (getenv("FACULA_VERBOSE"))
        print_message("%s: precision %d, variant %d: %s %.1e\n", text, p, number,
                      took ? "error" : "refused", worst);
    variant = 0;
    fac_graph_free(g);
    return took;
}

static const fac_precision levels[] = { FAC_PRECISION_HIGHEST, FAC_PRECISION_HIGH,
                                        FAC_PRECISION_MEDIUM };
static const char *const products[] = {
    "matmul(f32[300,136], f32[136,520])",
    "linear(f32[265,100], f32[388,100], f32[388]) {relu}",
    "linear(f32[13,1160], f32[264,1160], f32[264])",
    "matmul(f32[60,77], f32[77,132])",
    "matmul(f32[131,33], f32[33,77])",
    "gemm(f32[200,136], f32[264,200], f32[264]) trans_a trans_b",
    "matmul(f32[50,200], f32[200,264])",
    "linear(f32[70,2304], f32[136,2304], f32[136], f32[70,136]) {add(_, x1) relu}",
    "matmul(bf16[300,136], bf16[136,520])",
    "linear(bf16[265,104], bf16[392,104], bf16[392]) {relu}",
    "linear(f16[16,1160], f16[264,1160], f16[264])",
    "gemm(f16[200,136], f16[264,200], f16[264]) trans_a trans_b",
    "matmul(f16[61,77], f16[77,131])"
};
enum { PRODUCTS = sizeof products / sizeof *products, FLOATS = 8 };

static inline int size(void) {
    static const int sizes[] = { 1,  3,  4,   8,   15,  16,  17,  31,  33,  63,
                                 64, 65, 100, 127, 128, 129, 136, 200, 257, 392 };
    return sizes[below(sizeof sizes / sizeof *sizes)];
}

/* Batches that broadcast, all transposes, bodies with further operands; now and then terms up to
 * where sums are carried on. */
static inline void write_product(char *text, size_t room) {
    static const char *const types[] = { "f32", "f32", "f32", "bf16", "f16" };
    const int M = size(), N = size(), K = below(8) ? size() : 1000 + 4 * below(300),
              B = 1 + below(3);
    const bool transposed = below(2);
    const char *t = types[below(5)];
    char a[48], b[48];
    snprintf(a, sizeof a, "%s[%d,%d]", t, M, K), snprintf(b, sizeof b, "%s[%d,%d]", t, K, N);
    switch (below(6)) {
    case 0:
        snprintf(text, room, "matmul(%s, %s)", a, b);
        break;
    case 1:
        snprintf(text, room, "matmul(%s[%d,3,%d,%d], %s[3,%d,%d])", t, B, M, K, t, K, N);
        break;
    case 2:
        snprintf(text, room, "matmul(%s[%d,%d,%d], %s)", t, B, M, K, b);
        break;
    case 3:
        snprintf(text, room, "matmul(%s[%d,%d,%d], %s[%d,%d,%d])", t, B, M, K, t, B, K, N);
        break;
    case 4:
        snprintf(text, room, "linear(%s, %s[%d,%d], %s[%d], %s[%d,%d]) {add(_, x1) relu}", a, t, N,
                 K, t, N, t, M, N);
        break;
    default:
        if (transposed)
            snprintf(b, sizeof b, "%s[%d,%d]", t, N, K);
        else
            snprintf(b, sizeof b, "%s[%d,%d]", t, K, N);
        snprintf(text, room, "gemm(%s[%d,%d], %s, %s[%d]) trans_a%s alpha=0.5 beta=2", t, K, M, b,
                 t, N, transposed ? " trans_b" : "");
    }
}

/* Random products, with gaps. */
static inline void pose_random(const fac_solver *solver, int count) {
    for (int k = 0; k < count; k++) {
        char text[320];
        write_product(text, sizeof text);
        assert_true(pose_to(solver, text, levels[below(3)], 0, below(2)));
    }
}

/* Long sums keep f32's accuracy. */
static inline void pose_long(const fac_solver *solver) {
    assert_true(pose_to(solver, "linear(f32[64,9216], f32[136,9216], f32[136])",
                        FAC_PRECISION_DEFAULT, 0, false));
    assert_true(
        pose_to(solver, "matmul(f32[136,8192], f32[8192,128])", FAC_PRECISION_HIGHEST, 0, false));
}
#endif
