/* The solvers of inverted residuals on their own against the reference, and the pass that makes its
 * nodes in whole networks. */
#include "backends/cpu/device/cpu.h"
#include "net_check.h"
#include "op_list.h"

typedef struct block {
    int64_t N, C, H, W, E, K, R, S; /* E: expanded channels; R, S: of the depthwise kernel */
    int64_t stride[2], pad[4];
    bool bias, add;
    int act; /* 0 none, 1 relu, 2 relu6 */
    int64_t first, first_stride,
        first_pad; /* kernel of the expansion, where it is a first layer; 0: 1 x 1 */
} block;

static fac_value *act(fac_value *v, int kind) {
    if (kind == 1) return fac_relu(v);
    return kind == 2
               ? fac_clip(v, fac_number(v->graph, FAC_F32, 0), fac_number(v->graph, FAC_F32, 0.3))
               : v;
}

static fac_value *input(fac_graph *g, fac_dims d) {
    char name[8];
    snprintf(name, sizeof name, "x%d", fac_graph_inputs(g));
    return fac_input(g, name, FAC_F32, d);
}

/* The three convolutions, whose operands become inputs of g after x; bare: nothing but the sums.
 */
static fac_value *three(fac_graph *g, const block *s, bool bare) {
    const fac_conv2d_opts d = { .stride = { s->stride[0], s->stride[1] },
                                .pad = { s->pad[0], s->pad[1], s->pad[2], s->pad[3] },
                                .groups = s->E };
    const int kind = bare ? 0 : s->act;
    const int64_t size = s->first ? s->first : 1;
    const int64_t stride = s->first ? s->first_stride : 1, pad = s->first_pad;
    const fac_conv2d_opts e = { .stride = { stride, stride }, .pad = { pad, pad, pad, pad } };
    fac_value *x = input(g, fac_shape(s->N, s->C, s->H, s->W)),
              *w = input(g, fac_shape(s->E, s->C, size, size));
    fac_value *v = act(fac_conv2d(x, w, s->bias ? input(g, fac_shape(s->E)) : NULL, &e), kind);
    w = input(g, fac_shape(s->E, 1, s->R, s->S));
    v = act(fac_conv2d(v, w, s->bias ? input(g, fac_shape(s->E)) : NULL, &d), kind);
    w = input(g, fac_shape(s->K, s->E, 1, 1));
    v = fac_conv2d(v, w, s->bias ? input(g, fac_shape(s->K)) : NULL, NULL);
    if (s->add) v = fac_add(input(g, v->type.dims), v);
    return s->add ? act(v, kind) : v;
}

static fac_node *node_of(fac_graph *g, const block *s, bool bare) {
    fac_error err = { 0 };
    fac_graph *body = fac_graph_new();
    fac_value *in[FAC_OFFER_PACKED];
    fac_output(body, "y", three(body, s, bare));
    if (fac_graph_check(body, &err)) fail_msg("%s", err.text);
    const int n = fac_graph_inputs(body);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s%d", bare ? "bare" : "x", i);
        in[i] = fac_input(g, name, FAC_F32, fac_graph_input(body, i)->type.dims);
    }
    fac_value *y = fac_emit_body(g, &fac_op_fused_conv, NULL, n, n, in, body, NULL);
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    return y->node;
}

static const char *const ways[] = { "fused_conv/inverted", "fused_conv/inverted_channels" };

/* By channels only where there are threads to share them, and not first layers. */
static bool solve(fac_device *d, const block *s, uint64_t seed) {
    fac_graph *g = fac_graph_new();
    fac_node *node = node_of(g, s, false), *bare = node_of(g, s, true);
    bool took = true;
    const int n = fac_cpu_of(d)->pool.threads > 1 && s->C > 4 ? 2 : 1;
    for (int k = 0; k < n; k++) took &= check_solver(d, ways[k], node, bare, seed);
    fac_graph_free(g);
    return took;
}

