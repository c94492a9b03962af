/* Mosaics of feature maps: where pictures and their numbers lie, colours by sign and size, dead
 * channels, what is refused. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>
#include "facula/view.h"

enum { EDGE = 4, HEAD = 8 }; /* margin, and the line with the number */

static fac_tensor *tensor_of(fac_dims d, const float *x) {
    fac_error err = { 0 };
    fac_tensor *t = NULL;
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, d, &t, &err), FAC_OK);
    assert_int_equal(fac_tensor_write(t, x, (size_t)fac_dims_count(&d) * sizeof *x, &err), FAC_OK);
    return t;
}

static const uint8_t *at(const fac_image *i, int x, int y) {
    assert_true(x < i->width && y < i->height);
    return i->rgb + 3 * (y * i->width + x);
}

static int brightness(const uint8_t *p) { return p[0] + p[1] + p[2]; }

static bool has_red(const fac_image *i, int x, int y, int w, int h) {
    for (int k = 0; k < w * h; k++) {
        const uint8_t *p = at(i, x + k % w, y + k / w);
        if (p[0] > 200 && p[1] < 100 && p[2] < 100) return true;
    }
    return false;
}

/* Two samples of three channels: one positive, one negative, one dead. */
static void channels_are_pictures(void **state) {
    (void)state;
    const float x[2][3][4] = { { { 9, 9, 9, 9 }, { 9, 9, 9, 9 }, { 9, 9, 9, 9 } },
                               { { 0, 1, 2, 4 }, { 0, -1, -2, -4 }, { 0, 0, 0, 0 } } };
    fac_tensor *t = tensor_of(fac_shape(2, 3, 2, 2), &x[0][0][0]);
    fac_error err = { 0 };
    fac_image image = { 0 };
    const fac_mosaic how = { .columns = 2, .zoom = 10, .sample = 1 };
    assert_int_equal(fac_image_mosaic(t, &how, &image, &err), FAC_OK);
    assert_int_equal(image.width, EDGE + 2 * (20 + EDGE));
    assert_int_equal(image.height, EDGE + 2 * (20 + HEAD + EDGE));
    const int top = EDGE + HEAD, right = EDGE + 20 + EDGE, second = top + 20 + EDGE + HEAD;
    assert_int_equal(brightness(at(&image, EDGE + 1, top + 1)), 0);
    assert_true(brightness(at(&image, EDGE + 11, top + 1)) > 0);
    assert_true(brightness(at(&image, EDGE + 11, top + 11)) >
                brightness(at(&image, EDGE + 1, top + 11)));
    assert_true(brightness(at(&image, EDGE + 1, top + 11)) >
                brightness(at(&image, EDGE + 11, top + 1)));
    assert_true(at(&image, EDGE + 11, top + 1)[0] >
                at(&image, EDGE + 11, top + 1)[2]); /* positive is warm */
    assert_true(at(&image, right + 11, top + 1)[0] <
                at(&image, right + 11, top + 1)[2]); /* negative is cold */
    assert_int_equal(brightness(at(&image, EDGE + 15, second + 15)), 0);
    assert_true(has_red(&image, EDGE, second - HEAD, 20, HEAD - 1));
    assert_false(has_red(&image, EDGE, EDGE, 20, HEAD - 1));
    fac_image_free(&image);
    fac_tensor_free(t);
}

/* The digits 1 and 0 of channel 10 as their pixels. */
static void numbers_can_be_read(void **state) {
    static const char *const ten[] = { ".#. ###", "##. #.#", ".#. #.#", ".#. #.#", "### ###" };
    (void)state;
    float x[11][4];
    for (int k = 0; k < 11 * 4; k++) x[k / 4][k % 4] = 1;
    fac_tensor *t = tensor_of(fac_shape(1, 11, 2, 2), &x[0][0]);
    fac_error err = { 0 };
    fac_image image = { 0 };
    assert_int_equal(fac_image_mosaic(t, &(fac_mosaic){ .columns = 1, .zoom = 8 }, &image, &err),
                     FAC_OK);
    const int top = EDGE + 10 * (16 + HEAD + EDGE);
    for (int row = 0; row < 5; row++)
        for (int column = 0; column < 7; column++)
            assert_int_equal(brightness(at(&image, EDGE + column, top + row)) > 300,
                             ten[row][column] == '#');
    fac_image_free(&image);
    fac_tensor_free(t);
}

static void sizes_are_checked(void **state) {
    (void)state;
    const float x[4] = { 1, NAN, 3, 4 };
    fac_tensor *two = tensor_of(fac_shape(2, 2), x), *three = tensor_of(fac_shape(1, 2, 2), x);
    fac_error err = { 0 };
    fac_image image = { 0 };
    assert_int_equal(fac_image_mosaic(two, NULL, &image, &err), FAC_E_SHAPE);
    assert_int_equal(fac_image_mosaic(three, &(fac_mosaic){ .sample = 1 }, &image, &err),
                     FAC_E_SHAPE);
    assert_int_equal(fac_image_mosaic(three, &(fac_mosaic){ .zoom = 8000 }, &image, &err),
                     FAC_E_ARGUMENT);
    assert_null(image.rgb);
    assert_int_equal(fac_image_mosaic(three, &(fac_mosaic){ .zoom = 4 }, &image, &err), FAC_OK);
    assert_true(image.width == 16 && image.height == 16); /* no number above a picture of rows */
    assert_true(has_red(&image, EDGE + 4, EDGE, 4, 4));   /* NaN */
    fac_image_free(&image);
    fac_tensor_free(two);
    fac_tensor_free(three);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(channels_are_pictures),
                                        cmocka_unit_test(numbers_can_be_read),
                                        cmocka_unit_test(sizes_are_checked) };
    return cmocka_run_group_tests_name("mosaic", tests, NULL, NULL);
}
