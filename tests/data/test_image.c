/* Images: every kind of file and every resize against Pillow's pixels (golden/image.h), and files
 * that are cut off or damaged in every byte. */
#include "image_check.h"

enum {
    GOLDEN_FILES = sizeof golden_files / sizeof *golden_files,
    GOLDEN_RESIZES = sizeof golden_resizes / sizeof *golden_resizes
};

/* FAC_OK, or skipped because this build has no libpng or TurboJPEG. */
static bool readable(const struct golden_file *f) {
#ifndef FAC_HAVE_PNG
    if (strncmp(f->name, "png", 3) == 0) return false;
#endif
#ifndef FAC_HAVE_TURBOJPEG
    if (strncmp(f->name, "jpeg", 4) == 0) return false;
#endif
    return f->bytes > 0;
}

static int distance(const uint8_t *a, const uint8_t *b, size_t n) {
    int most = 0;
    for (size_t i = 0; i < n; i++) most = abs(a[i] - b[i]) > most ? abs(a[i] - b[i]) : most;
    return most;
}

static void files_give_pillows_pixels(void **state) {
    (void)state;
    for (int i = 0; i < GOLDEN_FILES; i++) {
        const struct golden_file *f = &golden_files[i];
        fac_image image = { 0 };
        fac_error err = { 0 };
        if (!readable(f)) {
            assert_int_equal(fac_image_decode(f->data, f->bytes, f->name, &image, &err),
                             FAC_E_UNSUPPORTED);
            assert_non_null(strstr(err.text, "install"));
            continue;
        }
        if (fac_image_decode(f->data, f->bytes, f->name, &image, &err)) fail_msg("%s", err.text);
        if (image.width != f->width || image.height != f->height)
            fail_msg("%s: %d x %d, expected %d x %d", f->name, image.width, image.height, f->width,
                     f->height);
        /* 16 bits are cut by Pillow, rounded by us; the two JPEG decoders may round colours
         * differently */
        int allowed = strncmp(f->name, "jpeg", 4) == 0
                          ? 2
                          : strncmp(f->name, "bmp_5", 5) == 0 || strcmp(f->name, "ppm_16") == 0;
        int found = distance(image.rgb, f->rgb, 3 * (size_t)f->width * (size_t)f->height);
        if (found > allowed) fail_msg("%s: differs by %d", f->name, found);
        fac_image_free(&image);
        assert_null(image.rgb);
    }
}

static void cut_off_files_are_errors(void **state) {
    (void)state;
    for (int i = 0; i < GOLDEN_FILES; i++) {
        const struct golden_file *f = &golden_files[i];
        bool plain_text = strcmp(f->name, "ppm_plain") == 0 || strcmp(f->name, "pgm_plain") == 0;
        bool bmp = strncmp(f->name, "bmp", 3) == 0; /* the padding of the last row may be missing */
        for (size_t n = 0; n < f->bytes && readable(f); n++) {
            uint8_t *copy = malloc(
                n ? n : 1); /* of exactly this size, so that a sanitizer sees a read after it */
            assert_non_null(copy);
            memcpy(copy, f->data, n);
            fac_image image = { 0 };
            fac_error err = { 0 };
            fac_status status = fac_image_decode(copy, n, f->name, &image, &err);
            if (status) {
                assert_int_equal(err.status, status);
                assert_true(strlen(err.text) > strlen(f->name));
                assert_null(image.rgb);
            } else if (!plain_text && !(bmp && n + 4 > f->bytes)) {
                fail_msg("%s: %zu of %zu bytes were accepted", f->name, n, f->bytes);
            }
            fac_image_free(&image);
            free(copy);
        }
    }
}

static void damaged_files_are_errors_or_pictures(void **state) {
    (void)state;
    static const uint8_t damage[] = { 0xff, 0x01, 0x80, 0x7f };
    for (int i = 0; i < GOLDEN_FILES; i++) {
        const struct golden_file *f = &golden_files[i];
        uint8_t *copy = malloc(f->bytes);
        assert_non_null(copy);
        for (size_t at = 0; at < f->bytes && readable(f); at++)
            for (size_t k = 0; k < sizeof damage; k++) {
                memcpy(copy, f->data, f->bytes);
                copy[at] ^= damage[k];
                fac_image image = { 0 };
                fac_error err = { 0 };
                fac_status status = fac_image_decode(copy, f->bytes, f->name, &image, &err);
                if (status) {
                    assert_int_equal(err.status, status);
                    assert_null(image.rgb);
                } else {
                    assert_true(image.width > 0 && image.height > 0 && image.rgb);
                }
                fac_image_free(&image);
            }
        free(copy);
    }
}

