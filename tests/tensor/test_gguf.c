/* GGUF files and weights in blocks: every type against the package gguf, files against broken ones.
 */
#include <math.h>
#include "gguf_files.h"
#include "weights_check.h"
#include "tensor/blocks.h"
#include "tensor/gguf.h"

/* Made by tests/golden/make/golden_blocks.py: bytes of a block, where its scales are, hashes of
 * what 64 blocks stand for and of what 64 blocks of numbers are rounded to (0: they are not). */
static const struct {
    fac_dtype type;
    int bytes, half[2];
    uint64_t decoded, encoded;
} golden[] = {
    { FAC_Q4_0, 18, { 0, -1 }, 0x514e1aeb52be0dfe, 0xc92d4d2d5e2713f1 },
    { FAC_Q4_1, 20, { 0, 2 }, 0x4381f78278d1ebb2, 0xc9a6132642335112 },
    { FAC_Q5_0, 22, { 0, -1 }, 0xa7078dead646ff32, 0x16f684dd96e33570 },
    { FAC_Q5_1, 24, { 0, 2 }, 0x1738320996494386, 0x24643f03eb6fe69e },
    { FAC_Q8_0, 34, { 0, -1 }, 0xd36bb48c0817ad18, 0xdee14086e35f0e4a },
    { FAC_IQ4_NL, 18, { 0, -1 }, 0x58689228d0b11c11, 0x0000000000000000 },
    { FAC_Q2_K, 84, { 80, 82 }, 0xde7075b93a5c0388, 0x0000000000000000 },
    { FAC_Q3_K, 110, { 108, -1 }, 0x34a01d83ffa26e54, 0x0000000000000000 },
    { FAC_Q4_K, 144, { 0, 2 }, 0x08e3d3cdb004fd7f, 0x0000000000000000 },
    { FAC_Q5_K, 176, { 0, 2 }, 0x53ffb431b0157f22, 0x0000000000000000 },
    { FAC_Q6_K, 210, { 208, -1 }, 0x818279a9daf52db2, 0x0000000000000000 },
    { FAC_IQ4_XS, 136, { 0, -1 }, 0x058eb75bfd0c94d9, 0x0000000000000000 },
};
enum { BLOCKS = 64, GOLDEN = sizeof golden / sizeof *golden };

static uint32_t state_of;
static unsigned next_byte(void) {
    state_of = state_of * 1103515245u + 12345u;
    return state_of >> 16 & 0xff;
}

static uint64_t fnv(const void *data, size_t n) {
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325;
    for (size_t k = 0; k < n; k++) h = (h ^ p[k]) * 0x100000001b3;
    return h;
}

static void blocks_are_those_of_gguf(void **state) {
    (void)state;
    static unsigned char raw[BLOCKS * 256];
    static float x[BLOCKS * 256];
    for (int g = 0; g < GOLDEN; g++) {
        const int bytes = golden[g].bytes, elements = fac_dtype_get(golden[g].type)->block_elements;
        state_of = 7;
        for (int k = 0; k < BLOCKS * bytes; k++) raw[k] = (unsigned char)next_byte();
        for (int k = 0; k < 2 * BLOCKS; k++) {
            if (golden[g].half[k % 2] < 0) continue;
            unsigned char *high = raw + k / 2 * bytes + golden[g].half[k % 2] + 1;
            *high = (unsigned char)((*high & 0x9f) | 0x20);
        }
        assert_int_equal(fac_dtype_get(golden[g].type)->block_bytes, bytes);
        fac_blocks_decode(golden[g].type, raw, x, (size_t)(BLOCKS * elements));
        if (fnv(x, (size_t)(BLOCKS * elements) * sizeof *x) != golden[g].decoded)
            fail_msg("%s: its blocks stand for other numbers", fac_dtype_get(golden[g].type)->name);
    }
}

static void numbers_are_rounded_as_gguf_does(void **state) {
    (void)state;
    static float x[BLOCKS * 32];
    static unsigned char raw[BLOCKS * 34];
    state_of = 3;
    for (int k = 0; k < BLOCKS * 32; k++) {
        const float whole = (float)next_byte() - 128;
        x[k] = (whole + (float)next_byte() / 256) / 32;
    }
    for (int g = 0; g < GOLDEN; g++) {
        assert_int_equal(fac_blocks_encodes(golden[g].type), golden[g].encoded != 0);
        if (!golden[g].encoded) continue;
        fac_blocks_encode(golden[g].type, x, raw, BLOCKS * 32);
        if (fnv(raw, (size_t)(BLOCKS * golden[g].bytes)) != golden[g].encoded)
            fail_msg("%s: numbers are rounded to other blocks",
                     fac_dtype_get(golden[g].type)->name);
    }
}

