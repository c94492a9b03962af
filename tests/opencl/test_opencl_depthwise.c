/* Depthwise convolutions and pools with channels last, four channels an item, and their gradients:
 * fresh random shapes with bodies, every way to cut them, against the reference driver.  Kernels
 * are those for a GPU, wherever they run; FACULA_ALL=1 tries more shapes.  Skipped where no driver
 * is. */
#include "opencl_solver_check.h"
#include "backends/opencl/pool/quads.h"
#include "cl_conv_depthwise.h"
#include "cl_conv_depthwise_grad.h"
#include "cl_pool_quads.h"
#include "cl_pool_quads_grad.h"

static int below(int n) { return (int)(fac_random_bits(seed, ++stream, 0) % (uint64_t)n); }

static const fac_solver *solver(const char *name) {
    for (const fac_solver *const *s = device->backend->solvers; *s; s++)
        if (!strcmp((*s)->name, name)) return *s;
    fail_msg("no solver %s", name);
    return NULL;
}

/* Some variants are for some problems only. */
static bool offers(const char *name, const fac_node *n) {
    fac_operand o[OPERANDS] = { 0 };
    fac_problem p = {
        .node = n, .nin = n->nin, .nout = 1, .in = o, .out = o + n->nin, .variant = variant
    };
    fac_offer offer = { 0 };
    for (int i = 0; i < n->nin + 1; i++) {
        const fac_value *v = i < n->nin ? n->in[i] : n->out[0];
        if (v) o[i] = (fac_operand){ v->type, fac_layout_plain(&v->type.dims), FAC_RUN, v->known };
    }
    const bool made = fac_solver_offer(solver(name), device, &p, &offer);
    fac_offer_drop(&offer);
    return made;
}

/* true: the solver took it. */
static bool pose(const char *name, const char *text, double tolerance) {
    fac_graph *g = NULL;
    const fac_case c = { text, -1, 1, tolerance };
    const int asked = variant; /* which the caller counts */
    if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s: %s", text, err.text);
    fac_opencl_of(device)->limits.gpu = strcmp(name, "pool/strip") != 0;
    if (variant > 12 && variant <= FAC_CL_QUAD_VARIANTS && !offers(name, g->last))
        variant = 0; /* not of this problem */
    if (getenv("FACULA_VERBOSE")) print_message("%s, variant %d: %s\n", name, variant, text);
    first_only = true;
    channels_last = below(3); /* plain operands are asked for in another layout */
    const bool took = solve(solver(name), g->last, &c, false);
    variant = asked;
    fac_graph_free(g);
    return took;
}

/* What relu made, which a pool reads: its gradient passes NaN. */
static void some_nan(const fac_node *n, const fac_host *in) {
    (void)n;
    spoil(&in[0].type, in[0].data);
}

static int count(int few, int many) { return getenv("FACULA_ALL") ? many : few; }

/* A window over an image of at least its size: what it makes of H x W. */
typedef struct sliding {
    int R, S, sr, ss, dr, ds, pad[4], H, W, P, Q;
} sliding;
static sliding random_window(int most, int strides) {
    sliding w = { .R = 1 + below(most),
                  .S = 1 + below(most),
                  .sr = 1 + below(strides),
                  .ss = 1 + below(strides),
                  .dr = 1 + !below(4),
                  .ds = 1 + !below(4) };
    for (int k = 0; k < 4; k++) w.pad[k] = below((k % 2 ? w.S : w.R) / 2 + 1);
    w.H = (w.R - 1) * w.dr + 1 + below(12);
    w.W = (w.S - 1) * w.ds + 1 + below(20);
    w.P = (w.H + w.pad[0] + w.pad[2] - (w.R - 1) * w.dr - 1) / w.sr + 1;
    w.Q = (w.W + w.pad[1] + w.pad[3] - (w.S - 1) * w.ds - 1) / w.ss + 1;
    return w;
}

static const char *window_attrs(const sliding *w, char *to, size_t size) {
    snprintf(to, size, "stride=%d,%d pad=%d,%d,%d,%d dilation=%d,%d", w->sr, w->ss, w->pad[0],
             w->pad[1], w->pad[2], w->pad[3], w->dr, w->ds);
    return to;
}