static void memory_may_end_anywhere(void **state) {
    (void)state;
    for (int i = 0; i < GOLDEN_FILES; i++) {
        const struct golden_file *f = &golden_files[i];
        fac_status status = FAC_E_NOMEM;
        for (long n = 0; readable(f) && status; n++) {
            fac_image image = { 0 }, small = { 0 };
            fac_tensor *t = NULL;
            fac_error err = { 0 };
            allocations_left = n;
            status = fac_image_decode(f->data, f->bytes, f->name, &image, &err);
            if (!status) status = fac_image_resize(&image, 9, 8, FAC_BICUBIC, &small, &err);
            if (!status) status = fac_image_tensor(&small, &fac_presets[0].how, &t, &err);
            allocations_left = -1;
            if (status && status != FAC_E_NOMEM)
                fail_msg("%s, allocation %ld: %s", f->name, n, err.text);
            fac_tensor_free(t);
            fac_image_free(&small);
            fac_image_free(&image);
        }
    }
}

static void what_is_no_image_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *data;
        size_t bytes;
        fac_status status;
        const char *says;
    } files[] = {
        { "", 0, FAC_E_FORMAT, "not an image" },
        { "GIF89a", 6, FAC_E_FORMAT, ": a GIF picture; facula reads PNG" },
        { "II*\0....", 8, FAC_E_FORMAT, ": a TIFF picture" },
        { "RIFF....WEBPVP8 ", 16, FAC_E_FORMAT, ": a WebP picture" },
        { "%PDF-1.5", 8, FAC_E_FORMAT, "not an image, but a PDF document" },
        { "P6 20000 20000 255\n", 19, FAC_E_FORMAT, "too short" },
        { "P6 99999999999999999999 1 255\n", 30, FAC_E_FORMAT, "expected width" },
        { "P5 0 1 255\n", 11, FAC_E_FORMAT, "expected width" },
        { "P2 1 1 255\n256", 14, FAC_E_FORMAT, "from 0 to 255" },
        { "P3 1 1 65536\n1 1 1", 18, FAC_E_FORMAT, "expected width" },
        { "P6 1 1 255", 10, FAC_E_FORMAT, "expected width" },
        { "BM0000000000000000000000000000000000000000000000000000", 54, FAC_E_FORMAT,
          "impossible size" },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fac_image image = { 0 };
        fac_error err = { 0 };
        assert_int_equal(fac_image_decode(files[i].data, files[i].bytes, "a.img", &image, &err),
                         files[i].status);
        if (!strstr(err.text, files[i].says) || strncmp(err.text, "a.img: ", 7) != 0)
            fail_msg("%zu: %s", i, err.text);
        assert_null(image.rgb);
    }
    fac_image image = { 0 };
    assert_int_equal(fac_image_load("/nowhere/at/all.png", &image, NULL), FAC_E_IO);
    assert_int_not_equal(fac_image_load("/", &image, NULL), FAC_OK);
}

#ifdef FAC_HAVE_PNG
static uint32_t crc32(const uint8_t *p, size_t n) {
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}
#endif

/* 20000 x 20000 pixels, and 16000 x 16000 in a few bytes: refused before anything is allocated. */
static void too_many_pixels_are_refused(void **state) {
    (void)state;
    uint8_t bmp[62] = { 'B', 'M' };
    bmp[10] = 62; /* RLE8, two colours */
    bmp[14] = 40;
    bmp[26] = 1;
    bmp[28] = 8;
    bmp[30] = 1;
    bmp[46] = 2;
    bmp[19] = bmp[23] = 0x4e;
    bmp[18] = bmp[22] = 0x20;
    fac_image image = { 0 };
    fac_error err = { 0 };
    assert_int_equal(fac_image_decode(bmp, sizeof bmp, "big.bmp", &image, &err), FAC_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "20000 x 20000"));
    bmp[19] = bmp[23] = 0x3e;
    bmp[18] = bmp[22] = 0x80;
    assert_int_equal(fac_image_decode(bmp, sizeof bmp, "big.bmp", &image, &err), FAC_E_FORMAT);
    assert_non_null(strstr(err.text, "62 bytes are too short for 16000 x 16000"));
#ifdef FAC_HAVE_PNG
    uint8_t png[1024]; /* the head of a PNG: bytes 12 to 28, width and height at 16 and 20, its
                          check sum */
    assert_true(golden_files[0].bytes <= sizeof png);
    memcpy(png, golden_files[0].data, golden_files[0].bytes);
    png[18] = png[22] = 0x3e;
    uint32_t crc = crc32(png + 12, 17);
    for (int i = 0; i < 4; i++) png[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
    assert_int_equal(fac_image_decode(png, golden_files[0].bytes, "big.png", &image, &err),
                     FAC_E_FORMAT);
    assert_non_null(strstr(err.text, "too short for 15879 x 15877"));
#endif
}

