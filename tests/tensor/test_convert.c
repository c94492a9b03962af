/* Conversions: floats of 16 bits, integers, packed bits, numbers as texts. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "base/rng.h"
#include "tensor/half.h"
#include "tensor/tensor_internal.h"

static uint64_t seed, drawn;
static uint64_t draw(uint64_t below) { return fac_random_bits(seed, 0, drawn++) % below; }

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* ---- texts ---- */

static void texts_are_copied(void **state) {
    (void)state;
    fac_tensor *t = NULL, *v = NULL, *c = NULL;
    char first[] = "first";
    char *in[4] = { first, "second", NULL, "" }, *out[4];
    OK(fac_tensor_new(NULL, FAC_TEXT, fac_shape(2, 2), &t, &err));
    OK(fac_tensor_write(t, in, sizeof in, &err));
    first[0] = 'F';
    OK(fac_tensor_read(t, out, sizeof out, &err));
    assert_string_equal(out[0], "first");
    assert_string_equal(out[1], "second");
    assert_string_equal(out[2], "");
    OK(fac_tensor_view(t, fac_shape(2), (int64_t[]){ 2 }, 1, &v, &err)); /* the second column */
    OK(fac_tensor_write(v, (char *[]){ "x", "yy" }, 2 * sizeof(char *), &err));
    OK(fac_tensor_read(t, out, sizeof out, &err));
    assert_string_equal(out[0], "first");
    assert_string_equal(out[1], "x");
    assert_string_equal(out[3], "yy");
    OK(fac_tensor_copy_contiguous(v, &c, &err));
    OK(fac_tensor_write(t, out, sizeof out, &err)); /* its own texts */
    fac_tensor_free(v);
    fac_tensor_free(t);
    OK(fac_tensor_read(c, out, 2 * sizeof(char *), &err));
    assert_string_equal(out[1], "yy");
    fac_tensor_free(c);
    OK(fac_tensor_borrow(FAC_TEXT, fac_shape(4), NULL, in, NULL, NULL, &t, &err));
    OK(fac_tensor_view(t, fac_shape(1), NULL, 3, &v, &err));
    OK(fac_tensor_write(v, (char *[]){ "new" }, sizeof(char *), &err));
    OK(fac_tensor_read(t, out, sizeof out, &err));
    assert_string_equal(out[1], "second");
    assert_string_equal(out[3], "new");
    assert_string_equal(in[3], "");
    fac_tensor_free(v);
    fac_tensor_free(t);
}

static void expect_texts(fac_dtype dtype, const void *numbers, int n, const char *const *texts) {
    fac_tensor *t = NULL, *s = NULL, *back = NULL;
    OK(fac_tensor_borrow(dtype, fac_shape(n), NULL, numbers, NULL, NULL, &t, &err));
    OK(fac_tensor_convert(t, FAC_TEXT, &s, &err));
    for (int i = 0; i < n; i++)
        assert_string_equal(((char *const *)fac_tensor_data(s))[i], texts[i]);
    OK(fac_tensor_convert(s, dtype, &back, &err));
    assert_memory_equal(fac_tensor_data(back), numbers, fac_type_bytes(&t->type));
    fac_tensor_free(back);
    fac_tensor_free(s);
    fac_tensor_free(t);
}

