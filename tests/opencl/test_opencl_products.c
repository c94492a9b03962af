/* Matrix products and convolutions of the OpenCL device: every solver on fresh random shapes, with
 * bodies, operands plain or with random gaps (cases of the operators: test_opencl_solvers.c).  A
 * compiler that runs on the CPU takes its time, so only some are tried; FACULA_ALL=1 tries more.
 * Skipped where no driver is. */
#include "opencl_solver_check.h"
#include "backends/opencl/product/gemm.h"
#include "backends/opencl/device/probe.h"

static int below(int n) { return (int)(fac_random_bits(seed, ++stream, 0) % (uint64_t)n); }

static const fac_solver *solver(const char *name) {
    for (const fac_solver *const *s = device->backend->solvers; *s; s++)
        if (!strcmp((*s)->name, name)) return *s;
    fail_msg("no solver %s", name);
    return NULL;
}

/* true: the solver took it. */
static bool pose_text(const char *name, const char *text, bool gaps, double tolerance) {
    fac_graph *g = NULL;
    const fac_case c = { text, -1, 1, tolerance };
    if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s: %s", text, err.text);
    if (getenv("FACULA_VERBOSE")) print_message("%s: %s%s\n", name, text, gaps ? " (gaps)" : "");
    const bool took = solve(solver(name), g->last, &c, gaps);
    fac_graph_free(g);
    return took;
}

static bool try_text(const char *name, const char *text, bool gaps, double tolerance) {
    fac_opencl_of(device)->limits.gpu = below(2); /* kernels shaped for a GPU, or for a cpu */
    return pose_text(name, text, gaps, tolerance);
}

static const char *const products[] = { "product/tile", "product/vector", "product/thin" };
static const char *const convolutions[] = { "conv/tile", "conv/vector", "conv/direct" };
enum { CONVOLUTIONS = 3, PRODUCTS = 3 };

/* Sizes about the edges of tiles, one, and what is divisible by four (read in vectors) or not. */
static int size(void) {
    static const int sizes[] = { 1, 3, 4, 5, 8, 15, 16, 17, 31, 33, 48, 63, 64, 65, 100, 128, 130 };
    return sizes[below(sizeof sizes / sizeof *sizes)];
}

static void random_products(void **state) {
    (void)state;
    if (!device) skip();
    const int count = getenv("FACULA_ALL") ? 40 : 4;
    for (int k = 0; k < count; k++) {
        char text[256];
        const int M = size(), N = size(), K = k % 4 ? size() : 2000 + below(9), B = 1 + below(3),
                  kind = below(5);
        const char *add = below(2) ? "[]" : "";
        if (kind == 0)
            snprintf(text, sizeof text, "matmul(f32[%d,%d], f32[%d,%d])", M, K, K, N);
        else if (kind == 1)
            snprintf(text, sizeof text, "matmul(f32[%d,3,%d,%d], f32[3,%d,%d])", B, M, K, K, N);
        else if (kind == 2)
            snprintf(text, sizeof text, "matmul(f32[%d,%d,%d], f32[%d,%d])", B, M, K, K, N);
        else if (kind == 3)
            snprintf(text, sizeof text, "linear(f32[%d,%d], f32[%d,%d], f32[%d])", M, K, N, K, N);
        else
            snprintf(text, sizeof text,
                     "gemm(f32[%d,%d], f32[%d,%d], f32%s) trans_a trans_b beta=0.5", K, M, N, K,
                     *add ? add : "[1]");
        const double tolerance = 1e-5 * (1 + K / 200.0);
        for (int i = 0; i < 2; i++) assert_true(try_text(products[i], text, below(2), tolerance));
    }
}