static void blocks(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 30; k++) {
        const uint64_t s = seed + k;
        block b = { .N = check_pick(s, 0, 1, 3),
                    .C = check_pick(s, 1, 1, 40),
                    .E = check_pick(s, 2, 2, 100),
                    .K = check_pick(s, 3, 1, 40),
                    .R = check_pick(s, 4, 1, 5),
                    .S = check_pick(s, 5, 1, 5),
                    .stride = { check_pick(s, 6, 1, 3), check_pick(s, 7, 1, 3) },
                    .bias = check_pick(s, 8, 0, 1),
                    .add = check_pick(s, 9, 0, 1),
                    .act = (int)check_pick(s, 10, 0, 2) };
        for (int i = 0; i < 4; i++)
            b.pad[i] = check_pick(s, 11 + (uint64_t)i, 0, (i % 2 ? b.S : b.R) - 1);
        b.H = b.R + check_pick(s, 15, 0, 20);
        b.W = b.S + check_pick(s, 16, 0, 40);
        if (k % 3 == 0) {
            b.C = check_pick(s, 17, 1, 4);
            b.E += b.C;
            b.first = check_pick(s, 18, 1, 5);
            b.first_stride = check_pick(s, 19, 1, 3);
            b.first_pad = check_pick(s, 20, 0, b.first - 1);
            b.H = b.H * b.first_stride + b.first;
            b.W = b.W * b.first_stride + b.first;
        }
        if (!solve(d, &b, s)) fail_msg("no offer, seed %llu", (unsigned long long)s);
    }
    static const block fixed[] = {
        { 1, 24, 56, 56, 144, 24, 3, 3, { 1, 1 }, { 1, 1, 1, 1 }, true, true, 2, 0, 0, 0 },
        { 2, 16, 30, 30, 96, 24, 3, 3, { 2, 2 }, { 1, 1, 1, 1 }, true, false, 2, 0, 0, 0 },
        { 1,
          17,
          1,
          1,
          33,
          40,
          3,
          3,
          { 1, 1 },
          { 1, 1, 1, 1 },
          true,
          true,
          1,
          0,
          0,
          0 }, /* nothing but padding around it */
        { 1,
          160,
          7,
          7,
          300,
          50,
          3,
          3,
          { 1, 1 },
          { 1, 1, 1, 1 },
          true,
          true,
          2,
          0,
          0,
          0 }, /* rows in pairs, an odd number */
        { 1,
          3,
          60,
          61,
          32,
          16,
          3,
          3,
          { 1, 1 },
          { 1, 1, 1, 1 },
          true,
          false,
          2,
          3,
          2,
          1 }, /* the stem of MobileNetV2 */
        { 3, 4, 20, 9, 5, 6, 3, 3, { 2, 2 }, { 0, 0, 0, 0 }, false, false, 1, 1, 1, 0 },
        { 1,
          5,
          9,
          13,
          20,
          9,
          1,
          1,
          { 4, 4 },
          { 0, 0, 0, 0 },
          false,
          true,
          1,
          0,
          0,
          0 }, /* rows that nothing looks at */
        { 5, 8, 3, 40, 16, 8, 7, 7, { 1, 1 }, { 3, 3, 3, 3 }, true, false, 0, 0, 0, 0 }
    }; /* a kernel larger than the image */
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        if (!solve(d, &fixed[k], seed)) fail_msg("no offer for block %zu", k);
}

/* What it must not take: other kernels than 1 x 1 around, groups of more than one channel,
 * dilation, other activations. */
static void refused(fac_device *d, uint64_t seed) {
    static const char *const texts[] = {
        "fused_conv(f32[1,5,9,9], f32[8,5,3,3], f32[8,1,3,3], f32[4,8,1,1]) {conv2d(_, x1) "
        "conv2d(_, x2) groups=8 conv2d(_, x3)}",
        "fused_conv(f32[1,4,8,8], f32[8,4,1,1], f32[8,2,3,3], f32[4,8,1,1]) {conv2d(_, x1) "
        "conv2d(_, x2) groups=4 conv2d(_, x3)}",
        "fused_conv(f32[1,4,8,8], f32[8,4,1,1], f32[8,1,3,3], f32[4,8,1,1]) {conv2d(_, x1) "
        "conv2d(_, x2) groups=8 dilation=2,2 "
        "conv2d(_, x3)}",
        "fused_conv(f32[1,4,8,8], f32[8,4,1,1], f32[8,1,3,3], f32[4,8,1,1]) {conv2d(_, x1) tanh "
        "conv2d(_, x2) groups=8 "
        "conv2d(_, x3)}",
        "fused_conv(f32[1,4,8,8], f32[8,4,1,1], f32[8,1,3,3], f32[4,8,1,1]) {conv2d(_, x1) "
        "conv2d(_, x2) groups=8 conv2d(_, x3) "
        "conv2d(_, x1)}",
        "fused_conv(f32[1,4,8,8], f32[4,4,1,1], f32[4,1,3,3]) {conv2d(_, x1) conv2d(_, x2) "
        "groups=4 conv2d(_, x1)}",
        "fused_conv(f64[1,4,8,8], f64[8,4,1,1], f64[8,1,3,3], f64[4,8,1,1]) {conv2d(_, x1) "
        "conv2d(_, x2) groups=8 "
        "conv2d(_, x3)}"
    };
    (void)seed;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        fac_error err = { 0 };
        fac_graph *g = NULL;
        if (fac_problem_graph(texts[k], true, &g, &err)) fail_msg("%s", err.text);
        for (int i = 0; i < 2; i++)
            if (fac_would_solve(d, ways[i], false, g->last))
                fail_msg("%s took %s", ways[i], texts[k]);
        fac_graph_free(g);
    }
}

