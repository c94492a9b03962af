/* linear, matmul and gemm of the cpu against the reference: random sizes, transposes, batches, all
 * instruction sets. */
#include "cpu_check.h"

static fac_value *input(fac_graph *g, int i, fac_dims d) {
    char name[8];
    snprintf(name, sizeof name, "x%d", i);
    return fac_input(g, name, FAC_F32, d);
}

/* v with its n inputs (bias included) and a body: 0 none, 1 relu, 2 add + relu, 3 silu.  sizes: v
 * without minus signs. */
static void check(fac_device *d, const char *solver, fac_graph *g, fac_value *bare,
                  fac_value *sizes, int n, fac_value **in, int kind, uint64_t seed) {
    fac_error err = { 0 };
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    fac_graph *b = NULL;
    if (kind) {
        b = fac_graph_new();
        fac_value *v = fac_input(b, "y", FAC_F32, bare->type.dims);
        if (kind == 2) v = fac_add(fac_input(b, "r", FAC_F32, bare->type.dims), v);
        fac_output(b, "y", kind == 3 ? fac_silu(v) : fac_relu(v));
        in[n] = input(g, n, bare->type.dims);
    }
    fac_value *y =
        b ? fac_emit_body(g, bare->node->op, bare->node->attrs, n + (kind == 2), n, in, b, NULL)
          : bare;
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    assert_true(check_solver(d, solver, y->node, sizes->node, seed));
    fac_graph_free(g);
}

/* Sizes about every edge: one row, a tile, many tiles; one column, a vector, a panel; slabs of the
 * sum. */
static int64_t size(uint64_t seed, uint64_t i) {
    static const int64_t edges[] = { 1, 2, 3, 7, 14, 15, 16, 17, 31, 32, 33, 48, 65 };
    return check_pick(seed, i, 0, 1) ? edges[check_pick(seed, i + 50, 0, 12)]
                                     : check_pick(seed, i + 70, 1, 90);
}

static void linear(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 30; k++) {
        uint64_t s = seed + k;
        fac_graph *g = fac_graph_new();
        int64_t depth = k % 10 == 9 ? 1100 : size(s, 2), O = size(s, 1);
        fac_dims x = k % 3 ? fac_shape(size(s, 0), depth) : fac_shape(2, size(s, 0), depth);
        fac_value *in[4] = { input(g, 0, x), input(g, 1, fac_shape(O, depth)),
                             k % 2 ? input(g, 2, fac_shape(O)) : NULL };
        fac_value *y = fac_linear(in[0], in[1], in[2]);
        check(d, "linear/gemm", g, y, y, 3, in, (int)check_pick(s, 3, 0, 3), s);
    }
    for (uint64_t k = 0; k < 8; k++) {
        uint64_t s = seed + 100 + k;
        fac_graph *g = fac_graph_new();
        int64_t depth = k == 7 ? 1100 : size(s, 2);
        int64_t O = k == 6 ? 700 : size(s, 1);
        fac_value *in[4] = { input(g, 0, fac_shape(1, depth)), input(g, 1, fac_shape(O, depth)),
                             k % 2 ? input(g, 2, fac_shape(O)) : NULL };
        fac_value *y = fac_linear(in[0], in[1], in[2]);
        check(d, "linear/row", g, y, y, 3, in, (int)(k % 4), s);
    }
    /* several blocks of rows with several slabs */
    fac_graph *g = fac_graph_new();
    fac_value *in[4] = { input(g, 0, fac_shape(500, 530)), input(g, 1, fac_shape(70, 530)),
                         input(g, 2, fac_shape(70)) };
    fac_value *y = fac_linear(in[0], in[1], in[2]);
    check(d, "linear/gemm", g, y, y, 3, in, 2, seed);
    /* few rows, whose panels are parted */
    g = fac_graph_new();
    fac_value *few[4] = { input(g, 0, fac_shape(40, 530)), input(g, 1, fac_shape(777, 530)),
                          input(g, 2, fac_shape(777)) };
    y = fac_linear(few[0], few[1], few[2]);
    check(d, "linear/gemm", g, y, y, 3, few, 1, seed);
}

static void gemm(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 48; k++) {
        uint64_t s = seed + k;
        fac_graph *g = fac_graph_new();
        int64_t M = size(s, 0), N = size(s, 1), K = k % 10 == 9 ? 700 : size(s, 2);
        fac_gemm_opts o = { .trans_a = k & 1,
                            .trans_b = k >> 1 & 1,
                            .alpha = k & 4 ? 0.5 : 0,
                            .beta = k & 8 ? -1.5 : 0 };
        fac_value *in[4] = { input(g, 0, o.trans_a ? fac_shape(K, M) : fac_shape(M, K)),
                             input(g, 1, o.trans_b ? fac_shape(N, K) : fac_shape(K, N)) };
        int64_t form = check_pick(s, 3, 0, 6);
        const fac_dims forms[] = { { 0 },           fac_shape(N), fac_shape(1, N), fac_shape(M, 1),
                                   fac_shape(M, N), { 0 },        fac_shape(1) };
        if (form) in[2] = input(g, 2, forms[form]);
        int kind = (int)check_pick(s, 4, 0, 3);
        if (form == 4 && kind == 2) kind = 1; /* two matrices to add: not this solver's */
        fac_value *y = fac_gemm(in[0], in[1], in[2], &o);
        o.beta = fabs(o.beta);
        check(d, "gemm/gemm", g, y, fac_gemm(in[0], in[1], in[2], &o), 3, in, kind, s);
    }
}

static void matmul(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 40; k++) {
        uint64_t s = seed + k;
        fac_graph *g = fac_graph_new();
        int64_t M = size(s, 0) / 2 + 1, N = size(s, 1), K = size(s, 2), A = check_pick(s, 3, 1, 3),
                B = check_pick(s, 4, 1, 3);
        fac_dims a = fac_shape(M, K), b = fac_shape(K, N);
        switch (k % 8) {
        case 1:
            a = fac_shape(A, M, K);
            break;
        case 2:
            a = fac_shape(A, M, K);
            b = fac_shape(A, K, N);
            break;
        case 3:
            a = fac_shape(A, 1, M, K);
            b = fac_shape(B, K, N);
            break;
        case 4:
            a = fac_shape(A, M, K);
            b = fac_shape(B, 1, K, N);
            break;
        case 5:
            a = fac_shape(K);
            break;
        case 6:
            b = fac_shape(K);
            a = fac_shape(A, B, M, K);
            break;
        case 7:
            b = fac_shape(A, B, K, N);
            break;
        default:
            break;
        }
        fac_value *in[4] = { input(g, 0, a), input(g, 1, b) };
        fac_value *y = fac_matmul(in[0], in[1]);
        check(d, "matmul/gemm", g, y, y, 2, in, (int)check_pick(s, 5, 0, 3), s);
    }
}

static uint64_t seed;
static void test_linear(void **s) { (void)s, check_everywhere(linear, seed); }
static void test_gemm(void **s) { (void)s, check_everywhere(gemm, seed + 1000); }
static void test_matmul(void **s) { (void)s, check_everywhere(matmul, seed + 2000); }

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_linear), cmocka_unit_test(test_gemm),
                                        cmocka_unit_test(test_matmul) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