/* Rows that are few, b in either direction, sizes that vectors and teams do not divide. */
static void thin_products(void **state) {
    static const char *const bodies[] = { "", " {relu}", " {add(_, x1) relu}" };
    (void)state;
    if (!device) skip();
    const int count = getenv("FACULA_ALL") ? 60 : 5;
    for (int k = 0; k < count; k++) {
        char text[256], extra[48] = "";
        const int M = 1 + below(8), N = size(), K = below(2) ? size() : 1000 + below(5),
                  body = below(3);
        if (body == 2) snprintf(extra, sizeof extra, ", f32[%d,%d]", M, N);
        if (k % 3 == 0)
            snprintf(text, sizeof text, "linear(f32[%d,%d], f32[%d,%d], f32[%d]%s)%s", M, K, N, K,
                     N, extra, bodies[body]);
        else if (k % 3 == 1)
            snprintf(text, sizeof text, "matmul(f32[%d,%d], f32[%d,%d]%s)%s", M, K, K, N, extra,
                     bodies[body]);
        else
            snprintf(text, sizeof text, "matmul(f32[3,2,%d,%d], f32[3,1,%d,%d])", (M + 1) / 2, K, K,
                     N);
        assert_true(try_text("product/thin", text, false, 1e-5 * (1 + K / 200.0)));
    }
    assert_true(try_text("product/thin", "gemm(f32[64,4], f32[40,64], f32[40]) trans_a trans_b",
                         false, 2e-5));
    /* more than a second cache holds, and ends that neither vectors nor columns of an item divide
     */
    if (fac_cl_has_path(fac_opencl_of(device), FAC_CL_MMA)) {
        fac_opencl_of(device)->limits.gpu = true;
        assert_true(pose_text(
            "product/thin", "linear(f32[1,3124], f32[4107,3124], f32[4107]) {relu}", false, 1e-4));
        assert_true(pose_text("product/thin", "linear(f32[3,6412], f32[2051,6412], f32[2051])",
                              false, 1e-4));
    }
}

/* Few rows times a matrix in f16, whose rows f16 could not hold as they are, against the largest
 * result: TF32's error. */
static void thin_products_in_f16(void **state) {
    (void)state;
    if (!device) skip();
    static const double ranges[] = { 1, 1e-6, 3e5 };
    const int count = getenv("FACULA_ALL") ? 60 : 6;
    fac_opencl_of(device)->limits.gpu = of_largest = true;
    for (int k = 0; k < count; k++) {
        char text[256];
        const int M = 1 + below(8), N = 32 + size(), K = 4 * (k % 2 ? size() : 250 + below(9)),
                  kind = below(3);
        const char *const forms[] = { "linear(f32[%d,%d], f32[%d,%d])",
                                      "matmul(f32[%d,%d], f32[%d,%d])",
                                      "linear(f32[%d,%d], f32[%d,%d], f32[%d]) {relu}" };
        snprintf(text, sizeof text, forms[kind], M, K, kind == 1 ? K : N, kind == 1 ? N : K, N);
        fac_graph *g = NULL;
        const double most = ranges[kind == 2 ? 0 : k % 3];
        const fac_case c = { text, -most, most, 1e-3 };
        if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s: %s", text, err.text);
        for (precision = FAC_PRECISION_HIGH; precision <= FAC_PRECISION_MEDIUM; precision++)
            assert_true(solve(solver("product/thin_f16"), g->last, &c, false));
        precision = FAC_PRECISION_HIGHEST;
        assert_false(solve(solver("product/thin_f16"), g->last, &c, false));
        precision = FAC_PRECISION_DEFAULT;
        fac_graph_free(g);
    }
    of_largest = false;
}

/* A dilation of two after a stride of two meets every other line only: the phases between see no
 * tap. */
static void phases_without_a_tap(void **state) {
    (void)state;
    const char *text = "conv2d_grad_x(f32[2,57,6,3], f32[57,5,2,4], f32[2,15,13,6]) stride=2,3 "
                       "pad=0,1,0,3 dilation=2,1 groups=3";
    if (!device) skip();
    for (int i = 0; i < CONVOLUTIONS; i++)
        assert_true(try_text(convolutions[i], text, false, 2e-5));
}

