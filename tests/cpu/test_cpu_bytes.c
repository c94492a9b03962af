/* Drawn convolutions of bytes: depthwise ones of all windows, and others whose last vector of
 * channels is not whole, alone and with other bytes added; each instruction set gives the bits of
 * the formulas. */
#include "problem_check.h"

static uint64_t seed, at;

static int below(int n) { return (int)(fac_random_bits(seed, 3, at++) % (uint64_t)n); }

static void same(const char *solver, const char *problem) {
    problem_everywhere((problem_check){ .seed = seed, .lo = -128, .hi = 127, .params = true },
                       solver, problem);
}

/* Types of x and w, scales and zero points; results that are cut off on each side. */
static const struct {
    const char *x, *w, *scales, *sum;
} kinds[] = { { "u8", "i8", "f32{0.021}, u8{131}, f32{0.013}, i8{0}, f32{0.57}, u8{119}",
                "f32{0.31}, u8{117}, f32{0.62}, u8{101}" },
              { "u8", "i8", "f32{0.021}, u8{3}, f32{0.013}, i8{0}, f32{0.07}, u8{0}",
                "f32{0.03}, u8{7}, f32{0.05}, u8{0}" },
              { "i8", "i8", "f32{0.021}, i8{-3}, f32{0.013}, i8{0}, f32{0.57}, i8{-9}",
                "f32{0.31}, i8{-11}, f32{0.3}, i8{9}" },
              { "i8", "u8", "f32{0.021}, i8{7}, f32{0.013}, u8{128}, f32{0.3}, i8{127}",
                "f32{0.5}, i8{-128}, f32{0.25}, i8{-128}" },
              { "u8", "u8", "f32{0.021}, u8{131}, f32{0.013}, u8{120}, f32{0.57}, u8{255}",
                "f32{0.5}, u8{0}, f32{0.25}, u8{3}" },
              { "i8", "i8", "f32{0.5}, i8{-128}, f32{0.5}, i8{5}, f32{0.001}, i8{-3}",
                "f32{1}, i8{127}, f32{0.001}, i8{0}" } };
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct window {
    int R, S, stride, dilation, H, W, pad;
} window;
static window drawn_window(int most) {
    window w = { 1 + below(most), 1 + below(most), 1 + below(3), 1 + below(2), 0, 0, 0 };
    if (below(2)) w = (window){ .R = 3, .S = 3, .stride = 1, .dilation = 1 };
    w.pad = below(3);
    w.H = w.dilation * (w.R - 1) + 1 + below(6);
    w.W = w.dilation * (w.S - 1) + 1 + below(12);
    return w;
}

static void depthwise(void **state) {
    (void)state;
    char text[PROBLEM_TEXT];
    for (int round = 0; round < 60; round++) {
        const window v = drawn_window(9);
        const int C = 2 + below(80), k = below(KINDS);
        snprintf(text, sizeof text,
                 "qlinear_conv(%s[%d,%d,%d,%d], %s[%d,1,%d,%d], i32[%d], %s) groups=%d "
                 "stride=%d,%d dilation=%d,%d pad=%d,%d,%d,%d",
                 kinds[k].x, 1 + below(2), C, v.H, v.W, kinds[k].w, C, v.R, v.S, C, kinds[k].scales,
                 C, v.stride, v.stride, v.dilation, v.dilation, v.pad, v.pad, below(3), below(3));
        same("qlinear_conv/bytes", text);
    }
}

static void ends_of_channels(void **state) {
    (void)state;
    char text[PROBLEM_TEXT];
    for (int round = 0; round < 40; round++) {
        const window v = drawn_window(3);
        const int C = 1 + below(40), K = 1 + below(70), k = below(KINDS), N = 1 + below(2);
        const int P = (v.H + 2 * v.pad - v.dilation * (v.R - 1) - 1) / v.stride + 1;
        const int Q = (v.W + 2 * v.pad - v.dilation * (v.S - 1) - 1) / v.stride + 1;
        char x[PROBLEM_TEXT / 2], how[PROBLEM_TEXT / 4];
        snprintf(x, sizeof x, "(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], i32[%d], %s", kinds[k].x, N, C,
                 v.H, v.W, kinds[k].w, K, C, v.R, v.S, K, kinds[k].scales);
        snprintf(how, sizeof how, "stride=%d,%d dilation=%d,%d pad=%d,%d,%d,%d", v.stride, v.stride,
                 v.dilation, v.dilation, v.pad, v.pad, v.pad, v.pad);
        snprintf(text, sizeof text, "qlinear_conv%s) %s", x, how);
        same("qlinear_conv/bytes", text);
        snprintf(text, sizeof text, "qlinear_conv_add%s, %s[%d,%d,%d,%d], %s) %s%s", x, kinds[k].x,
                 N, K, P, Q, kinds[k].sum, how, below(2) ? " z_first" : "");
        same("qlinear_conv_add/bytes", text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(depthwise),
                                        cmocka_unit_test(ends_of_channels) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
