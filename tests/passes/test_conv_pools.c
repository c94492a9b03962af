/* Max pools become part of the convolutions before them: which do, and that the result keeps its
 * bits. */
#include "net_check.h"
#include "op_list.h"
#include "passes/passes.h"

typedef enum act { NONE, RELU, RELU6, FLOOR, LEAKY, NEGATIVE, SILU, ADDED } act;
typedef struct form {
    act act;
    int kernel;
    fac_pool2d_opts pool;
    int other; /* 1: the convolution's result is an output, 2: so are the places of the maxima */
    bool fuses;
} form;

static const form forms[] = {
    { NONE, 2, { .stride = { 2, 2 } }, 0, true },
    { RELU, 2, { .stride = { 2, 2 } }, 0, true },
    { RELU6, 3, { .stride = { 2, 2 } }, 0, true },
    { FLOOR, 2, { .stride = { 1, 2 } }, 0, true },
    { LEAKY, 3, { .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } }, 0, true },
    { RELU, 2, { .stride = { 2, 2 }, .auto_pad = FAC_AUTO_SAME_UPPER }, 0, true },
    { RELU, 1, { .ceil_mode = true }, 0, true }, /* 1 x 1: nothing to round up */
    { RELU, 2, { .stride = { 2, 2 }, .ceil_mode = true }, 0, false },
    { RELU, 2, { .dilation = { 2, 1 } }, 0, false },
    { NEGATIVE, 2, { .stride = { 2, 2 } }, 0, false },
    { SILU, 2, { .stride = { 2, 2 } }, 0, false },
    { ADDED, 2, { .stride = { 2, 2 } }, 0, false },
    { RELU, 2, { .stride = { 2, 2 } }, 1, false },
    { RELU, 2, { .stride = { 2, 2 } }, 2, false },
};
enum { FORMS = sizeof forms / sizeof *forms, H = 11, W = 14, C = 6, K = 20 };

static fac_value *act_of(act a, fac_value *y, const fac_value *x) {
    fac_graph *g = fac_value_graph(x);
    switch (a) {
    case RELU:
        return fac_relu(y);
    case RELU6:
        return fac_relu6(y);
    case FLOOR:
        return fac_max(fac_number(g, FAC_F32, 0.1), y);
    case LEAKY:
        return fac_leaky_relu(y, 0.1);
    case NEGATIVE:
        return fac_leaky_relu(y, -0.1);
    case SILU:
        return fac_silu(y);
    case ADDED:
        return fac_relu(fac_add(y, fac_conv2d((fac_value *)(uintptr_t)x, y->node->in[1], NULL,
                                              &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } })));
    default:
        return y;
    }
}

static fac_graph *build(const form *f, uint64_t seed) {
    builder b = { fac_graph_new(), seed, 0, 0 };
    fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(2, C, H, W)),
              *w = param(&b, fac_shape(K, C, 3, 3), 0.3f);
    fac_value *y = fac_conv2d(x, w, param(&b, fac_shape(K), 0.5f),
                              &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } });
    y = act_of(f->act, y, x);
    if (f->other == 1) fac_output(b.g, "made", y);
    y = fac_max_pool2d(y, f->kernel, f->kernel, &f->pool);
    fac_output(b.g, "y", y);
    if (f->other == 2) fac_output(b.g, "places", fac_cast(fac_value_other(y, 1), FAC_F32));
    return b.g;
}

static bool accept_all(void *self, const fac_node *n) { return (void)self, (void)n, true; }

/* What the fused node costs, in what the others cost each. */
static double price_of(void *self, const fac_node *n) {
    return n->op == &fac_op_conv2d_max_pool ? *(const double *)self : 1;
}

static int count(const fac_graph *g, const fac_op *op) {
    int n = 0;
    for (const fac_node *m = g->first; m; m = m->next) n += m->op == op;
    return n;
}