/* A convolution and both of its gradients. */
static void one_convolution(void) {
    static const char *const bodies[] = { "", " {relu}", " {add(_, x1) relu}" };
    const int body = below(3);
    char attrs[128], text[320], extra[64] = "";
    const int groups = below(3) ? 1 : 1 + below(3), C = groups * (1 + below(9)),
              K = groups * (1 + below(20)), N = 1 + below(3);
    const int R = 1 + below(4), S = 1 + below(4), dr = 1 + below(2), ds = 1 + below(2),
              sr = 1 + below(3), ss = 1 + below(3);
    const int pad[4] = { below(R), below(S), below(R + 1), below(S + 1) };
    const int H = (R - 1) * dr + 1 + below(12), W = (S - 1) * ds + 1 + below(20);
    const int P = (H + pad[0] + pad[2] - (R - 1) * dr - 1) / sr + 1,
              Q = (W + pad[1] + pad[3] - (S - 1) * ds - 1) / ss + 1;
    if (body == 2) snprintf(extra, sizeof extra, ", f32[%d,%d,%d,%d]", N, K, P, Q);
    snprintf(attrs, sizeof attrs, "stride=%d,%d pad=%d,%d,%d,%d dilation=%d,%d groups=%d", sr, ss,
             pad[0], pad[1], pad[2], pad[3], dr, ds, groups);
    for (int i = 0; i < CONVOLUTIONS; i++) {
        snprintf(text, sizeof text, "conv2d(f32[%d,%d,%d,%d], f32[%d,%d,%d,%d], f32[%d]%s) %s%s", N,
                 C, H, W, K, C / groups, R, S, K, extra, attrs, bodies[body]);
        assert_true(try_text(convolutions[i], text, below(2), 1e-5));
        snprintf(text, sizeof text,
                 "conv2d_grad_x(f32[%d,%d,%d,%d], f32[%d,%d,%d,%d], f32[%d,%d,%d,%d]) %s", N, K, P,
                 Q, K, C / groups, R, S, N, C, H, W, attrs);
        assert_true(try_text(convolutions[i], text, below(2), 2e-5));
        snprintf(text, sizeof text,
                 "conv2d_grad_w(f32[%d,%d,%d,%d], f32[%d,%d,%d,%d], f32[%d,%d,%d,%d]) %s", N, C, H,
                 W, N, K, P, Q, K, C / groups, R, S, attrs);
        assert_true(try_text(convolutions[i], text, below(2), 4e-5));
    }
}

/* Depthwise ones, also several rows to a channel: strips that do not come out even, columns in the
 * order of their strides. */
static void depthwise(void **state) {
    static const char *const bodies[] = { "", " {relu}", " {add(_, x1) relu}" };
    (void)state;
    if (!device) skip();
    const int count = getenv("FACULA_ALL") ? 30 : 4;
    for (int k = 0; k < count; k++) {
        char attrs[128], text[320], extra[64] = "";
        const int groups = 1 + below(9), K = groups * (1 + !below(3)), N = 1 + below(2),
                  body = below(3);
        const int R = 1 + below(5), S = 1 + below(5), dr = 1 + below(2), ds = 1 + below(3),
                  sr = 1 + below(2), ss = 1 + below(3);
        const int pad[4] = { below(R + 1), below(2 * S), below(R + 1), below(2 * S) };
        const int H = (R - 1) * dr + 1 + below(90), W = (S - 1) * ds + 1 + below(k % 2 ? 12 : 150);
        const int P = (H + pad[0] + pad[2] - (R - 1) * dr - 1) / sr + 1,
                  Q = (W + pad[1] + pad[3] - (S - 1) * ds - 1) / ss + 1;
        if (body == 2) snprintf(extra, sizeof extra, ", f32[%d,%d,%d,%d]", N, K, P, Q);
        snprintf(attrs, sizeof attrs, "stride=%d,%d pad=%d,%d,%d,%d dilation=%d,%d groups=%d", sr,
                 ss, pad[0], pad[1], pad[2], pad[3], dr, ds, groups);
        snprintf(text, sizeof text, "conv2d(f32[%d,%d,%d,%d], f32[%d,1,%d,%d], f32[%d]%s) %s%s", N,
                 groups, H, W, K, R, S, K, extra, attrs, bodies[body]);
        assert_true(try_text("conv/direct", text, below(2), 1e-5));
        snprintf(attrs, sizeof attrs, "pad=%d,%d,%d,%d dilation=%d,%d groups=%d", pad[0], pad[1],
                 pad[2], pad[3], dr, ds, groups);
        snprintf(text, sizeof text,
                 "conv2d_grad_x(f32[%d,%d,%d,%d], f32[%d,1,%d,%d], f32[%d,%d,%d,%d]) %s", N, groups,
                 H + pad[0] + pad[2] - (R - 1) * dr, W + pad[1] + pad[3] - (S - 1) * ds, groups, R,
                 S, N, groups, H, W, attrs);
        assert_true(try_text("conv/direct", text, below(2), 2e-5));
    }
}