/* What str() gives for NumPy scalars. */
static void numbers_print_as_in_python(void **state) {
    (void)state;
    const float f[] = { 0.1f,     1,         -2.5f,   1e-5f, 123456789.f, 3.4028235e38f, 1e16f,
                        INFINITY, -INFINITY, 0.0001f, 0,     1e-45f,      100000.f };
    const char *const ftext[] = { "0.1",           "1.0",   "-2.5",    "1e-05", "123456790.0",
                                  "3.4028235e+38", "1e+16", "inf",     "-inf",  "0.0001",
                                  "0.0",           "1e-45", "100000.0" };
    expect_texts(FAC_F32, f, 13, ftext);
    const double d[] = { 0.1, 1. / 3, 1e300, 123456789012345680.0, 5e-324 };
    const char *const dtext[] = { "0.1", "0.3333333333333333", "1e+300", "1.2345678901234568e+17",
                                  "5e-324" };
    expect_texts(FAC_F64, d, 5, dtext);
    const uint16_t h[] = { 0x3c00, 0x2e66, 0x7bff };
    const char *const htext[] = { "1.0", "0.1", "65500.0" };
    expect_texts(FAC_F16, h, 3, htext);
    const int64_t i[] = { INT64_MIN, INT64_MAX, -1 };
    const char *const itext[] = { "-9223372036854775808", "9223372036854775807", "-1" };
    expect_texts(FAC_I64, i, 3, itext);
    const uint64_t u[] = { UINT64_MAX };
    const char *const utext[] = { "18446744073709551615" };
    expect_texts(FAC_U64, u, 1, utext);
    const uint8_t b[] = { 0, 1 };
    const char *const btext[] = { "False", "True" };
    expect_texts(FAC_BOOL, b, 2, btext);
}

static void texts_parse(void **state) {
    (void)state;
    fac_tensor *t = NULL, *c = NULL;
    char *in[] = { "0.47892547", " 1e-5 ", "NaN", "+INF", "-inf", "100.7", "7" };
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where it exists: the point must not depend on it */
    OK(fac_tensor_borrow(FAC_TEXT, fac_shape(7), NULL, in, NULL, NULL, &t, &err));
    OK(fac_tensor_convert(t, FAC_F32, &c, &err));
    const float *f = fac_tensor_data(c);
    assert_true(f[0] == 0.47892547f && f[1] == 1e-5f && isnan(f[2]) && f[3] == INFINITY &&
                f[4] == -INFINITY);
    fac_tensor_free(c);
    OK(fac_tensor_convert(t, FAC_I32, &c, &err));
    const int32_t *i = fac_tensor_data(c);
    assert_int_equal(i[5], 100);
    assert_int_equal(i[6], 7);
    fac_tensor_free(c);
    in[3] = "abc";
    assert_int_equal(fac_tensor_convert(t, FAC_F64, &c, &err), FAC_E_FORMAT);
    assert_string_equal(err.text, "\"abc\" is no number");
    in[3] = "";
    assert_int_equal(fac_tensor_convert(t, FAC_I8, &c, &err), FAC_E_FORMAT);
    fac_tensor_free(t);
    setlocale(LC_ALL, "C");
}

/* ---- conversions ---- */

static double half_value(unsigned h, int fraction,
                         int bias) { /* straight from the definition of the format */
    int exponent = (int)(h >> fraction) & (2 * bias + 1), bits = (int)h & ((1 << fraction) - 1);
    double part = (double)bits / (1 << fraction),
           x = exponent ? ldexp(part + 1, exponent - bias) : ldexp(part, 1 - bias);
    if (exponent == 2 * bias + 1) x = bits ? NAN : INFINITY;
    return h & 0x8000 ? -x : x;
}

/* Every value of the format, every point half way between two neighbours, and the numbers next to
 * those points. */