static void depthwise(void **state) {
    static const char *const bodies[] = { "", " {relu}", " {add(_, x1) relu}",
                                          " {mul(_, x1) add(_, x2)}" };
    static const char *const types[] = { "f32", "f32", "bf16", "f16" };
    static const double errors[] = { 1e-5, 1e-5, 2e-2, 3e-3 };
    (void)state;
    if (!device) skip();
    for (int k = 0; k < count(2, 60); k++) {
        char text[400], attrs[128], extra[96] = "";
        const sliding w = random_window(k % 3 ? 4 : 6, 3);
        const int C = 4 * (1 + below(k % 2 ? 5 : 40)), N = 1 + below(3), body = below(4),
                  type = below(4);
        const char *t = types[type];
        window_attrs(&w, attrs, sizeof attrs);
        variant = below(FAC_CL_QUAD_VARIANTS + 1);
        if (body == 2) snprintf(extra, sizeof extra, ", %s[%d,%d,%d,%d]", t, N, C, w.P, w.Q);
        if (body == 3) snprintf(extra, sizeof extra, ", %s[%d,%d,1,1], %s[]", t, N, C, t);
        snprintf(text, sizeof text,
                 "conv2d(%s[%d,%d,%d,%d], %s[%d,1,%d,%d], %s[%d]%s) %s groups=%d%s", t, N, C, w.H,
                 w.W, t, C, w.R, w.S, t, C, extra, attrs, C, bodies[body]);
        assert_true(pose("conv/depthwise", text, errors[type]));
        snprintf(text, sizeof text,
                 "conv2d_grad_x(%s[%d,%d,%d,%d], %s[%d,1,%d,%d], %s[%d,%d,%d,%d]) %s groups=%d", t,
                 N, C, w.P, w.Q, t, C, w.R, w.S, t, N, C, w.H, w.W, attrs, C);
        assert_true(pose("conv/depthwise", text, 2 * errors[type]));
        if (w.R * w.S > 25) continue;
        snprintf(text, sizeof text,
                 "conv2d_grad_w(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d,1,%d,%d]) %s groups=%d", t,
                 N, C, w.H, w.W, t, N, C, w.P, w.Q, t, C, w.R, w.S, attrs, C);
        assert_true(pose("conv/depthwise", text, 4 * errors[type]));
    }
    variant = 0;
}

/* Some channels in a group, as many or others of the result. */
static void grouped(void **state) {
    static const char *const types[] = { "f32", "bf16", "f16" };
    static const double errors[] = { 2e-5, 3e-2, 5e-3 };
    (void)state;
    if (!device) skip();
    for (int k = 0; k < count(1, 60); k++) {
        char text[400], attrs[128];
        const sliding w = random_window(3, 2);
        const int groups = 2 + below(9), C = groups * 4 * (1 + below(k % 2 ? 2 : 8)),
                  K = groups * 4 * (1 + below(k % 3 ? 8 : 2));
        const int N = 1 + below(2), type = below(3);
        const char *t = types[type];
        window_attrs(&w, attrs, sizeof attrs);
        variant = below(FAC_CL_QUAD_VARIANTS + 1);
        snprintf(text, sizeof text,
                 "conv2d(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d], %s[%d,%d,%d,%d]) %s groups=%d "
                 "{add(_, x1)}",
                 t, N, C, w.H, w.W, t, K, C / groups, w.R, w.S, t, K, t, N, K, w.P, w.Q, attrs,
                 groups);
        assert_true(pose("conv/depthwise", text, errors[type]));
        snprintf(text, sizeof text,
                 "conv2d_grad_x(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d,%d,%d,%d]) %s groups=%d", t,
                 N, K, w.P, w.Q, t, K, C / groups, w.R, w.S, t, N, C, w.H, w.W, attrs, groups);
        assert_true(pose("conv/depthwise", text, errors[type]));
    }
    variant = 0;
}