static void random_convolutions(void **state) {
    (void)state;
    if (!device) skip();
    const int count = getenv("FACULA_ALL") ? 30 : 3;
    for (int k = 0; k < count; k++) one_convolution();
}

/* Pads that cut off, output_pad that adds rows which no tap may reach, groups, dilation; with a
 * depth now and then. */
static void random_transposed(void **state) {
    static const char *const bodies[] = { "", " {relu}", " {add(_, x1) relu}" };
    (void)state;
    if (!device) skip();
    const int count = getenv("FACULA_ALL") ? 30 : 2;
    for (int k = 0; k < count; k++) {
        const int groups = 1 + below(3), C = groups * (1 + below(9)), K = groups * (1 + below(9)),
                  N = 1 + below(2), rank = 2 + !below(4);
        int in[3], kernel[3], stride[3], dilation[3], front[3], back[3], more[3], out[3];
        char x[64], w[64], y[64], attrs[256], text[512];
        int nx = snprintf(x, sizeof x, "%d,%d", N, C),
            nw = snprintf(w, sizeof w, "%d,%d", C, K / groups),
            ny = snprintf(y, sizeof y, "%d,%d", N, K);
        for (int d = 0; d < rank; d++) {
            in[d] = 2 + below(8), kernel[d] = 1 + below(4), stride[d] = 1 + below(3),
            dilation[d] = 1 + below(2);
            const int span = (kernel[d] - 1) * dilation[d];
            front[d] = below(span / 2 + 1), back[d] = below(span / 2 + 1), more[d] = below(3);
            out[d] = (in[d] - 1) * stride[d] + span + 1 + more[d] - front[d] - back[d];
            nx += snprintf(x + nx, sizeof x - (size_t)nx, ",%d", in[d]);
            nw += snprintf(w + nw, sizeof w - (size_t)nw, ",%d", kernel[d]);
            ny += snprintf(y + ny, sizeof y - (size_t)ny, ",%d", out[d]);
        }
        if (rank == 2)
            snprintf(attrs, sizeof attrs,
                     "stride=%d,%d pad=%d,%d,%d,%d dilation=%d,%d output_pad=%d,%d", stride[0],
                     stride[1], front[0], front[1], back[0], back[1], dilation[0], dilation[1],
                     more[0], more[1]);
        else
            snprintf(attrs, sizeof attrs,
                     "stride=%d,%d,%d pad=%d,%d,%d,%d,%d,%d dilation=%d,%d,%d output_pad=%d,%d,%d",
                     stride[0], stride[1], stride[2], front[0], front[1], front[2], back[0],
                     back[1], back[2], dilation[0], dilation[1], dilation[2], more[0], more[1],
                     more[2]);
        const int body = below(3);
        snprintf(text, sizeof text,
                 "conv_transpose%dd(f32[%s], f32[%s], f32[%d]%s%s%s) %s groups=%d%s", rank, x, w, K,
                 body == 2 ? ", f32[" : "", body == 2 ? y : "", body == 2 ? "]" : "", attrs, groups,
                 bodies[body]);
        /* what is added must lie as the result does where that is found by a table */
        for (int i = 0; i < CONVOLUTIONS; i++)
            assert_true(try_text(convolutions[i], text, body != 2 && below(2), 2e-5));
    }
}

/* Gradients by weights whose image is a matrix: terms of several images, in fours or not, along the
 * image or across it. */