static void check_small_float(fac_dtype dtype, int fraction, int bias) {
    const unsigned infinity = (2u * (unsigned)bias + 1) << fraction;
    for (unsigned h = 0; h < 65536; h++) {
        uint16_t in = (uint16_t)h, out;
        double expected = half_value(h, fraction, bias), d;
        float f;
        fac_convert(FAC_F32, &f, dtype, &in, 1);
        fac_convert(FAC_F64, &d, dtype, &in, 1);
        if (isnan(expected)) {
            assert_true(isnan(f) && isnan(d));
            fac_convert(dtype, &out, FAC_F32, &f, 1);
            assert_true(isnan(half_value(out, fraction, bias)));
            fac_convert(dtype, &out, FAC_F64, &d, 1);
            assert_true(isnan(half_value(out, fraction, bias)));
            continue;
        }
        assert_true(f == expected && d == expected && !signbit(f) == !signbit(expected));
        fac_convert(dtype, &out, FAC_F32, &f, 1);
        assert_int_equal(out, h);
        fac_convert(dtype, &out, FAC_F64, &d, 1);
        assert_int_equal(out, h);
        if ((h & 0x7fff) >= infinity) continue;

        /* above the largest finite number the next one would be 2^(bias + 1) */
        bool last = (h & 0x7fff) == infinity - 1;
        double next =
            last ? copysign(ldexp(1, bias + 1), expected) : half_value(h + 1, fraction, bias);
        double middle = expected / 2 + next / 2, away = next * 2;
        unsigned even = h & 1 ? h + 1 : h;
        const double d3[3] = { nextafter(middle, 0), middle, nextafter(middle, away) };
        const float f3[3] = { nextafterf((float)middle, 0), (float)middle,
                              nextafterf((float)middle, (float)away) };
        const unsigned to[3] = { h, even, h + 1 };
        for (int k = 0; k < 3; k++) {
            fac_convert(dtype, &out, FAC_F64, &d3[k], 1);
            if (out != to[k]) fail_msg("f64 %a became %04x, not %04x", d3[k], out, to[k]);
            if ((double)(float)middle != middle) continue; /* below the least f32 */
            fac_convert(dtype, &out, FAC_F32, &f3[k], 1);
            if (out != to[k]) fail_msg("f32 %a became %04x, not %04x", (double)f3[k], out, to[k]);
        }
    }
    const double extremes[] = { 1e300, -1e300, 5e-324, -5e-324, INFINITY, 0x1p1000, 0x1p-1070 };
    const unsigned become[] = { infinity, infinity | 0x8000, 0, 0x8000, infinity, infinity, 0 };
    for (int k = 0; k < 7; k++) {
        uint16_t out;
        fac_convert(dtype, &out, FAC_F64, &extremes[k], 1);
        assert_int_equal(out, become[k]);
    }
}

static void f16_is_rounded_to_even(void **state) {
    (void)state;
    check_small_float(FAC_F16, 10, 15);
}
static void bf16_is_rounded_to_even(void **state) {
    (void)state;
    check_small_float(FAC_BF16, 7, 127);
}

/* Small integers are the same number in every type: all pairs, long enough for whole vectors,
 * buffers and rests. */
static void every_pair_keeps_small_integers(void **state) {
    (void)state;
    enum { N = 1100 };
    static int64_t numbers[N], back[N];
    static union {
        double align;
        unsigned char bytes[8 * N];
    } a, b;
    for (int from = FAC_F32; from < FAC_TEXT; from++)
        for (int to = FAC_F32; to < FAC_TEXT; to++) {
            bool flags = from == FAC_BOOL || from == FAC_BIT || to == FAC_BOOL || to == FAC_BIT;
            size_t n = draw(4) ? N - draw(600) : draw(20);
            for (size_t i = 0; i < n; i++) numbers[i] = (int64_t)draw(flags ? 2 : 100);
            fac_convert((fac_dtype)from, a.bytes, FAC_I64, numbers, n);
            fac_convert((fac_dtype)to, b.bytes, (fac_dtype)from, a.bytes, n);
            fac_convert(FAC_I64, back, (fac_dtype)to, b.bytes, n);
            if (memcmp(back, numbers, n * sizeof *back))
                fail_msg("%s to %s changes small integers", fac_dtype_get((fac_dtype)from)->name,
                         fac_dtype_get((fac_dtype)to)->name);
        }
}

