/* Products and convolutions of bytes with AMX forced, small ones too: the bits of the formulas, on
 * sizes around those of a tile, on drawn ones, with bytes of each sign. */
#include "problem_check.h"
#include "backends/cpu/bytes/amx.h"
#include "backends/cpu/bytes/bytes.h"

static uint64_t seed;

static void skip_without(void) {
    if (fac_cpu_amx()) return;
    print_message("skipped: this processor, system or build has no AMX\n");
    skip();
}

static void same(const char *solver, const char *problem) {
    problem_everywhere((problem_check){ .seed = seed, .lo = -128, .hi = 127, .params = true },
                       solver, problem);
}

/* Types of x and w, and their scales and zero points. */
static const struct {
    const char *x, *w, *scales, *zeros;
} kinds[] = {
    { "u8", "i8", "f32{0.021}, u8{131}, f32{0.013}, i8{0}, f32{2.57}, u8{119}", "u8{131}, i8{0}" },
    { "i8", "i8", "f32{0.021}, i8{-3}, f32{0.013}, i8{0}, f32{2.57}, i8{-9}", "i8{-3}, i8{5}" },
    { "u8", "u8", "f32{0.021}, u8{131}, f32{0.013}, u8{120}, f32{2.57}, u8{119}",
      "u8{2}, u8{128}" },
    { "i8", "u8", "f32{0.021}, i8{7}, f32{0.013}, u8{128}, f32{2.57}, i8{-9}", "i8{7}, u8{0}" }
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- what is chosen ---- */

static const char *chosen(const char *wish) {
    fac_device *d;
    fac_error err = { 0 };
    if (wish)
        setenv("FACULA_BYTES", wish, 1);
    else
        unsetenv("FACULA_BYTES");
    if (fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &d, &err))
        fail_msg("%s", err.text);
    const char *name = ((fac_cpu *)d)->bytes->name;
    fac_device_free(d);
    setenv("FACULA_BYTES", "amx", 1);
    return name;
}

static void the_switch_leaves_it_out(void **state) {
    (void)state;
    assert_string_not_equal(chosen("vnni"), "amx");
    assert_string_not_equal(chosen("widened"), "amx");
    skip_without();
    assert_string_equal(chosen("amx"), "amx");
    assert_string_equal(chosen(NULL), "amx");
    assert_string_equal(chosen("vnni"), "vnni");
    assert_string_equal(chosen("widened"), "widened");
}

/* ---- sizes around those of tiles: 16 pixels, 64 bytes of x, 32 columns ---- */

static void products(void **state) {
    (void)state;
    static const int sizes[][3] = { { 1, 4, 1 },    { 1, 64, 33 },   { 2, 60, 16 },
                                    { 3, 63, 17 },  { 15, 65, 31 },  { 16, 64, 32 },
                                    { 17, 68, 33 }, { 31, 127, 48 }, { 32, 128, 64 },
                                    { 33, 132, 5 }, { 70, 190, 9 },  { 5, 1, 40 } };
    char text[PROBLEM_TEXT];
    skip_without();
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int k = 0; k < KINDS; k++) {
            const int *n = sizes[s];
            snprintf(text, sizeof text, "matmul_integer(%s[%d,%d], %s[%d,%d], %s)", kinds[k].x,
                     n[0], n[1], kinds[k].w, n[1], n[2], kinds[k].zeros);
            same("matmul_integer/bytes", text);
            snprintf(text, sizeof text, "qlinear_matmul(%s[%d,%d], %s[%d,%d], i32[%d], %s)",
                     kinds[k].x, n[0], n[1], kinds[k].w, n[1], n[2], n[2], kinds[k].scales);
            same("qlinear_matmul/bytes", text);
        }
    same("matmul_integer/bytes", "matmul_integer(u8[3,20,70], i8[3,70,40])");
    same("matmul_integer/bytes", "matmul_integer(i8[2,2,17,66], u8[2,2,66,3], i8{4}, u8[3])");
}

