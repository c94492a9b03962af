/* The solvers that mostly move memory: reorder, reduce, softmax, norm, lrn.  And the device's own
 * memory. */
#include "solver_check.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/streams.h"
#include "facula/ops.h"
#include "op_list.h"

static check fresh(uint64_t seed, double lo, double hi, double tolerance) {
    return (check){ .seed = seed,
                    .lo = lo,
                    .hi = hi,
                    .tolerance = tolerance,
                    .threads = 2,
                    .strided = true,
                    .blocked = true };
}

/* Every instruction set, several layouts; it must offer each time. */
static void everywhere(check c, const char *solver, const fac_value *y, int rounds) {
    fac_error err = { 0 };
    if (fac_graph_check(y->graph, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof check_isas / sizeof *check_isas; i++)
        for (int round = 0; round < rounds; round++) {
            c.isa = check_isas[i];
            c.in_place = round % 2 && y->node->op->is & FAC_OP_INPLACE;
            if (!check_node(&c, solver, y->node))
                fail_msg("%s: no offer for %s, %d dims (seed %llu)", solver, y->node->op->name,
                         y->node->in[0]->type.dims.n, (unsigned long long)c.seed);
        }
}

static fac_value *in(fac_graph *g, const char *name, fac_dtype t, fac_dims d) {
    return fac_input(g, name, t, d);
}

static void reorders(void **state) {
    (void)state;
    const fac_dims shapes[] = { { 0 },
                                fac_shape(5),
                                fac_shape(0, 3),
                                fac_shape(67, 130),
                                fac_shape(3, 5, 2),
                                fac_shape(2, 19, 5, 7),
                                fac_shape(1, 64, 30, 31),
                                fac_shape(2, 3, 40, 41),
                                fac_shape(2, 3, 2, 5, 3),
                                fac_shape(1, 4, 90, 130) };
    const fac_dtype types[] = { FAC_F32, FAC_F64, FAC_F16, FAC_U8, FAC_BOOL };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            fac_graph *g = fac_graph_new();
            check c = fresh(10 * s + t, -9, 9, 0);
            c.any_out = true;
            everywhere(c, "reorder",
                       fac_emit(&fac_op_identity, NULL, 1,
                                (fac_value *[]){ in(g, "x", types[t], shapes[s]) }),
                       8);
            fac_graph_free(g);
        }
}

typedef fac_value *reduction(fac_value *x, fac_dims axes, bool keep);

static void reductions(void **state) {
    (void)state;
    static const struct {
        reduction *f;
        double tolerance;
    } ops[] = { { fac_sum, 2e-6 },
                { fac_mean, 1e-6 },
                { fac_reduce_max, 0 },
                { fac_reduce_min, 0 },
                { fac_reduce_prod, 1e-6 } };
    const struct {
        fac_dims x, axes;
    } all[] = { { fac_shape(2, 19, 5, 7), fac_shape(2, 3) },
                { fac_shape(2, 19, 5, 7), fac_shape(0, 2, 3) },
                { fac_shape(2, 19, 5, 7), fac_shape(1) },
                { fac_shape(2, 19, 5, 7), fac_shape(3) },
                { fac_shape(2, 19, 5, 7), fac_shape(2) },
                { fac_shape(2, 19, 5, 7), fac_shape(0, 2) },
                { fac_shape(2, 19, 5, 7), fac_shape(1, 3) },
                { fac_shape(2, 19, 5, 7), { 0 } },
                { fac_shape(2, 32, 1, 1), fac_shape(2, 3) },
                { fac_shape(1, 48, 7, 7), fac_shape(2, 3) },
                { fac_shape(4, 300, 33, 2), fac_shape(1, 3) },
                { fac_shape(3, 20000), fac_shape(1) },
                { fac_shape(700, 65), fac_shape(0) },
                { fac_shape(300, 1100), fac_shape(0) },
                { fac_shape(40000), fac_shape(0) },
                { { 0 }, { 0 } },
                { fac_shape(2, 19, 0, 7), fac_shape(2) },
                { fac_shape(3, 0), fac_shape(1) },
                { fac_shape(0, 3), fac_shape(1) } };
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (size_t s = 0; s < sizeof all / sizeof *all; s++)
            for (int type = FAC_F32; type <= FAC_F64; type++) {
                fac_graph *g = fac_graph_new();
                fac_value *x = in(g, "x", (fac_dtype)type, all[s].x);
                bool product = ops[k].f == fac_reduce_prod;
                double lo = product ? 0.95 : -3, hi = product ? 1.05 : 3;
                check c = fresh(100 * k + s, lo, hi,
                                type == FAC_F64 ? ops[k].tolerance * 1e-6 : ops[k].tolerance);
                everywhere(c, "reduce", ops[k].f(x, all[s].axes, s % 2), 4);
                fac_graph_free(g);
            }
}