static void pixels_alone(void **state) {
    static const char *const texts[] = {
        "conv2d_grad_w(f32[3,20,6,10], f32[3,36,6,10], f32[36,20,1,1])",
        "conv2d_grad_w(f32[5,7,3,5], f32[5,9,3,5], f32[9,7,1,1])",
        "conv2d_grad_w(f32[2,68,18,18], f32[2,12,18,18], f32[12,34,1,1]) groups=2",
        "conv3d_grad_w(f32[3,6,2,3,4], f32[3,5,2,3,4], f32[5,6,1,1,1])",
        "conv2d_grad_w(f16[3,20,6,6], f16[3,8,6,6], f16[8,20,1,1])"
    };
    (void)state;
    if (!device) skip();
    const bool all = getenv("FACULA_ALL");
    for (int k = 0; k < 5; k++)
        for (int way = 0; way < 2; way++)
            for (int how = 0; how < 3; how++) { /* plain, with gaps, channels side by side */
                if (!all && how != k % 3) continue;
                channels_last = how == 2;
                fac_opencl_of(device)->limits.gpu = !way;
                assert_true(pose_text(convolutions[way], texts[k], how == 1, k == 4 ? 8e-3 : 2e-5));
            }
    channels_last = false;
}

static const double winograd_error[] = { 1e-6, 4e-6 }; /* of the largest result: 2x2, 4x4 */

/* 3 x 3 of stride 1 through Winograd's points: tiles that stick out, groups, in slices of images
 * too.  The outputs of a tile share their rounding errors. */
static const char *const points[] = { "conv/winograd_2x2", "conv/winograd_4x4" };

static void winograd(void **state) {
    static const char *const bodies[] = { "", " {relu}", " {add(_, x1) relu}" };
    (void)state;
    if (!device) skip();
    const int count = getenv("FACULA_ALL") ? 30 : 2;
    of_largest = true;
    for (int k = 0; k < count; k++) {
        char attrs[96], text[320], extra[64] = "";
        const int groups = 1 + below(2), C = groups * (1 + below(20)), K = groups * (1 + below(20)),
                  N = 1 + below(3), body = below(3);
        const int pad[4] = { below(3), below(3), below(3), below(3) }, H = 3 + below(14),
                  W = k % 2 ? 4 * (1 + below(4)) : 3 + below(14);
        const int P = H + pad[0] + pad[2] - 2, Q = W + pad[1] + pad[3] - 2;
        if (body == 2) snprintf(extra, sizeof extra, ", f32[%d,%d,%d,%d]", N, K, P, Q);
        snprintf(attrs, sizeof attrs, "pad=%d,%d,%d,%d groups=%d", pad[0], pad[1], pad[2], pad[3],
                 groups);
        for (int i = 0; i < 2; i++) {
            exact = !i;
            snprintf(text, sizeof text, "conv2d(f32[%d,%d,%d,%d], f32[%d,%d,3,3], f32[%d]%s) %s%s",
                     N, C, H, W, K, C / groups, K, extra, attrs, bodies[body]);
            assert_true(try_text(points[i], text, false, winograd_error[i]));
            snprintf(text, sizeof text,
                     "conv2d_grad_x(f32[%d,%d,%d,%d], f32[%d,%d,3,3], f32[%d,%d,%d,%d]) %s", N, K,
                     P, Q, K, C / groups, N, C, H, W, attrs);
            assert_true(try_text(points[i], text, false, winograd_error[i]));
        }
    }
    exact = false;
    /* one image a slice on a cpu */
    assert_true(try_text(points[1], "conv2d(f32[3,16,88,93], f32[18,16,3,3]) pad=1,1,1,1", false,
                         winograd_error[1]));
    assert_true(try_text(points[1],
                         "conv_transpose2d(f32[2,5,6,7], f32[5,3,3,3], f32[3]) pad=1,1,1,1 {relu}",
                         false, winograd_error[1]));
    of_largest = false;
    exact = true;
    assert_false(
        try_text(points[1], "conv2d(f32[1,4,9,9], f32[4,4,3,3])", false, winograd_error[1]));
}

/* Gradients by weights through the same points: any pads, groups, either operand with its tiles or
 * its channels side by side, in slices too, whose sums are added up. */
static const char *const sums[] = { "conv/winograd_grad_w_2x2", "conv/winograd_grad_w_4x4" };

