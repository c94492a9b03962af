/* Matrix products and convolutions of the OpenCL device: every solver on fresh random shapes, with
 * bodies, operands plain or with random gaps (cases of the operators: test_opencl_solvers.c).  A
 * compiler that runs on the CPU takes its time, so only some are tried; FACULA_ALL=1 tries more.
 * Skipped where no driver is. */
#include "opencl_products_check.h"
#include "base/optional.h"

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
        if (kind == 1)
            snprintf(text, sizeof text, forms[kind], M, K, K, N);
        else
            snprintf(text, sizeof text, forms[kind], M, K, N, K, N);
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
            in[d] = 2 + below(8);
            kernel[d] = 1 + below(4);
            stride[d] = 1 + below(3);
            dilation[d] = 1 + below(2);
            const int span = (kernel[d] - 1) * dilation[d];
            front[d] = below(span / 2 + 1);
            back[d] = below(span / 2 + 1);
            more[d] = below(3);
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
                 fac_text_if(body == 2, ", f32["), fac_text_if(body == 2, y),
                 fac_text_if(body == 2, "]"), attrs, groups, bodies[body]);
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
    char own[sizeof o->limits.vendor];
    memcpy(own, o->limits.vendor, sizeof own);
    for (int v = 0; v < 6; v++)
        for (int k = 0; k < 4; k++)
            for (int way = 0; way < 2; way++) {
                if (!all && v != 0 && (way || below(6))) continue;
                snprintf(o->limits.vendor, sizeof o->limits.vendor, "%s", vendors[v]);
                o->limits.gpu = !way;
                const int n = fac_gpu_tile_variants(&o->limits, FAC_F32,
                                                    way ? FAC_GPU_VECTOR : FAC_GPU_TILED),
                          only = 1 + below(n), last = all ? n : only;
                int took = 0;
                assert_true(n > 1);
                for (variant = all ? 1 : only; variant <= last; variant++)
                    took +=
                        pose_text(k ? convolutions[way] : products[way], problems[k], false, 2e-5);
                assert_true(took > 0 || !all);
                variant = n + 1;
                assert_false(
                    pose_text(k ? convolutions[way] : products[way], problems[k], false, 2e-5));
                variant = 0;
            }
    memcpy(o->limits.vendor, own, sizeof own);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products),
        cmocka_unit_test(thin_products),
        cmocka_unit_test(thin_products_in_f16),
        cmocka_unit_test(random_convolutions),
        cmocka_unit_test(depthwise),
        cmocka_unit_test(phases_without_a_tap),
        cmocka_unit_test(random_transposed),
        cmocka_unit_test(pixels_alone),
        cmocka_unit_test(sums_of_nothing),
        cmocka_unit_test(tiles_of_tuning),
    };
    return cmocka_run_group_tests_name("opencl products", tests, open_device, close_device);
}