static void sums_to_a_shape(void **state) {
    (void)state;
    const fac_dims x = fac_shape(2, 19, 5, 7),
                   likes[] = { fac_shape(19, 1, 1),    fac_shape(2, 1, 5, 7), fac_shape(7), { 0 },
                               fac_shape(1, 19, 1, 7), fac_shape(2, 19, 1, 1) };
    for (size_t k = 0; k < sizeof likes / sizeof *likes; k++) {
        fac_graph *g = fac_graph_new();
        fac_value *y = fac_sum_like(in(g, "x", FAC_F32, x), in(g, "like", FAC_F32, likes[k]));
        everywhere(fresh(k, -3, 3, 2e-6), "reduce", y, 4);
        fac_graph_free(g);
    }
}

/* A sum is rounded once: 400,000 of 0.1 in f32 come out as exactly as in f64. */
static void sums_are_exact(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *y = fac_sum(in(g, "x", FAC_F32, fac_shape(500, 800)), (fac_dims){ 0 }, false);
    check c = fresh(5, 0.1, 0.1, 6e-8);
    c.strided = false;
    everywhere(c, "reduce", y, 1);
    fac_graph_free(g);
}

static void softmaxes(void **state) {
    (void)state;
    const struct {
        fac_dims x;
        int axis;
    } all[] = { { fac_shape(2, 5), 1 },      { fac_shape(3, 1000), -1 },
                { fac_shape(3, 4, 5), 0 },   { fac_shape(2, 19, 5, 7), 1 },
                { fac_shape(2, 3, 300), 1 }, { fac_shape(1, 1), 1 },
                { fac_shape(3, 0, 2), 1 },   { fac_shape(0, 4), 1 },
                { fac_shape(2, 7, 513), 0 }, { fac_shape(33, 257), 1 } };
    for (size_t s = 0; s < sizeof all / sizeof *all; s++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = in(g, "x", FAC_F32, all[s].x);
        everywhere(fresh(s, -8, 8, 1e-6), "softmax", fac_softmax(x, all[s].axis), 6);
        everywhere(fresh(s, -90, 90, 1e-6), "softmax", fac_log_softmax(x, all[s].axis), 6);
        fac_graph_free(g);
    }
}

static void norms(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = in(g, "x", FAC_F32, fac_shape(2, 19, 5, 7));
    fac_value *c = in(g, "c", FAC_F32, fac_shape(19)), *d = in(g, "d", FAC_F32, fac_shape(19));
    fac_value *m = in(g, "m", FAC_F32, fac_shape(19)), *v = in(g, "v", FAC_F32, fac_shape(19));
    fac_value *t = in(g, "t", FAC_F32, fac_shape(3, 5, 384));
    fac_value *s = in(g, "s", FAC_F32, fac_shape(384)), *b = in(g, "b", FAC_F32, fac_shape(384));
    fac_value *p = in(g, "p", FAC_F32, fac_shape(2, 24, 6));
    fac_value *q = in(g, "q", FAC_F32, fac_shape(24)), *r = in(g, "r", FAC_F32, fac_shape(24));
    everywhere(fresh(1, 0.1, 2, 1e-5), "norm", fac_batch_norm(x, c, d, m, v, 1e-5), 8);
    everywhere(fresh(2, -3, 3, 2e-5), "norm", fac_layer_norm(t, s, b, -1, 1e-5), 4);
    everywhere(fresh(3, -3, 3, 2e-5), "norm", fac_layer_norm(t, s, NULL, 2, 1e-12), 4);
    everywhere(fresh(4, -3, 3, 2e-5), "norm", fac_layer_norm(t, NULL, NULL, 1, 1e-5), 4);
    everywhere(fresh(5, -3, 3, 2e-5), "norm", fac_rms_norm(t, s, -1, 1e-5), 4);
    everywhere(fresh(6, -3, 3, 2e-5), "norm", fac_group_norm(p, q, r, 4, 1e-5), 4);
    everywhere(fresh(7, -3, 3, 2e-5), "norm", fac_group_norm(p, NULL, NULL, 1, 1e-5), 4);
    everywhere(fresh(8, -3, 3, 2e-5), "norm", fac_instance_norm(p, q, r, 1e-5), 4);
    fac_graph_free(g);
}

