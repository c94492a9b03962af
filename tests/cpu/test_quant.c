/* Products, convolutions and pools of bytes: each solver, with every instruction set, gives the
 * bits of the formulas, on fresh random numbers, odd sizes and edges; and floats between
 * dequantize_linear and quantize_linear become these ops. */
#include "problem_check.h"
#include "backends/cpu/bytes/bytes.h"

static uint64_t seed;

static void same(const char *solver, const char *problem, double lo, double hi) {
    problem_everywhere((problem_check){ .seed = seed, .lo = lo, .hi = hi, .params = true }, solver,
                       problem);
}

/* Scales and zero points of x, w and y; "8": bytes that both signs have. */
#define U8S8 ", f32{0.021}, u8{131}, f32{0.013}, i8{0}, f32{0.57}, u8{119})"
#define S8S8 ", f32{0.021}, i8{-3}, f32{0.013}, i8{0}, f32{0.57}, i8{-9})"
#define U8U8 ", f32{0.021}, u8{131}, f32{0.013}, u8{120}, f32{0.57}, u8{119})"
#define WIDE ", f32{0.5}, u8{0}, f32{0.5}, i8{0}, f32{0.001}, u8{3})"

static void convolutions(void **state) {
    (void)state;
    static const char *const sizes[] = {
        "[1,3,23,21], %s[5,3,7,7], i32[5]|stride=2,2 pad=3,3,3,3",
        "[2,8,9,8], %s[33,8,3,3], i32[33]|pad=1,1,1,1",
        "[1,64,7,7], %s[64,64,1,1], -|",
        "[1,20,14,15], %s[40,20,1,1], i32[40]|stride=2,2",
        "[1,7,5,6], %s[3,7,2,3], -|pad=0,2,1,0",
        "[1,12,17,9], %s[9,12,3,3], i32[9]|dilation=2,3 pad=2,3,2,3",
        "[2,12,9,9], %s[8,3,3,3], i32[8]|groups=4 pad=1,1,1,1",
        "[1,6,5,5], %s[12,1,3,3], i32[12]|groups=6",
        "[1,33,9,11], %s[33,1,3,3], i32[33]|groups=33 pad=1,1,1,1",
        "[2,32,12,10], %s[32,1,5,5], -|groups=32 stride=2,2 pad=2,2,2,2",
        "[1,16,8,8], %s[16,1,3,3], -|groups=16",
        "[1,80,6,9], %s[80,1,3,3], i32[80]|groups=80 pad=1,1,1,1",
        "[1,144,5,5], %s[144,1,3,3], i32[144]|groups=144 pad=1,1,1,1 stride=2,2",
        "[1,4,3,1], %s[17,4,2,1], -|pad=0,0,1,0",
        "[1,4,2,2], %s[16,4,2,1], -|pad=0,0,1,0",
        "[1,4,3,3], %s[48,4,2,1], -|pad=0,0,1,0",
        "[1,4,3,4], %s[24,4,2,1], -|pad=0,0,1,0",
        "[1,8,3,6], %s[15,8,2,1], -|pad=0,0,1,0"
    };
    static const struct {
        const char *x, *w, *scales;
    } kinds[] = {
        { "u8", "i8", U8S8 }, { "i8", "i8", S8S8 }, { "u8", "u8", U8U8 }, { "u8", "i8", WIDE }
    };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            char shape[120], text[400];
            const char *bar = strchr(sizes[s], '|');
            snprintf(shape, sizeof shape, sizes[s], kinds[k].w);
            *strchr(shape, '|') = 0;
            snprintf(text, sizeof text, "qlinear_conv(%s%s%s %s", kinds[k].x, shape,
                     kinds[k].scales, bar + 1);
            same("qlinear_conv/bytes", text, -128, 127);
        }
    same("qlinear_conv/bytes",
         "qlinear_conv(u8[1,8,6,6], i8[3,8,3,3], i32[3], f32{0.02}, u8{7}, f32{0.01, 0.1, 0.02}, "
         "i8{1, 0, -2}, f32{0.5}, i8{-9}) pad=1,1,1,1",
         -128, 127);
    same("conv_integer/bytes",
         "conv_integer(u8[1,5,9,8], i8[7,5,3,3], i32[7], u8{9}, i8{-3}) pad=1,1,1,1", -128, 127);
    same("conv_integer/bytes",
         "conv_integer(i8[2,6,7,7], u8[6,1,3,3], -, i8{9}, u8{77}) groups=6 pad=1,1,1,1", -128,
         127);
}

#define SUM_U8 "f32{0.31}, u8{117}, f32{0.62}, u8{101})"
#define SUM_S8 "f32{0.31}, i8{-11}, f32{0.3}, i8{9})"
#define V_U8 ", f32{0.021}, u8{131}, f32{0.013}, i8{0}, f32{0.57}, u8{119}, "
#define V_S8 ", f32{0.021}, i8{-3}, f32{0.013}, i8{2}, f32{0.57}, i8{-9}, "