static void winograd_grad_w(void **state) {
    (void)state;
    if (!device) skip();
    const int count = getenv("FACULA_ALL") ? 30 : 3;
    char text[320];
    of_largest = true, exact = false;
    for (int k = 0; k < count; k++) {
        const int groups = 1 + below(2), C = groups * (1 + below(20)), K = groups * (1 + below(20)),
                  N = 1 + below(3);
        const int pad[4] = { below(4), below(4), below(4), below(4) }, H = 3 + below(14),
                  W = 3 + below(14);
        const int P = H + pad[0] + pad[2] - 2, Q = W + pad[1] + pad[3] - 2;
        for (int i = 0; i < 2; i++) {
            channels_last = below(2);
            snprintf(text, sizeof text,
                     "conv2d_grad_w(f32[%d,%d,%d,%d], f32[%d,%d,%d,%d], f32[%d,%d,3,3]) "
                     "pad=%d,%d,%d,%d groups=%d",
                     N, C, H, W, N, K, P, Q, K, C / groups, pad[0], pad[1], pad[2], pad[3], groups);
            assert_true(try_text(sums[i], text, !channels_last && below(2), winograd_error[i]));
        }
    }
    for (int last = 0; last < 2; last++) /* two slices and three */
        for (variant = 3; variant > 1; variant--) {
            const bool two = variant == 2;
            channels_last = last;
            snprintf(text, sizeof text,
                     "conv2d_grad_w(f32[%d,7,88,93], f32[%d,18,88,93], f32[18,7,3,3]) pad=1,1,1,1",
                     two ? 4 : 2, two ? 4 : 2);
            if (two && !getenv("FACULA_ALL")) continue;
            /* sums of thousands of terms, where a direct sum that is not cut has 3e-6 */
            assert_true(try_text(sums[!two], text, false, two ? 1e-5 : 4 * winograd_error[1]));
        }
    variant = 0, channels_last = false, of_largest = false, exact = true;
    for (int i = 0; i < 2; i++)
        assert_false(try_text(sums[i], "conv2d_grad_w(f32[1,4,9,9], f32[1,4,7,7], f32[4,4,3,3])",
                              false, winograd_error[i]));
}

/* The rules of accuracy: the largest error of a layer is at most so many times that of the direct
 * sum on the same data, of gradients by weights of the direct sum in the same way, on a GPU cut for
 * as many units as a large one has. */
static void winograd_is_accurate(void **state) {
    enum { UNITS = 132 };
    static const struct {
        const char *direct, *const *points, *layer;
        bool gpu;
        double times[2];
    } of[] = { { "conv/direct",
                 points,
                 "conv2d(f32[1,64,28,28], f32[48,64,3,3]) pad=1,1,1,1",
                 false,
                 { 1, 4 } },
               { "conv/direct",
                 points,
                 "conv2d(f32[1,256,14,14], f32[32,256,3,3]) pad=1,1,1,1",
                 false,
                 { 1, 4 } },
               { "conv/tile",
                 sums,
                 "conv2d_grad_w(f32[2,24,28,28], f32[2,20,28,28], f32[20,24,3,3]) pad=1,1,1,1",
                 true,
                 { 4, 16 } },
               { "conv/vector",
                 sums,
                 "conv2d_grad_w(f32[2,24,28,28], f32[2,20,28,28], f32[20,24,3,3]) pad=1,1,1,1",
                 false,
                 { 4, 8 } },
               { "conv/vector",
                 sums,
                 "conv2d_grad_w(f32[2,16,56,56], f32[2,24,56,56], f32[24,16,3,3]) pad=1,1,1,1",
                 false,
                 { 4, 8 } } };
    (void)state;
    if (!device) skip();
    fac_cl_limits *const limits = &fac_opencl_of(device)->limits, own = *limits;
    of_largest = true, exact = false;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        const uint64_t start = stream; /* the same contents for all */
        limits->gpu = of[k].gpu, limits->units = of[k].gpu ? UNITS : own.units;
        assert_true(pose_text(of[k].direct, of[k].layer, false, 1e-5));
        const double direct = worst;
        for (int i = 0; i < 2; i++) {
            stream = start;
            assert_true(pose_text(of[k].points[i], of[k].layer, false, 1e-5));
            if (getenv("FACULA_VERBOSE")) print_message("%g: %.2f times\n", worst, worst / direct);
            if (worst > of[k].times[i] * direct)
                fail_msg("%s: %s has an error of %g, the direct sum %g", of[k].points[i],
                         of[k].layer, worst, direct);
        }
    }
    *limits = own;
    of_largest = false, exact = true;
}

