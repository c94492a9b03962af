/* Convolutions by Winograd's transforms on the OpenCL device: fresh random shapes, and how exact
 * they are.  Skipped where no driver is. */
#include "opencl_products_check.h"

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
    of_largest = true;
    exact = false;
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
            const int images = two ? 4 : 2;
            channels_last = last;
            snprintf(text, sizeof text,
                     "conv2d_grad_w(f32[%d,7,88,93], f32[%d,18,88,93], f32[18,7,3,3]) pad=1,1,1,1",
                     images, images);
            if (two && !getenv("FACULA_ALL")) continue;
            /* sums of thousands of terms, where a direct sum that is not cut has 3e-6 */
            assert_true(try_text(sums[!two], text, false, two ? 1e-5 : 4 * winograd_error[1]));
        }
    variant = 0;
    channels_last = false;
    of_largest = false;
    exact = true;
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
    fac_gpu_limits *const limits = &fac_opencl_of(device)->limits, own = *limits;
    of_largest = true;
    exact = false;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        const uint64_t start = stream; /* the same contents for all */
        limits->gpu = of[k].gpu;
        limits->units = of[k].gpu ? UNITS : own.units;
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
    of_largest = false;
    exact = true;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(winograd),
        cmocka_unit_test(winograd_grad_w),
        cmocka_unit_test(winograd_is_accurate),
    };
    return cmocka_run_group_tests_name("opencl winograd", tests, open_device, close_device);
}