/* Of convolutions and other bytes: both orders, runs of pixels that do not come out even. */
static void sums(void **state) {
    (void)state;
    static const char *const problems[] = {
        "qlinear_conv_add(u8[1,64,7,7], i8[64,64,1,1], i32[64]" V_U8 "u8[1,64,7,7], " SUM_U8,
        "qlinear_conv_add(u8[2,8,9,8], i8[33,8,3,3], -" V_U8 "u8[2,33,9,8], " SUM_U8
        " pad=1,1,1,1 z_first",
        "qlinear_conv_add(i8[1,20,14,15], i8[40,20,1,1], i32[40]" V_S8 "i8[1,40,7,8], " SUM_S8
        " stride=2,2",
        "qlinear_conv_add(i8[1,7,5,6], i8[3,7,2,3], -" V_S8 "i8[1,3,5,6], " SUM_S8
        " pad=0,2,1,0 z_first",
        "qlinear_conv_add(u8[2,12,9,9], i8[8,3,3,3], i32[8]" V_U8 "u8[2,8,9,9], " SUM_U8
        " groups=4 pad=1,1,1,1"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        same("qlinear_conv_add/bytes", problems[k], -128, 127);
}

static void products(void **state) {
    (void)state;
    static const char *const problems[] = { "qlinear_matmul(u8[1,64], i8[64,33], i32[33]" U8S8,
                                            "qlinear_matmul(i8[37,65], i8[65,41], i32[41]" S8S8,
                                            "qlinear_matmul(u8[2,3,5,9], i8[9,70], -" U8S8,
                                            "qlinear_matmul(u8[2,3,5,8], i8[2,3,8,7], -" U8S8,
                                            "qlinear_matmul(u8[19,128], u8[128,32], -" U8U8 };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        same("qlinear_matmul/bytes", problems[k], -128, 127);
    same("matmul_integer/bytes", "matmul_integer(u8[37,65], i8[65,41], u8{131}, i8{0})", -128, 255);
    same("matmul_integer/bytes", "matmul_integer(u8[7,300], u8[300,5], u8{3}, u8[5])", -128, 255);
    same("matmul_integer/bytes", "matmul_integer(i8[2,4,5,12], i8[2,4,12,3])", -128, 127);
}

static void between(void **state) {
    (void)state;
    same("qlinear_add/bytes",
         "qlinear_add(u8[2,3,17,5], f32{0.1}, u8{128}, u8[2,3,17,5], f32{0.2}, u8{3}, f32{0.3}, "
         "u8{9})",
         0, 255);
    same("qlinear_add/bytes",
         "qlinear_add(i8[40001], f32{0.25}, i8{-3}, i8[], f32{0.5}, i8{3}, f32{0.125}, i8{9})",
         -128, 127);
    same("qlinear_mul/bytes",
         "qlinear_mul(u8[2,3,17,5], f32{0.1}, u8{128}, u8[2,3,17,5], f32{0.2}, u8{3}, f32{0.3}, "
         "u8{9})",
         0, 255);
    same("qlinear_mul/bytes",
         "qlinear_mul(i8[333], f32{0.1}, i8{-3}, i8[1], f32{0.2}, i8{3}, f32{0.3}, i8{9})", -128,
         127);
    same("qlinear_add/bytes",
         "qlinear_add(u8[2,7,33], f32{0.1}, u8{128}, u8[33], f32{0.2}, u8{3}, f32{0.3}, u8{9})", 0,
         255);
    same(
        "qlinear_add/bytes",
        "qlinear_add(i8[2,700,6,5], f32{0.1}, i8{-8}, i8[1,6,5], f32{0.2}, i8{3}, f32{0.3}, i8{9})",
        -128, 127);
    same("qlinear_mul/bytes",
         "qlinear_mul(u8[3,19,5,7], f32{0.1}, u8{128}, u8[3,19,1,1], f32{0.2}, u8{3}, f32{2}, "
         "u8{9})",
         0, 255);
    same("qlinear_add/bytes",
         "qlinear_add(u8[2,40,9,7], f32{0.1}, u8{128}, u8[1,40,1,1], f32{0.2}, u8{3}, f32{0.3}, "
         "u8{9})",
         0, 255);
    same("max_pool2d/bytes", "max_pool2d(u8[2,5,9,8]) kernel=3,3 stride=2,2 pad=1,1,1,1", 0, 255);
    same("max_pool2d/bytes", "max_pool2d(i8[1,33,7,7]) kernel=2,3", -128, 127);
    same("max_pool2d/bytes", "max_pool2d(i8[2,70,12,11]) kernel=2,3 stride=1,3 dilation=3,2", -128,
         127);
    same("max_pool2d/bytes", "max_pool2d(u8[1,16,6,9]) kernel=3,4 stride=4,2 pad=2,3,1,2", 0, 255);
    same("max_pool2d/bytes", "max_pool2d(u8[1,64,1,2]) kernel=1,2 stride=1,5 pad=0,1,0,1", 0, 255);
    same("qlinear_global_avg_pool/bytes",
         "qlinear_global_avg_pool(u8[2,35,7,5], f32{0.1}, u8{128}, f32{0.3}, u8{9})", 0, 255);
    same("qlinear_global_avg_pool/bytes",
         "qlinear_global_avg_pool(i8[1,8,3,3], f32{0.1}, i8{-4}, f32{0.05}, i8{9})", -128, 127);
}

/* Floats in and out, and tables.  Halves of scales in powers of two are exact: they go to even. */
static void casts(void **state) {
    (void)state;
    static const char *const quantized[] = {
        "quantize_linear(f32[3,7,11], f32{0.1}, u8{128})",
        "quantize_linear(f32[2,35,5,9], f32{0.0371}, i8{-11})",
        "quantize_linear(f32[40001], f32{-0.07}, u8{7})",
        "quantize_linear(f32[67], f32{0.5})",
        "quantize_linear(f32[5,13], f32{1e-33}, i8{3})",
        "quantize_linear(f32[65], f32{3e38}, u8{3})",
    };
    for (size_t k = 0; k < sizeof quantized / sizeof *quantized; k++)
        same("quantize_linear/bytes", quantized[k], -15, 15);
    same("dequantize_linear/bytes", "dequantize_linear(u8[3,7,11], f32{0.1}, u8{128})", 0, 255);
    same("dequantize_linear/bytes", "dequantize_linear(i8[40001], f32{0.037}, i8{-3})", -128, 127);
    same("dequantize_linear/bytes", "dequantize_linear(u8[33], f32{2})", 0, 255);
    same("byte_table/bytes", "byte_table(u8[5,17,3], u8[256])", 0, 255);
    same("byte_table/bytes", "byte_table(i8[40001], i8[256])", -128, 127);
    same("byte_table/bytes", "byte_table(u8[1], i8[256])", 0, 127);
}

/* Each quotient next to the middle between two whole numbers, in every place of a vector: a product
 * with 1 / scale may round there to the other side. */
static void halves_are_divided(void **state) {
    (void)state;
    enum { EACH = 511, N = 5 * EACH };
    static float x[N];
    static uint8_t want[N], got[N];
    fac_error err = { 0 };
    for (int s = 0; s < 200; s++) {
        const float scale = (float)(0.001 + 0.05 * fac_random_uniform(seed, 7, (uint64_t)s));
        for (int k = 0; k < N; k++) {
            const float middle = ((float)(k / 5) - 255.5f) * scale;
            static const int places[] = { -2, -1, 0, 1, 2 };
            int32_t bits;
            memcpy(&bits, &middle, sizeof bits);
            bits += places[k % 5];
            memcpy(&x[k], &bits, sizeof bits);
            const double q = nearbyint((double)(x[k] / scale)) + 128;
            want[k] = (uint8_t)fmin(fmax(q, 0), 255);
        }
        for (int i = 0; problem_isas[i]; i++) {
            fac_device *d;
            if (fac_device_open("cpu", &(fac_device_opts){ .isa = problem_isas[i], .threads = 1 },
                                &d, &err))
                fail_msg("%s", err.text);
            const fac_byte_scale of = { .scale = scale, .zero = 128 };
            ((fac_cpu *)d)->bytes->quantize(&of, N, x, got);
            for (int k = 0; k < N; k++)
                if (got[k] != want[k])
                    fail_msg("%s: %.9g / %.9g is %d, not %d", problem_isas[i], x[k], scale, want[k],
                             got[k]);
            fac_device_free(d);
        }
    }
}

/* What is no number is 0, and infinities are the limits: as the reference has it. */
static void odd_floats(void **state) {
    (void)state;
    static const float x[] = { NAN, INFINITY, -INFINITY, 1e38f, -1e38f, 1e-40f, -0.0f };
    static const int8_t want[] = { 0, 127, -128, 127, -128, 5, 5 };
    fac_error err = { 0 };
    int8_t got[7];
    for (int i = 0; problem_isas[i]; i++) {
        fac_device *d;
        if (fac_device_open("cpu", &(fac_device_opts){ .isa = problem_isas[i] }, &d, &err))
            fail_msg("%s", err.text);
        const fac_byte_scale of = { .scale = 0.25f, .zero = 5, .sign = true };
        ((fac_cpu *)d)->bytes->quantize(&of, 7, x, got);
        assert_memory_equal(got, want, sizeof want);
        fac_device_free(d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions), cmocka_unit_test(sums),
        cmocka_unit_test(products),     cmocka_unit_test(between),
        cmocka_unit_test(casts),        cmocka_unit_test(halves_are_divided),
        cmocka_unit_test(odd_floats)
    };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