static void response_normalization(void **state) {
    (void)state;
    const fac_dims shapes[] = { fac_shape(2, 7, 3, 4), fac_shape(1, 96, 20, 21), fac_shape(2, 3),
                                fac_shape(0, 3, 2, 2), fac_shape(1, 37, 6, 5) };
    const double betas[] = { 0.75, 0.5, 1, 0.6 };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t k = 0; k < 4; k++) {
            fac_graph *g = fac_graph_new();
            fac_value *x = in(g, "x", FAC_F32, shapes[s]);
            everywhere(fresh(s, -2, 2, 2e-6), "lrn", fac_lrn(x, 4 + (int64_t)k, 0.3, betas[k], 1.5),
                       3);
            fac_graph_free(g);
        }
}

static void movers(void **state) {
    (void)state;
    const fac_dtype types[] = { FAC_F32, FAC_F64, FAC_BF16, FAC_I8 };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        fac_graph *g = fac_graph_new();
        check c = fresh(50 * t, -7, 6, 0), any = c;
        any.any_out = true;
        fac_value *x = in(g, "x", types[t], fac_shape(2, 32, 5, 7)),
                  *y = in(g, "y", types[t], fac_shape(2, 32, 5, 7));
        fac_value *z = in(g, "z", types[t], fac_shape(2, 9, 5, 7)),
                  *m = in(g, "m", types[t], fac_shape(30, 41));
        everywhere(any, "concat", fac_concat((fac_value *[]){ x, y, z }, 3, 1), 8);
        everywhere(c, "concat", fac_concat((fac_value *[]){ x, y }, 2, 1), 8);
        everywhere(c, "concat", fac_concat((fac_value *[]){ z, x, y }, 3, 1), 8);
        everywhere(any, "concat", fac_concat((fac_value *[]){ x, y }, 2, 0), 8);
        everywhere(c, "concat", fac_concat((fac_value *[]){ x, y, x }, 3, -1), 8);
        everywhere(c, "concat",
                   fac_concat((fac_value *[]){ m, in(g, "e", types[t], fac_shape(30, 0)) }, 2, 1),
                   4);
        everywhere(any, "move", fac_transpose(x, fac_shape(0, 2, 3, 1)), 8);
        everywhere(c, "move", fac_transpose(x, fac_shape(3, 1, 0, 2)), 8);
        everywhere(any, "move", fac_transpose(m, (fac_dims){ 0 }), 8);
        everywhere(c, "move", fac_slice(x, 1, 16, 32, 1), 8);
        everywhere(any, "move", fac_slice(x, 1, 3, 30, 1), 8);
        everywhere(c, "move", fac_slice(x, 2, -1, -99, -2), 8);
        everywhere(c, "move", fac_slice(x, 1, 16, 17, 1), 8);
        everywhere(c, "move", fac_slice(x, 1, 5, 5, 1), 2);
        everywhere(any, "move",
                   fac_expand(in(g, "r", types[t], fac_shape(32, 1, 7)), fac_shape(3, 32, 4, 7)),
                   8);
        fac_value *parts[3];
        fac_split(x, 1, 2, parts);
        everywhere(c, "move", parts[0], 8);
        fac_split(m, 1, 3, parts);
        everywhere(any, "move", parts[0], 8);
        everywhere(c, "reshape", fac_flatten(x, 1), 8);
        everywhere(c, "reshape", fac_reshape(z, fac_shape(6, -1, 5)), 8);
        fac_value *i = in(g, "i", FAC_I64, fac_shape(3, 2)),
                  *j = in(g, "j", FAC_I32, fac_shape(200));
        check rows = c;
        rows.index = 5;
        everywhere(rows, "gather", fac_gather(in(g, "p", types[t], fac_shape(5, 3)), i, 0), 4);
        rows.index = 6;
        everywhere(rows, "gather", fac_gather(in(g, "q", types[t], fac_shape(4, 6, 300)), j, 1), 4);
        everywhere(rows, "gather", fac_gather(m, in(g, "k", FAC_I64, (fac_dims){ 0 }), -1), 4);
        fac_value *v = in(g, "v", types[t], (fac_dims){ 0 });
        everywhere(c, "pad",
                   fac_pad(x, fac_ints(g, fac_shape(0, 0, 1, 2, 0, 0, 3, 1)), NULL, NULL,
                           FAC_PAD_CONSTANT),
                   8);
        everywhere(
            c, "pad",
            fac_pad(x, fac_ints(g, fac_shape(0, 3, -1, 2, 1, -4, 3, 0)), v, NULL, FAC_PAD_CONSTANT),
            8);
        everywhere(c, "pad",
                   fac_pad(m, fac_ints(g, fac_shape(-20, -10)), v, fac_ints(g, fac_shape(0)),
                           FAC_PAD_CONSTANT),
                   4);
        fac_graph_free(g);
    }
}