/* ---- in networks ---- */

static fac_value *residual(builder *b, fac_value *x, int64_t E, int64_t K, int64_t stride,
                           bool add) {
    fac_value *v = fac_relu6(conv(b, x, E, 1, 1, 1));
    v = conv(b, fac_relu6(conv(b, v, E, 3, stride, E)), K, 1, 1, 1);
    return add ? fac_add(x, v) : v;
}

static int fused_steps(fac_device *d, const fac_graph *g, const fac_program_opts *o,
                       fac_tensor *x) {
    fac_error err = { 0 };
    fac_program *p;
    fac_tensor *y[NET_OUTPUTS] = { NULL };
    fac_step_stat steps[64];
    if (fac_program_new(g, d, o, &p, &err) || fac_program_run(p, &x, y, &err))
        fail_msg("%s", err.text);
    int n = 0;
    for (size_t i = 0, all = fac_program_steps(p, steps, 64); i < all; i++)
        n += !strncmp(steps[i].solver, "fused_conv/", 11);
    for (int k = 0; k < fac_graph_outputs(g); k++) fac_tensor_free(y[k]);
    fac_program_free(p);
    return n;
}

/* Blocks that are taken, and one whose expanded image something else reads. */
static void networks(fac_device *d, uint64_t seed) {
    ((fac_cpu *)d)->l2 = 2 << 20; /* whatever this machine has */
    for (uint64_t k = 0; k < 6; k++) {
        builder b = { fac_graph_new(), seed + k, 0, 0 };
        const int64_t N = 1 + (int64_t)k % 3, size = pick(&b, 9, 24);
        const fac_program_opts fuse = { .solver = "fused_conv/inverted" };
        fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(N, 3, size, size));
        x = fac_relu6(conv(&b, x, 20, 3, 1, 1));
        x = residual(&b, x, 60, 20, 1, true);
        x = residual(&b, x, 50, 33, 2, false);
        x = residual(&b, x, 64, 33, 1, true);
        fac_value *e = fac_relu6(conv(&b, x, 48, 1, 1, 1)),
                  *v = conv(&b, conv(&b, e, 48, 3, 1, 48), 33, 1, 1, 1);
        fac_output(b.g, "y", fac_relu(v));
        fac_output(b.g, "e", e);
        fac_tensor *t = random_tensor(seed + k, 1, fac_shape(N, 3, size, size), 1);
        float *want[2], *got[2];
        size_t n[2];
        run(d, b.g, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, t, want, n);
        run(d, b.g, &fuse, t, got, n);
        for (int o = 0; o < 2; o++)
            for (size_t i = 0; i < n[o]; i++)
                if (!(fabsf(got[o][i] - want[o][i]) <= 2e-5f * (1 + fabsf(want[o][i]))))
                    fail_msg("seed %llu, output %d[%zu]: %.9g, expected %.9g",
                             (unsigned long long)(seed + k), o, i, (double)got[o][i],
                             (double)want[o][i]);
        assert_int_equal(fused_steps(d, b.g, &fuse, t), 3);
        if (fac_cpu_of(d)->pool.threads == 1)
            assert_int_equal(fused_steps(d, b.g, NULL, t), 0); /* they stay in its cache */
        assert_int_equal(fused_steps(d, b.g, &(fac_program_opts){ .solver = "conv2d/direct" }, t),
                         0);
        for (int o = 0; o < 2; o++) free(want[o]), free(got[o]);
        fac_tensor_free(t);
        fac_graph_free(b.g);
    }
}

static uint64_t seed;
static void test_blocks(void **s) { (void)s, check_everywhere(blocks, seed); }
static void test_refused(void **s) { (void)s, check_everywhere(refused, seed); }
static void test_networks(void **s) { (void)s, check_everywhere(networks, seed + 1000); }

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_blocks),
                                        cmocka_unit_test(test_refused),
                                        cmocka_unit_test(test_networks) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