/* The tiles that tuning tries, for every class of devices: some of them, FACULA_ALL=1 all. */
static void tiles_of_tuning(void **state) {
    static const char *const vendors[] = { "NVIDIA", "AMD", "Intel", "Apple", "ARM", "nobody" };
    static const char *const problems[] = {
        "matmul(f32[2,70,333], f32[333,131])",
        "conv2d(f32[2,20,13,17], f32[37,20,3,3], f32[37]) pad=1,1,1,1 {relu}",
        "conv2d_grad_w(f32[2,20,13,17], f32[2,37,13,17], f32[37,20,3,3]) pad=1,1,1,1",
        "conv2d_grad_w(f32[2,20,12,17], f32[2,37,12,17], f32[37,20,1,1])"
    };
    (void)state;
    if (!device) skip();
    fac_opencl *o = fac_opencl_of(device);
    const bool all = getenv("FACULA_ALL") != NULL;
    char own[sizeof o->place.vendor];
    memcpy(own, o->place.vendor, sizeof own);
    for (int v = 0; v < 6; v++)
        for (int k = 0; k < 4; k++)
            for (int way = 0; way < 2; way++) {
                if (!all && v != 0 && (way || below(6))) continue;
                snprintf(o->place.vendor, sizeof o->place.vendor, "%s", vendors[v]);
                o->limits.gpu = !way;
                const int n = fac_cl_tile_variants(o, FAC_F32, way ? FAC_CL_VECTOR : FAC_CL_TILED),
                          only = 1 + below(n);
                int took = 0;
                assert_true(n > 1);
                for (variant = all ? 1 : only; variant <= (all ? n : only); variant++)
                    took +=
                        pose_text(k ? convolutions[way] : products[way], problems[k], false, 2e-5);
                assert_true(took > 0 || !all);
                variant = n + 1;
                assert_false(
                    pose_text(k ? convolutions[way] : products[way], problems[k], false, 2e-5));
                variant = 0;
            }
    memcpy(o->place.vendor, own, sizeof own);
}

/* Sums of nothing are zero, and biases are added all the same. */
static void sums_of_nothing(void **state) {
    static const char *const texts[] = { "matmul(f32[4,0], f32[0,3])",
                                         "linear(f32[2,0], f32[3,0], f32[3])",
                                         "gemm(f32[3,0], f32[0,2], f32[2])" };
    (void)state;
    if (!device) skip();
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < PRODUCTS; i++)
            assert_true(try_text(products[i], texts[k], false, 1e-6));
    for (int i = 0; i < CONVOLUTIONS; i++)
        assert_true(try_text(convolutions[i],
                             "conv2d_grad_w(f32[0,3,8,8], f32[0,4,6,6], f32[4,3,3,3])", false,
                             1e-6));
    assert_true(try_text("conv/direct", "conv2d(f32[2,0,5,5], f32[4,0,3,3], f32[4])", false, 1e-6));
}

int main(void) {
    const char *only = getenv("FACULA_TEST"); /* a pattern, as *winograd* */
    if (only) cmocka_set_test_filter(only);
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_products),
                                        cmocka_unit_test(thin_products),
                                        cmocka_unit_test(thin_products_in_f16),
                                        cmocka_unit_test(random_convolutions),
                                        cmocka_unit_test(depthwise),
                                        cmocka_unit_test(phases_without_a_tap),
                                        cmocka_unit_test(random_transposed),
                                        cmocka_unit_test(pixels_alone),
                                        cmocka_unit_test(sums_of_nothing),
                                        cmocka_unit_test(tiles_of_tuning),
                                        cmocka_unit_test(winograd),
                                        cmocka_unit_test(winograd_grad_w),
                                        cmocka_unit_test(winograd_is_accurate) };
    return cmocka_run_group_tests_name("opencl products", tests, open_device, close_device);
}