/* f16 and bf16 through solvers of f32. */
static void halves(void **state) {
    (void)state;
    for (int type = FAC_F16; type <= FAC_BF16; type++) {
        fac_graph *g = fac_graph_new();
        fac_dtype t = (fac_dtype)type;
        check c = fresh(10, -1, 1, type == FAC_F16 ? 1e-3 : 8e-3);
        fac_value *x = in(g, "x", t, fac_shape(2, 19, 9, 8));
        fac_value *w = in(g, "w", t, fac_shape(24, 19, 3, 3)), *b = in(g, "b", t, fac_shape(24));
        fac_value *m = in(g, "m", t, fac_shape(30, 41)), *k = in(g, "k", t, fac_shape(41, 50));
        everywhere(c, "half", fac_conv2d(x, w, b, &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } }), 6);
        everywhere(c, "half", fac_matmul(m, k), 6);
        everywhere(c, "half", fac_softmax(m, 1), 6);
        everywhere(c, "half", fac_mean(x, fac_shape(2, 3), true), 6);
        everywhere(c, "half", fac_sum(m, fac_shape(0), true), 6);
        everywhere(c, "half", fac_lrn(x, 5, 0.5, 0.75, 1), 6);
        fac_graph_free(g);
    }
}

/* All 65536 halves, and floats between, above and below them. */
static void half_conversions(void **state) {
    (void)state;
    enum { N = 65536 };
    uint16_t *h = calloc(N, 2), *back = calloc(N, 2), *want = calloc(N, 2);
    float *f = calloc(N, 4), *g = calloc(N, 4);
    for (size_t isa = 0; isa < sizeof check_isas / sizeof *check_isas; isa++) {
        const fac_simd *simd;
        assert_int_equal(fac_cpu_simd(check_isas[isa], &simd, NULL), FAC_OK);
        for (int type = FAC_F16; type <= FAC_BF16; type++) {
            for (int i = 0; i < N; i++) h[i] = (uint16_t)i;
            fac_streams_convert(simd->streams, FAC_F32, f, (fac_dtype)type, h, N);
            fac_convert(FAC_F32, g, (fac_dtype)type, h, N);
            for (int i = 0; i < N; i++)
                assert_true(!memcmp(&f[i], &g[i], 4) || (isnan(f[i]) && isnan(g[i])));
            for (int step = 0; step < 8;
                 step++) { /* every half, and what lies 1/8, 1/4, ... of the way to the next one */
                for (int i = 0; i < N; i++) {
                    uint32_t u, rest = (uint32_t)step << (type == FAC_F16 ? 10 : 13);
                    memcpy(&u, &g[i], 4);
                    u += rest + (step == 4 && i % 3 == 0);
                    memcpy(&f[i], &u, 4);
                }
                fac_streams_convert(simd->streams, (fac_dtype)type, back, FAC_F32, f, N);
                fac_convert((fac_dtype)type, want, FAC_F32, f, N);
                for (int i = 0; i < N; i++)
                    if (back[i] != want[i] && !isnan(f[i]))
                        fail_msg("%.9g: %04x, not %04x (%s)", (double)f[i], back[i], want[i],
                                 check_isas[isa]);
            }
        }
    }
    free(h), free(back), free(want), free(f), free(g);
}