static void convolutions(void **state) {
    (void)state;
    static const char *const sizes[] = { "[1,3,23,37], %s[5,3,7,7]|stride=2,2 pad=3,3,3,3",
                                         "[2,24,9,17], %s[33,24,3,3]|pad=1,1,1,1",
                                         "[1,72,7,7], %s[64,72,1,1]|",
                                         "[1,20,34,5], %s[40,20,1,1]|stride=2,2",
                                         "[1,68,5,18], %s[17,68,2,3]|pad=0,2,1,0",
                                         "[1,36,17,9], %s[9,36,3,3]|dilation=2,3 pad=2,3,2,3",
                                         "[2,160,9,9], %s[8,80,3,3]|groups=2 pad=1,1,1,1",
                                         "[1,6,5,5], %s[12,1,3,3]|groups=6",
                                         "[1,12,6,7], %s[12,1,3,3]|groups=12 pad=1,1,1,1" };
    char shape[200], text[PROBLEM_TEXT];
    skip_without();
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int k = 0; k < KINDS; k++) {
            const char *bar = strchr(sizes[s], '|');
            snprintf(shape, sizeof shape, sizes[s], kinds[k].w);
            *strchr(shape, '|') = 0;
            snprintf(text, sizeof text, "qlinear_conv(%s%s, -, %s) %s", kinds[k].x, shape,
                     kinds[k].scales, bar + 1);
            same("qlinear_conv/bytes", text);
            snprintf(text, sizeof text, "conv_integer(%s%s, -, %s) %s", kinds[k].x, shape,
                     kinds[k].zeros, bar + 1);
            same("conv_integer/bytes", text);
        }
}

static void sums(void **state) {
    (void)state;
    skip_without();
    same("qlinear_conv_add/bytes",
         "qlinear_conv_add(u8[1,68,7,9], i8[45,68,1,1], i32[45], f32{0.021}, u8{131}, f32{0.013}, "
         "i8{0}, f32{2.57}, u8{119}, u8[1,45,7,9], f32{0.31}, u8{117}, f32{0.62}, u8{101})");
    same("qlinear_conv_add/bytes",
         "qlinear_conv_add(i8[2,20,9,19], i8[64,20,3,3], -, f32{0.021}, i8{-3}, f32{0.013}, i8{2}, "
         "f32{2.57}, i8{-9}, i8[2,64,9,19], f32{0.31}, i8{-11}, f32{0.3}, i8{9}) pad=1,1,1,1 "
         "z_first");
}

/* ---- drawn ---- */

static int below(uint64_t *at, int n) {
    return (int)(fac_random_bits(seed, 3, (*at)++) % (uint64_t)n);
}

static void drawn(void **state) {
    (void)state;
    uint64_t at = 0;
    char text[PROBLEM_TEXT];
    skip_without();
    for (int round = 0; round < 60; round++) {
        const int groups = below(&at, 4) ? 1 : 2, C = 1 + below(&at, 150), K = 1 + below(&at, 70);
        const int R = 1 + below(&at, 3), S = 1 + below(&at, 3), dilation = 1 + below(&at, 2);
        const int H = dilation * (R - 1) + 1 + below(&at, 7),
                  W = dilation * (S - 1) + 1 + below(&at, 40);
        const int k = below(&at, KINDS), pad = below(&at, 2), stride = 1 + below(&at, 2);
        snprintf(text, sizeof text,
                 "qlinear_conv(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], i32[%d], %s) groups=%d "
                 "stride=%d,%d dilation=%d,%d pad=%d,%d,%d,%d",
                 kinds[k].x, 1 + below(&at, 2), groups * C, H, W, kinds[k].w, groups * K, C, R, S,
                 groups * K, kinds[k].scales, groups, stride, stride, dilation, dilation, pad, pad,
                 pad, pad);
        same("qlinear_conv/bytes", text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_switch_leaves_it_out),
                                        cmocka_unit_test(products), cmocka_unit_test(convolutions),
                                        cmocka_unit_test(sums), cmocka_unit_test(drawn) };
    seed = fresh_seed();
    setenv("FACULA_BYTES", "amx", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