static void the_same_bits(void **state) {
    (void)state;
    fac_device *d;
    fac_error err = { 0 };
    if (fac_device_open("cpu", NULL, &d, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < FORMS; i++) {
        fac_graph *g = build(&forms[i], 30 + i),
                  *with_bodies = fac_pass_epilogue(g, accept_all, NULL);
        double dear = 2, cheap = 1.9;
        fac_graph *same = fac_pass_conv_pools(with_bodies, price_of, &dear);
        fac_graph *to = fac_pass_conv_pools(with_bodies, price_of, &cheap);
        if (fac_graph_check(to, &err) || fac_graph_check(same, &err))
            fail_msg("%zu: %s", i, err.text);
        assert_int_equal(count(same, &fac_op_conv2d_max_pool), 0);
        assert_int_equal(count(same, &fac_op_max_pool2d), 1);
        assert_int_equal(count(to, &fac_op_conv2d_max_pool), forms[i].fuses);
        assert_int_equal(count(to, &fac_op_max_pool2d), !forms[i].fuses);
        if (forms[i].fuses) assert_int_equal(to->nodes, 1);
        fac_tensor *x = random_tensor(i, 1, fac_shape(2, C, H, W), 1);
        float *all = malloc(sizeof *all * 2 * C * H * W), *want[NET_OUTPUTS], *got[NET_OUTPUTS];
        size_t n[NET_OUTPUTS], m[NET_OUTPUTS];
        fac_tensor_read(x, all, sizeof *all * 2 * C * H * W, &err);
        all[C * H * W + 5] = NAN;
        fac_tensor_write(x, all, sizeof *all * 2 * C * H * W, &err);
        run(d, g, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, x, want, n);
        run(d, to, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, x, got, m);
        size_t nans = 0;
        for (int k = 0; k < fac_graph_outputs(g); k++) {
            assert_int_equal(n[k], m[k]);
            for (size_t e = 0; e < n[k]; e++) {
                nans += isnan(want[k][e]) != 0;
                if (isnan(want[k][e]) ? !isnan(got[k][e]) : want[k][e] != got[k][e])
                    fail_msg("form %zu, output %d[%zu]: %.9g, expected %.9g", i, k, e,
                             (double)got[k][e], (double)want[k][e]);
            }
            free(want[k]), free(got[k]);
        }
        assert_true(nans > 0);
        free(all);
        fac_tensor_free(x);
        fac_graph_free(to), fac_graph_free(same), fac_graph_free(with_bodies), fac_graph_free(g);
    }
    fac_device_free(d);
}

/* Through the whole compiler, whatever it fuses. */
static void networks(fac_device *d, uint64_t seed) {
    for (size_t i = 0; i < FORMS; i++) {
        fac_graph *g = build(&forms[i], seed + i);
        fac_tensor *x = random_tensor(seed, 1, fac_shape(2, C, H, W), 1);
        if (forms[i].other != 2)
            check_network(d, g, x, seed); /* places change where two are nearly the same */
        fac_tensor_free(x);
        fac_graph_free(g);
    }
}
static uint64_t seed;
static void test_networks(void **s) { (void)s, check_everywhere(networks, seed); }

/* Sizes that are symbols, and costs. */
static void sizes(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new();
    const int64_t N = fac_symbol(g, "N"), S = fac_symbol(g, "S");
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(N, 3, S, 8)),
              *w = fac_input(g, "w", FAC_F32, fac_shape(8, 3, 3, 3));
    fac_value *in[] = { x, w, NULL };
    fac_value *y = fac_apply(g, &fac_op_conv2d_max_pool, "pad=1,1,1,1", 3, in);
    fac_value *other = fac_max_pool2d(
        fac_conv2d(in[0], in[1], NULL, &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } }), 2, 2, NULL);
    assert_true(fac_dims_equal(&y->type.dims, &other->type.dims) && y->type.dims.d[0] == N &&
                y->type.dims.d[3] == 4);
    assert_int_equal(fac_graph_check(g, &err), FAC_OK);
    fac_graph_free(g);
    static const char problem[] = "conv2d_max_pool(f32[2,3,9,8], f32[5,3,3,3], f32[5]) pad=1,1,1,1";
    if (fac_problem_graph(problem, false, &g, &err)) fail_msg("%s", err.text);
    fac_cost c = { 0 };
    g->last->op->cost(g->last, &c);
    assert_true(c.macs == 2.0 * 5 * 72 * 27 && c.other == 2.0 * 5 * (72 + 4 * 16));
    assert_true(c.read == 4.0 * (2 * 3 * 72 + 5 * 27 + 5) && c.written == 4.0 * 2 * 5 * 16);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_same_bits),
                                        cmocka_unit_test(test_networks), cmocka_unit_test(sizes) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