/* The nearest code, the even one of two, by looking at all. */
static void check_codes(fac_dtype dtype, int codes) {
    double value[256], most = 0;
    for (int c = 0; c < codes; c++) {
        const uint8_t code = (uint8_t)c;
        fac_convert(FAC_F64, &value[c], dtype, &code, 1);
        if (isfinite(value[c]) && value[c] > most) most = value[c];
    }
    for (int i = 0; i < 3000; i++) {
        const double x = (i % 2 ? -1 : 1) * most * 1.2 * exp2(-14.0 * (double)draw(1000) / 1000);
        const double within = fabs(x) > most ? copysign(most, x) : x;
        double best = INFINITY, got;
        uint8_t code;
        fac_convert(dtype, &code, FAC_F64, &x, 1);
        fac_convert(FAC_F64, &got, dtype, &code, 1);
        for (int c = 0; c < codes; c++)
            if (isfinite(value[c])) best = fmin(best, fabs(value[c] - within));
        if (fabs(got - within) != best)
            fail_msg("%s: %.17g became %.17g, %g is nearer", fac_dtype_get(dtype)->name, x, got,
                     best);
    }
    for (int c = 0; c < codes; c++) {
        uint8_t code;
        if (isnan(value[c])) continue;
        fac_convert(dtype, &code, FAC_F64, &value[c], 1);
        assert_int_equal(code, c);
    }
}

static int64_t to_integer(fac_dtype dtype, fac_dtype from, const void *x);
static void floats_of_a_byte_are_rounded(void **state) {
    (void)state;
    static const fac_dtype types[] = { FAC_F8E4M3, FAC_F8E4M3UZ, FAC_F8E5M2, FAC_F8E5M2UZ,
                                       FAC_F4E2M1 };
    static const double largest[] = { 448, 240, 57344, 57344, 6 };
    for (int k = 0; k < 5; k++) {
        const double huge = 1e9;
        double back;
        uint8_t code;
        check_codes(types[k], k < 4 ? 256 : 16);
        fac_convert(types[k], &code, FAC_F64, &huge, 1);
        fac_convert(FAC_F64, &back, types[k], &code, 1);
        assert_true(back == largest[k]);
    }
}

static void integers_of_few_bits_wrap(void **state) {
    (void)state;
    static const struct {
        fac_dtype dtype;
        int bits;
        bool sign;
    } of[] = {
        { FAC_I4, 4, true }, { FAC_U4, 4, false }, { FAC_I2, 2, true }, { FAC_U2, 2, false }
    };
    for (int k = 0; k < 4; k++)
        for (int x = -40; x < 40; x++) {
            const int size = 1 << of[k].bits, low = ((x % size) + size) % size;
            const int want = of[k].sign && low >= size / 2 ? low - size : low;
            const int64_t from = x;
            assert_int_equal(to_integer(of[k].dtype, FAC_I64, &from), want);
        }
}

static int64_t to_integer(fac_dtype dtype, fac_dtype from, const void *x) {
    int64_t i;
    union {
        double align;
        unsigned char bytes[8];
    } y;
    fac_convert(dtype, y.bytes, from, x, 1);
    fac_convert(FAC_I64, &i, dtype, y.bytes, 1);
    return i;
}