static void conversions_say_what_they_cannot(void **state) {
    (void)state;
    fac_tensor *x, *y;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(2, 33), &x, &err));
    assert_int_equal(fac_tensor_convert(x, FAC_Q8_0, &y, &err), FAC_E_SHAPE);
    assert_int_equal(fac_tensor_convert(x, FAC_Q4_K, &y, &err), FAC_E_UNSUPPORTED);
    fac_tensor_free(x);
    float numbers[64], back[64];
    for (int k = 0; k < 64; k++) numbers[k] = (float)draw(1000) - 500;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(2, 32), NULL, numbers, NULL, NULL, &x, &err));
    OK(fac_tensor_convert(x, FAC_Q8_0, &y, &err));
    fac_tensor_free(x);
    OK(fac_tensor_convert(y, FAC_F32, &x, &err));
    OK(fac_tensor_read(x, back, sizeof back, &err));
    /* half a step of the scale, and up to 127 times what the scale lost when it became f16 */
    const float most = 500.0f / 127 * (0.5f + 127 / 2048.0f);
    for (int k = 0; k < 64; k++)
        if (fabsf(back[k] - numbers[k]) > most)
            fail_msg("%g became %g", (double)numbers[k], (double)back[k]);
    fac_tensor_free(x);
    fac_tensor_free(y);
}

static void a_file_is_read(void **state) {
    (void)state;
    fac_text t = { 0 };
    fac_weights *w;
    static const float plain[] = { 1, 2, 3, 4 };
    float blocks[32];
    gguf_file(&t);
    OK(parse(&t, &w));
    expect(w, "plain", fac_shape(2, 2), plain);
    const fac_tensor *q = fac_weights_find(w, "blocks");
    assert_int_equal(fac_tensor_type(q).dtype, FAC_Q8_0);
    fac_tensor *x;
    OK(fac_tensor_convert(q, FAC_F32, &x, &err));
    OK(fac_tensor_read(x, blocks, sizeof blocks, &err));
    for (int k = 0; k < 32; k++) assert_true(blocks[k] == 0.5f * (float)(k - 16));
    fac_tensor_free(x);
    fac_weights_free(w);
    fac_text_free(&t);
}

/* Cut anywhere, and with any byte another one: an error or a file, never more memory than it has
 * bytes to fill. */
static void broken_files_are_errors(void **state) {
    (void)state;
    fac_text t = { 0 };
    gguf_file(&t);
    for (size_t n = 0; n < t.n; n++) {
        fac_text part = { t.s, n, t.room, false };
        fac_weights *w;
        if (n && !parse(&part, &w)) fail_msg("%zu of %zu bytes are a file", n, t.n);
    }
    for (size_t n = 0; n < t.n; n++)
        for (int k = 0; k < 8; k++) {
            fac_weights *w;
            t.s[n] ^= (char)(1 << k);
            if (!parse(&t, &w)) {
                touch(w);
                fac_weights_free(w);
            }
            t.s[n] ^= (char)(1 << k);
        }
    fac_text_free(&t);
}

static void expect_error(const fac_text *t, const char *part) {
    fac_weights *w;
    if (!parse(t, &w)) fail_msg("a file that is wrong was read: %s", part);
    if (!strstr(err.text, part)) fail_msg("\"%s\" does not say \"%s\"", err.text, part);
}

static void errors_say_what_is_wrong(void **state) {
    (void)state;
    fac_text t = { 0 };
    put_gguf_head(&t, 1, 0, 0);
    expect_error(&t, "version 1");
    t.n = 0;
    put_gguf_head(&t, 0x03000000, 0, 0);
    expect_error(&t, "big-endian");
    t.n = 0;
    put_gguf_head(&t, 3, 1 << 30, 0);
    expect_error(&t, "1073741824 tensors");
    t.n = 0;
    put_gguf_head(&t, 3, 1, 0);
    put_gguf_tensor(&t, "odd", 33, 1, 8, 0);
    put_gguf_padding(&t);
    expect_error(&t, "odd: rows of 33 elements are not whole blocks of 32");
    static const uint64_t places[][2] = { { 0, 0 }, { 0, 32 }, { 32, 0 } };
    for (int k = 0; k < 3; k++) {
        t.n = 0;
        put_gguf_head(&t, 3, 2, 0);
        put_gguf_tensor(&t, "one", 16, 1, 0, places[k][0]);
        put_gguf_tensor(&t, "two", 16, 1, 0, places[k][1]);
        put_gguf_padding(&t);
        for (int i = 0; i < 32; i++) put_number(&t, 0, 4);
        expect_error(&t, "within another tensor");
    }
    t.n = 0;
    put_gguf_head(&t, 3, 0, 1);
    put_gguf_key_text(&t, "general.alignment", "32");
    expect_error(&t, "general.alignment: a text, where something else is expected");
    fac_text_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_those_of_gguf),
        cmocka_unit_test(numbers_are_rounded_as_gguf_does),
        cmocka_unit_test(conversions_say_what_they_cannot),
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(broken_files_are_errors),
        cmocka_unit_test(errors_say_what_is_wrong),
    };
    return run_weights_tests("gguf", tests, sizeof tests / sizeof *tests);
}