static void solvers_refuse(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    check c = fresh(1, -1, 1, 0);
    c.isa = "portable";
    fac_value *x = in(g, "x", FAC_F32, fac_shape(2, 3)), *i = in(g, "i", FAC_I32, fac_shape(2, 3));
    assert_false(check_node(
        &c, "pad", fac_pad(x, fac_ints(g, fac_shape(0, 1, 0, 1)), NULL, NULL, FAC_PAD_EDGE)->node));
    assert_false(check_node(&c, "reduce", fac_sum(i, (fac_dims){ 0 }, false)->node));
    assert_false(
        check_node(&c, "softmax", fac_softmax(in(g, "d", FAC_F64, fac_shape(2, 3)), 1)->node));
    assert_false(check_node(&c, "move", fac_concat((fac_value *[]){ x, x }, 2, 0)->node));
    fac_graph_free(g);
}

/* ---- the device ---- */

static void memory_is_counted(void **state) {
    (void)state;
    fac_device *d;
    fac_tensor *t, *u = NULL;
    fac_error err = { 0 };
    assert_int_equal(fac_device_open("cpu",
                                     &(fac_device_opts){ .memory_limit = 1 << 20, .threads = 2 },
                                     &d, NULL),
                     FAC_OK);
    assert_int_equal(fac_tensor_new(d, FAC_F32, fac_shape(200000), &t, NULL), FAC_OK);
    assert_true(fac_device_memory(d).now >= 800000);
    assert_int_equal(fac_tensor_new(d, FAC_F32, fac_shape(200000), &u, &err), FAC_E_NOMEM);
    assert_non_null(strstr(err.text, "800000")); /* what was asked for, and the limit */
    assert_non_null(strstr(err.text, "1048576"));
    assert_null(u);
    fac_tensor_free(t);
    assert_int_equal(fac_device_memory(d).now, 0);
    assert_true(fac_device_memory(d).peak >= 800000 && fac_device_memory(d).peak <= 1 << 20);
    fac_device_free(d);
}

static void serial(void *self, int n, void (*task)(void *arg, int i), void *arg) {
    ++*(int *)self;
    for (int i = n - 1; i >= 0; i--) task(arg, i);
}

/* A copy that is worth sharing out. */
static void copy_much(fac_device *d) {
    enum { N = 300 };
    fac_dims dims = fac_shape(N, N);
    fac_layout from = fac_layout_plain(&dims), to = { .stride = { 1, N } };
    float *x = calloc(N * N, sizeof *x), *y = calloc(N * N, sizeof *y);
    fac_copy c;
    for (int i = 0; i < N * N; i++) x[i] = (float)i;
    fac_copy_plan(&c, &dims, &from, &to, sizeof *x);
    fac_copy_run(&c, fac_cpu_of(d), x, y);
    for (int i = 0; i < N * N; i++) assert_true(y[i % N * N + i / N] == (float)i);
    free(x);
    free(y);
}

static void options(void **state) {
    (void)state;
    fac_device *d = NULL;
    fac_error err = { 0 };
    int calls = 0;
    assert_int_equal(fac_device_open("cpu:1", NULL, &d, &err), FAC_E_UNSUPPORTED);
    assert_int_equal(fac_device_open("cpu", &(fac_device_opts){ .threads = -1 }, &d, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_device_open("cpu", &(fac_device_opts){ .isa = "mmx" }, &d, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(
        fac_device_open("cpu", &(fac_device_opts){ .pool = &(fac_pool){ .threads = 2 } }, &d, &err),
        FAC_E_ARGUMENT);
    assert_null(d);
    fac_pool pool = { 3, &calls, serial };
    assert_int_equal(
        fac_device_open("cpu", &(fac_device_opts){ .pool = &pool, .isa = "portable" }, &d, &err),
        FAC_OK);
#if defined(__aarch64__)
    assert_string_equal(fac_device_about(d), "neon, 3 threads"); /* there is none without it */
#else
    assert_string_equal(fac_device_about(d), "portable, 3 threads");
#endif
    copy_much(d);
    assert_true(calls > 0);
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(reorders),
                                        cmocka_unit_test(reductions),
                                        cmocka_unit_test(sums_are_exact),
                                        cmocka_unit_test(sums_to_a_shape),
                                        cmocka_unit_test(softmaxes),
                                        cmocka_unit_test(norms),
                                        cmocka_unit_test(response_normalization),
                                        cmocka_unit_test(movers),
                                        cmocka_unit_test(halves),
                                        cmocka_unit_test(half_conversions),
                                        cmocka_unit_test(solvers_refuse),
                                        cmocka_unit_test(memory_is_counted),
                                        cmocka_unit_test(options) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