static void floats_truncate_and_wrap(void **state) {
    (void)state;
    static const struct {
        double x;
        int64_t i64;
        int i32, i8, u8, flag;
    } known[] = {
        { 300.7, 300, 300, 44, 44, 1 },
        { -1.5, -1, -1, -1, 255, 1 },
        { 0.5, 0, 0, 0, 0, 1 },
        { -0.0, 0, 0, 0, 0, 0 },
        { 4294967296.0 + 130, 4294967426, 130, -126, 130, 1 },
        { -129, -129, -129, 127, 127, 1 },
        { 0x1p63, INT64_MIN, 0, 0, 0, 1 },
        { 0x1p64, 0, 0, 0, 0, 1 },
        { -0x1p63, INT64_MIN, 0, 0, 0, 1 },
        { 1e20, 7766279631452241920, 1661992960, 0, 0, 1 },
        { -1e20, -7766279631452241920, -1661992960, 0, 0, 1 },
        { NAN, 0, 0, 0, 0, 1 },
        { INFINITY, 0, 0, 0, 0, 1 },
        { -INFINITY, 0, 0, 0, 0, 1 },
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const double *x = &known[k].x;
        assert_int_equal(to_integer(FAC_I64, FAC_F64, x), known[k].i64);
        assert_int_equal(to_integer(FAC_U64, FAC_F64, x), known[k].i64);
        assert_int_equal(to_integer(FAC_I32, FAC_F64, x), known[k].i32);
        assert_int_equal(to_integer(FAC_I8, FAC_F64, x), known[k].i8);
        assert_int_equal(to_integer(FAC_U8, FAC_F64, x), known[k].u8);
        assert_int_equal(to_integer(FAC_BOOL, FAC_F64, x), known[k].flag);
        float f = (float)*x;
        if (isnan(f) || (double)f == *x)
            assert_int_equal(to_integer(FAC_I8, FAC_F32, &f), known[k].i8);
    }
    const uint64_t largest = UINT64_MAX, odd = (UINT64_C(1) << 63) + (UINT64_C(1) << 39) + 1;
    float f;
    double d;
    uint16_t h;
    fac_convert(FAC_F32, &f, FAC_U64, &largest, 1);
    fac_convert(FAC_F64, &d, FAC_U64, &largest, 1);
    assert_true(f == 0x1p64f && d == 0x1p64);
    fac_convert(FAC_F32, &f, FAC_U64, &odd, 1); /* by way of f64 it would be rounded twice, down */
    assert_true(f == 0x1p63f + 0x1p40f);
    fac_convert(FAC_BF16, &h, FAC_U64, &largest, 1);
    assert_int_equal(h, 0x5f80);
    const uint16_t half = 0x3800; /* 0.5 */
    assert_int_equal(to_integer(FAC_BOOL, FAC_F16, &half), 1);
    assert_int_equal(to_integer(FAC_U8, FAC_F16, &half), 0);
    const uint8_t sloppy = 7;
    assert_int_equal(to_integer(FAC_BOOL, FAC_BOOL, &sloppy), 1);
}

static void bits_are_packed_by_row(void **state) {
    (void)state;
    fac_tensor *t = NULL, *bits = NULL, *back = NULL, *v = NULL;
    float x[3 * 70], y[3 * 70];
    for (int i = 0; i < 210; i++) x[i] = draw(2) ? 0.25f : 0;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(3, 70), NULL, x, NULL, NULL, &t, &err));
    OK(fac_tensor_convert(t, FAC_BIT, &bits, &err));
    const uint64_t *words = fac_tensor_data(bits);
    for (int i = 0; i < 210; i++)
        assert_int_equal(words[i / 70 * 2 + i % 70 / 64] >> (i % 70 % 64) & 1, x[i] != 0);
    OK(fac_tensor_convert(bits, FAC_F32, &back, &err));
    OK(fac_tensor_read(back, y, sizeof y, &err));
    for (int i = 0; i < 210; i++) assert_true(y[i] == (x[i] != 0));
    fac_tensor_free(back);
    OK(fac_tensor_view(bits, fac_shape(2, 70), (int64_t[]){ 256, 1 }, 0, &v,
                       &err)); /* rows 0 and 2 */
    OK(fac_tensor_convert(v, FAC_F32, &back, &err));
    for (int i = 0; i < 70; i++)
        assert_true(((const float *)fac_tensor_data(back))[70 + i] == (x[140 + i] != 0));
    fac_tensor_free(v);
    assert_int_equal(fac_tensor_view(bits, fac_shape(64), NULL, 3, &v, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tensor_view(bits, fac_shape(2, 2), (int64_t[]){ 1, 128 }, 0, &v, &err),
                     FAC_E_ARGUMENT);
    fac_tensor_free(back);
    fac_tensor_free(bits);
    fac_tensor_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(numbers_print_as_in_python),
        cmocka_unit_test(texts_parse),
        cmocka_unit_test(f16_is_rounded_to_even),
        cmocka_unit_test(bf16_is_rounded_to_even),
        cmocka_unit_test(every_pair_keeps_small_integers),
        cmocka_unit_test(floats_of_a_byte_are_rounded),
        cmocka_unit_test(integers_of_few_bits_wrap),
        cmocka_unit_test(floats_truncate_and_wrap),
        cmocka_unit_test(bits_are_packed_by_row),
    };
    seed = fresh_seed();
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