static void resizes_are_pillows(void **state) {
    (void)state;
    for (int i = 0; i < GOLDEN_RESIZES; i++) {
        const struct golden_resize *r = &golden_resizes[i];
        fac_image from = pattern(r->from_width, r->from_height), to = { 0 };
        fac_error err = { 0 };
        if (fac_image_resize(&from, r->width, r->height, (fac_interpolation)r->how, &to, &err))
            fail_msg("%s", err.text);
        assert_int_equal(to.width, r->width);
        assert_int_equal(to.height, r->height);
        int found = distance(to.rgb, r->rgb, 3 * (size_t)r->width * (size_t)r->height);
        if (found > (r->how == FAC_NEAREST ? 0 : 1))
            fail_msg("%d x %d to %d x %d, interpolation %d: differs by %d", r->from_width,
                     r->from_height, r->width, r->height, r->how, found);
        fac_image_free(&to);
        free(from.rgb);
    }
    fac_image from = pattern(3, 3), to = { 0 };
    assert_int_equal(fac_image_resize(&from, 0, 4, FAC_BILINEAR, &to, NULL), FAC_E_ARGUMENT);
    assert_int_equal(fac_image_resize(&from, 4, 1 << 30, FAC_NEAREST, &to, NULL),
                     FAC_E_UNSUPPORTED);
    assert_int_equal(fac_image_resize(&(fac_image){ 0 }, 4, 4, FAC_BICUBIC, &to, NULL),
                     FAC_E_ARGUMENT);
    assert_null(to.rgb);
    free(from.rgb);
}

/* A constant picture stays constant: the fixed-point weights of every pixel add up to one. */
static void flat_pictures_stay_flat(void **state) {
    (void)state;
    fac_image from = { 61, 47, malloc(3 * 61 * 47) };
    assert_non_null(from.rgb);
    for (int grey = 0; grey < 256; grey += 51) {
        memset(from.rgb, grey, 3 * 61 * 47);
        for (int size = 1; size < 150; size += 7) {
            fac_image to = { 0 };
            assert_int_equal(fac_image_resize(&from, size, 150 - size,
                                              size % 2 ? FAC_BICUBIC : FAC_BILINEAR, &to, NULL),
                             FAC_OK);
            for (int i = 0; i < 3 * to.width * to.height; i++) assert_int_equal(to.rgb[i], grey);
            fac_image_free(&to);
        }
    }
    free(from.rgb);
}

static void crops_are_black_outside(void **state) {
    (void)state;
    fac_image from = pattern(6, 4), to = { 0 };
    for (int x = -9; x < 9; x += 3)
        for (int y = -7; y < 7; y += 2) {
            assert_int_equal(fac_image_crop(&from, x, y, 5, 3, &to, NULL), FAC_OK);
            for (int r = 0; r < 3; r++)
                for (int c = 0; c < 5; c++) {
                    bool inside = x + c >= 0 && x + c < 6 && y + r >= 0 && y + r < 4;
                    assert_int_equal(to.rgb[3 * (r * 5 + c) + 1],
                                     inside ? from.rgb[3 * ((y + r) * 6 + x + c) + 1] : 0);
                }
            fac_image_free(&to);
        }
    free(from.rgb);
}

static void saved_files_read_back(void **state) {
    (void)state;
    static const char *const names[] = { "test_image_out.png", "test_image_out.ppm" };
    fac_image image = pattern(19, 8), back = { 0 };
    for (int i = 0; i < 2; i++) {
        fac_error err = { 0 };
#ifndef FAC_HAVE_PNG
        if (i == 0) continue;
#endif
        if (fac_image_save(&image, names[i], &err) || fac_image_load(names[i], &back, &err))
            fail_msg("%s", err.text);
        assert_int_equal(back.width, 19);
        assert_int_equal(distance(back.rgb, image.rgb, 3 * 19 * 8), 0);
        fac_image_free(&back);
        unlink(names[i]);
    }
    assert_int_equal(fac_image_save(&image, "a.gif", NULL), FAC_E_ARGUMENT);
    assert_int_not_equal(fac_image_save(&image, "/nowhere/a.ppm", NULL), FAC_OK);
    assert_int_equal(fac_image_save(&(fac_image){ 0 }, "a.ppm", NULL), FAC_E_ARGUMENT);
    free(image.rgb);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_give_pillows_pixels),
        cmocka_unit_test(cut_off_files_are_errors),
        cmocka_unit_test(damaged_files_are_errors_or_pictures),
        cmocka_unit_test(memory_may_end_anywhere),
        cmocka_unit_test(what_is_no_image_is_refused),
        cmocka_unit_test(too_many_pixels_are_refused),
        cmocka_unit_test(resizes_are_pillows),
        cmocka_unit_test(flat_pictures_stay_flat),
        cmocka_unit_test(crops_are_black_outside),
        cmocka_unit_test(saved_files_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