/* Every cut of one layer, so that tiles stick out of the image on both sides. */
static void every_cut(void **state) {
    (void)state;
    if (!device) skip();
    int first = 1, last = FAC_CL_QUAD_VARIANTS;
    if (!getenv("FACULA_ALL")) first = last = 1 + below(FAC_CL_QUAD_VARIANTS);
    for (variant = first; variant <= last; variant++) {
        assert_true(pose(
            "conv/depthwise",
            "conv2d(f32[2,72,13,17], f32[72,1,3,3], f32[72]) pad=1,1,1,1 groups=72 {relu}", 1e-5));
        assert_true(pose("conv/depthwise",
                         "conv2d_grad_w(f32[2,72,13,17], f32[2,72,7,9], f32[72,1,3,3]) stride=2,2 "
                         "pad=1,1,1,1 groups=72",
                         4e-5));
        assert_true(
            pose("pool/quads", "max_pool2d(f32[2,72,13,17]) kernel=3,3 stride=2,2 pad=1,1,1,1", 0));
        assert_true(pose(
            "pool/quads",
            "max_pool2d_grad(f32[2,72,13,17], f32[2,72,7,9]) kernel=3,3 stride=2,2 pad=1,1,1,1",
            1e-6));
    }
    variant = FAC_CL_QUAD_VARIANTS + 1;
    assert_false(pose("conv/depthwise",
                      "conv2d(f32[2,72,13,17], f32[72,1,3,3]) pad=1,1,1,1 groups=72", 1e-5));
    variant = 0;
}

static void pools(void **state) {
    static const char *const types[] = { "f32", "bf16", "f16" };
    static const double errors[] = { 1e-6, 2e-2, 3e-3 };
    (void)state;
    if (!device) skip();
    for (int k = 0; k < count(1, 60); k++) {
        char text[400], attrs[160];
        const sliding w = random_window(4, 3);
        const int C = 4 * (1 + below(20)), N = 1 + below(3), type = below(3);
        const char *t = types[type], *include = below(2) ? " count_include_pad" : "";
        int n = snprintf(attrs, sizeof attrs, "kernel=%d,%d ", w.R, w.S);
        window_attrs(&w, attrs + n, sizeof attrs - (size_t)n);
        variant = below(FAC_CL_QUAD_VARIANTS + 1);
        snprintf(text, sizeof text, "max_pool2d(%s[%d,%d,%d,%d]) %s", t, N, C, w.H, w.W, attrs);
        assert_true(pose("pool/quads", text, 0));
        snprintf(text, sizeof text, "max_pool2d_grad(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d]) %s", t, N, C,
                 w.H, w.W, t, N, C, w.P, w.Q, attrs);
        assert_true(pose("pool/quads", text, 2 * errors[type]));
        snprintf(text, sizeof text, "max_pool2d_relu_grad(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d]) %s", t,
                 N, C, w.H, w.W, t, N, C, w.P, w.Q, attrs);
        assert_true(pose("pool/quads", text, 2 * errors[type]));
        decide = some_nan;
        assert_true(pose("pool/quads", text, 2 * errors[type]));
        decide = NULL;
        snprintf(text, sizeof text, "avg_pool2d(%s[%d,%d,%d,%d]) %s%s", t, N, C, w.H, w.W, attrs,
                 include);
        assert_true(pose("pool/quads", text, errors[type]));
        snprintf(text, sizeof text, "avg_pool2d_grad(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d]) %s%s", t, N,
                 C, w.H, w.W, t, N, C, w.P, w.Q, attrs, include);
        assert_true(pose("pool/quads", text, 2 * errors[type]));
    }
    variant = 0;
}

/* Strips of plain images, for items with vectors of their own: widths below and above a vector. */
static void strips(void **state) {
    static const char *const types[] = { "f32", "bf16" };
    static const double errors[] = { 1e-6, 2e-2 };
    (void)state;
    if (!device) skip();
    for (int k = 0; k < count(2, 60); k++) {
        char text[400], attrs[160];
        const sliding w = random_window(4, 3);
        const int C = 1 + below(9), N = 1 + below(3), type = below(2);
        const char *t = types[type], *include = below(2) ? " count_include_pad" : "";
        if (w.W < 4) continue;
        int n = snprintf(attrs, sizeof attrs, "kernel=%d,%d ", w.R, w.S);
        window_attrs(&w, attrs + n, sizeof attrs - (size_t)n);
        snprintf(text, sizeof text, "max_pool2d(%s[%d,%d,%d,%d]) %s", t, N, C, w.H, w.W, attrs);
        assert_true(pose("pool/strip", text, 0));
        snprintf(text, sizeof text, "avg_pool2d(%s[%d,%d,%d,%d]) %s%s", t, N, C, w.H, w.W, attrs,
                 include);
        assert_true(pose("pool/strip", text, errors[type]));
    }
    assert_true(pose("pool/strip", "max_pool2d(f32[2,3,40,75]) kernel=3,3 stride=2,2", 0));
}

