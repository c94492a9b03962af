/* Weights in blocks on OpenCL: linear layers against sums in f64 of what the blocks stand for, rows
 * that are picked by tokens against the same on the cpu. */
/* clang-format off */
#include "opencl_check.h"
#include "blocks_check.h"
#include "backends/opencl/device/opencl.h"
/* clang-format on */

static fac_device *device;

static void every_type(void **state) {
    (void)state;
    static const fac_dtype of[] = { FAC_Q8_0, FAC_Q4_0, FAC_Q4_1, FAC_Q4_K, FAC_Q6_K };
    if (!device) skip();
    for (int k = 0; k < 5; k++)
        for (int round = 0; round < 4; round++) {
            fac_opencl_of(device)->limits.gpu = draw(2); /* both shapes of the kernel */
            const int64_t block = fac_dtype_get(of[k])->block_elements,
                          K = block * (1 + (int64_t)draw(block > 32 ? 4 : 20));
            const int64_t M = round == 0   ? 1
                              : round == 1 ? 2 + (int64_t)draw(3)
                                           : 5 + (int64_t)draw(20),
                          N = 1 + (int64_t)draw(70);
            fac_tensor *x = floats(fac_shape(M, K)), *w = weights(of[k], N, K),
                       *b = draw(2) ? floats(fac_shape(N)) : NULL;
            fac_tensor *y = run(device, x, w, b, FAC_PRECISION_DEFAULT);
            const double off = worst(x, w, b, y);
            if (!(off < 1e-6))
                fail_msg("%s: %lld x %lld x %lld is off by %g", fac_dtype_get(of[k])->name,
                         (long long)M, (long long)K, (long long)N, off);
            fac_tensor_free(x);
            fac_tensor_free(w);
            fac_tensor_free(b);
            fac_tensor_free(y);
        }
}

/* silu(x w^T) u + r in one step: what a gate and a residual add become. */
static void what_follows_joins(void **state) {
    (void)state;
    enum { ROWS = 3, N = 33, K = 96 };
    if (!device) skip();
    const fac_dims of_y = fac_shape(ROWS, N);
    fac_tensor *in[3] = { floats(fac_shape(ROWS, K)), floats(of_y), floats(of_y) }, *y = NULL;
    fac_tensor *w = weights(FAC_Q4_1, N, K), *plain = run(device, in[0], w, NULL, 0);
    fac_graph *g = fac_graph_new();
    fac_program *p;
    fac_plan_stat stat;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(ROWS, K)),
              *u = fac_input(g, "u", FAC_F32, of_y), *r = fac_input(g, "r", FAC_F32, of_y);
    fac_value *gate = fac_silu(fac_linear(x, fac_state(g, "w", w), NULL));
    fac_output(g, "y", fac_add(fac_mul(gate, u), r));
    OK(fac_program_new(g, device, NULL, &p, &err));
    OK(fac_program_run(p, in, &y, &err));
    OK(fac_program_plan(p, in, &stat, &err));
    assert_int_equal(stat.steps, 1);
    const float *s = fac_tensor_data(plain), *up = fac_tensor_data(in[1]);
    const float *rest = fac_tensor_data(in[2]), *have = fac_tensor_data(y);
    for (int i = 0; i < ROWS * N; i++) {
        const double sum = (double)s[i], want = sum / (1 + exp(-sum)) * (double)up[i];
        const double off = fabs((double)have[i] - want - (double)rest[i]);
        if (!(off <= 1e-5 * (1 + fabs(want)))) fail_msg("element %d is off by %g", i, off);
    }
    fac_program_free(p);
    fac_graph_free(g);
    for (int i = 0; i < 3; i++) fac_tensor_free(in[i]);
    fac_tensor_free(w);
    fac_tensor_free(plain);
    fac_tensor_free(y);
}

/* Rows of w that are picked by ids, as floats, by a solver. */
static fac_tensor *rows_by(const char *solver, fac_tensor *w, fac_tensor *ids) {
    fac_graph *g = fac_graph_new();
    fac_program *p;
    fac_tensor *y = NULL;
    fac_value *i = fac_input(g, "ids", FAC_I64, fac_tensor_type(ids).dims);
    fac_output(g, "y", fac_cast(fac_gather(fac_state(g, "w", w), i, 0), FAC_F32));
    const fac_program_opts o = { .solver = solver };
    OK(fac_program_new(g, device, &o, &p, &err));
    OK(fac_program_run(p, &ids, &y, &err));
    fac_program_free(p);
    fac_graph_free(g);
    return y;
}

static void tables_of_tokens(void **state) {
    (void)state;
    static const fac_dtype of[] = { FAC_Q8_0, FAC_Q4_0, FAC_Q4_1, FAC_Q4_K, FAC_Q6_K };
    static const char *const solvers[] = { "gather", "cast/blocks" };
    enum { PICKS = 9 };
    if (!device) skip();
    for (int k = 0; k < 10; k++) {
        const fac_dtype type = of[k / 2];
        const int64_t block = fac_dtype_get(type)->block_elements,
                      K = block * (1 + (int64_t)draw(block > 32 ? 3 : 9)),
                      N = 2 + (int64_t)draw(40);
        fac_tensor *w = weights(type, N, K), *ids, *plain, *y;
        OK(fac_tensor_new(NULL, FAC_I64, fac_shape(3, 3), &ids, &err));
        int64_t *at = fac_tensor_storage(ids)->host;
        for (int i = 0; i < PICKS; i++) at[i] = (int64_t)draw((uint64_t)(2 * N)) - N;
        OK(fac_tensor_convert(w, FAC_F32, &plain, &err));
        y = rows_by(solvers[k % 2], w, ids);
        const float *have = fac_tensor_data(y), *table = fac_tensor_data(plain);
        double most = 0;
        for (int64_t i = 0; i < N * K; i++) most = fmax(most, fabs((double)table[i]));
        for (int64_t i = 0; i < PICKS * K; i++) {
            const int64_t row = at[i / K] < 0 ? at[i / K] + N : at[i / K];
            const double off = fabs((double)have[i] - (double)table[row * K + i % K]);
            if (!(off <= 4 * 0x1p-23 * most)) /* a product and a sum may be rounded as one */
                fail_msg("%s by %s, row %lld: off by %g of %g", fac_dtype_get(type)->name,
                         solvers[k % 2], (long long)row, off, most);
        }
        fac_tensor_free(w);
        fac_tensor_free(ids);
        fac_tensor_free(plain);
        fac_tensor_free(y);
    }
}

int main(void) {
    seed = fresh_seed();
    if (opencl_open(&device, &err)) return 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_type),
                                        cmocka_unit_test(what_follows_joins),
                                        cmocka_unit_test(tables_of_tokens) };
    const int failed = cmocka_run_group_tests_name("opencl blocks", tests, NULL, NULL);
    fac_device_free(device);
    return failed;
}
