/* Pictures that tests of images make. */
#ifndef FACULA_IMAGE_CHECK_H
#define FACULA_IMAGE_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "allocations.h"
#include "facula/data/image.h"
#include "golden/image.h"

/* The same formula as pattern() in tests/golden/make/golden_image.py. */
static fac_image pattern(int width, int height) {
    fac_image image = { width, height, malloc(3 * (size_t)width * (size_t)height) };
    assert_non_null(image.rgb);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                image.rgb[3 * (y * width + x) + c] =
                    (uint8_t)(x * 31 + y * 17 + x * y * 7 + c * 85);
    return image;
}
#endif