/* The texts for an H200, where inline PTX works; FACULA_KERNELS names a folder that they are
 * written to, for scripts/check_ptx.sh. */
static void texts(void **state) {
    static const struct {
        const char *name, *source;
        int64_t stride;
        bool grad_x;
    } kernels[] = { { "depthwise", fac_kernel_conv_depthwise, 1, false },
                    { "depthwise_2", fac_kernel_conv_depthwise, 2, false },
                    { "depthwise_by_x", fac_kernel_conv_depthwise, 2, true },
                    { "depthwise_by_w", fac_kernel_conv_depthwise_grad, 1, false },
                    { "pool", fac_kernel_pool_quads, 2, false },
                    { "pool_by_x", fac_kernel_pool_quads_grad, 2, true } };
    static fac_opencl o;
    const char *folder = getenv("FACULA_KERNELS");
    (void)state;
    o.limits.units = 132;
    o.limits.group = 1024;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (int bits = 16; bits <= 32; bits += 16) {
            const fac_dtype t = bits == 16 ? FAC_BF16 : FAC_F32;
            const fac_window w = { 56, 3, kernels[i].stride, 1, 1, 1, 56 / kernels[i].stride };
            fac_cl_tiling q = { .h = w,
                                .w = w,
                                .grad_x = kernels[i].grad_x,
                                .N = 64,
                                .C = 144,
                                .favourite = 2,
                                .ptx = true };
            const fac_cl_tail tail = { .from = t, .result = t };
            fac_text text = { 0 };
            assert_true(fac_cl_tiling_cut(&o, 0, &q));
            assert_int_equal(q.lanes, 12); /* 36 fours in three groups, none idle */
            fac_text_add(&text, "// -cl-single-precision-constant\n");
            fac_cl_tiling_text(&q, t, t, &text);
            assert_true(fac_cl_tail_text(&tail, true, &text));
            fac_text_add(&text, kernels[i].source);
            assert_false(text.failed);
            assert_non_null(strstr(text.s, "#define PTX\n"));
            if (folder) {
                char path[512];
                snprintf(path, sizeof path, "%s/%s_%d.cl", folder, kernels[i].name, bits);
                FILE *f = fopen(path, "w");
                if (!f || fputs(text.s, f) < 0 || fclose(f)) fail_msg("%s cannot be written", path);
            }
            fac_text_free(&text);
        }
}

/* Channels that fours do not divide, several of them in a group, and what a CPU does better are
 * left to others. */
static void what_it_leaves(void **state) {
    (void)state;
    if (!device) skip();
    assert_false(pose("conv/depthwise", "conv2d(f32[2,6,9,9], f32[6,1,3,3]) groups=6", 1e-5));
    assert_false(pose("conv/depthwise", "conv2d(f32[2,8,9,9], f32[8,2,3,3]) groups=4", 1e-5));
    assert_false(pose("conv/depthwise", "conv2d(f64[2,8,9,9], f64[8,1,3,3]) groups=8", 1e-5));
    assert_false(pose("pool/quads", "max_pool2d(f32[2,6,9,9]) kernel=3,3", 0));
    assert_false(pose("pool/quads", "max_pool2d(i32[2,8,9,9]) kernel=3,3", 0));
}

int main(void) {
    const char *only = getenv("FACULA_TEST"); /* a pattern, as *pools* */
    if (only) cmocka_set_test_filter(only);
    const struct CMUnitTest tests[] = { cmocka_unit_test(depthwise),     cmocka_unit_test(grouped),
                                        cmocka_unit_test(every_cut),     cmocka_unit_test(pools),
                                        cmocka_unit_test(strips),        cmocka_unit_test(texts),
                                        cmocka_unit_test(what_it_leaves) };
    return cmocka_run_group_tests_name("opencl depthwise", tests, open_device, close_device);
}
