/* The text form of an augmentation: "crop=2,flip,cutout=8". */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/text.h"
#include "data/image/augment.h"

/* What a name sets when no number is given; SIDE: by the smaller side of the images. */
enum { SIDE = -1 };

static void set_crop(fac_augment *a, double x) { a->crop = (int)x; }
static void set_flip(fac_augment *a, double x) { a->flip = x != 0; }
static void set_resize(fac_augment *a, double x) { a->scale = x; }
static void set_rotate(fac_augment *a, double x) { a->rotate = x; }
static void set_colour(fac_augment *a, double x) {
    a->brightness = a->contrast = a->saturation = x;
}
static void set_brightness(fac_augment *a, double x) { a->brightness = x; }
static void set_contrast(fac_augment *a, double x) { a->contrast = x; }
static void set_saturation(fac_augment *a, double x) { a->saturation = x; }
static void set_hue(fac_augment *a, double x) { a->hue = x; }
static void set_cutout(fac_augment *a, double x) { a->cutout = (int)x; }
static void set_erase(fac_augment *a, double x) { a->erase = x; }
static void set_mixup(fac_augment *a, double x) { a->mixup = x; }

static void set_shift(fac_augment *a, double x) { a->shift = x; }
static void set_gain(fac_augment *a, double x) { a->gain = x; }
static void set_noise(fac_augment *a, double x) { a->noise = x; }

static const struct kind {
    const char *name;
    void (*set)(fac_augment *a, double x);
    double usual, share; /* SIDE: this share of the side */
    bool whole;          /* a number of pixels */
    double most;
} kinds[] = {
    { "crop", set_crop, SIDE, 1.0 / 8, true, 1 << 20 },
    { "flip", set_flip, 1, 0, true, 1 },
    { "resize", set_resize, 0.5, 0, false, 1 },
    { "rotate", set_rotate, 10, 0, false, 180 },
    { "colour", set_colour, 0.4, 0, false, 100 },
    { "brightness", set_brightness, 0.4, 0, false, 100 },
    { "contrast", set_contrast, 0.4, 0, false, 100 },
    { "saturation", set_saturation, 0.4, 0, false, 100 },
    { "hue", set_hue, 0.1, 0, false, 0.5 },
    { "cutout", set_cutout, SIDE, 1.0 / 4, true, 1 << 20 },
    { "erase", set_erase, 0.5, 0, false, 1 },
    { "mixup", set_mixup, 0.2, 0, false, 1000 },
    { "shift", set_shift, 0.1, 0, false, 1 },
    { "gain", set_gain, 6, 0, false, 60 },
    { "noise", set_noise, 0.05, 0, false, 100 },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static fac_status unknown(const char *name, int length, fac_error *err) {
    fac_text all = { 0 };
    for (int k = 0; k < KINDS; k++) fac_text_print(&all, "%s%s", k ? ", " : "", kinds[k].name);
    if (length > 99) length = 99;
    fac_status status =
        fac_raise(err, FAC_E_ARGUMENT, "there is no augmentation \"%.*s\"; there are %s", length,
                  name, all.failed ? "others" : all.s);
    fac_text_free(&all);
    return status;
}

/* crop of images up to 28 wide is 2 and not 3: digits and clothes fill them. */
static double usual(const struct kind *k, const fac_dims *item) {
    if (k->usual != SIDE) return k->usual;
    const double side = item->n == 3 ? fmin((double)item->d[1], (double)item->d[2]) : 0;
    const double pixels = side <= 28 && k->set == set_crop ? 2 : (double)(int64_t)(side * k->share);
    return pixels < 1 ? 1 : pixels;
}

/* One "name" or "name=number" of n characters. */
static fac_status parse_one(const char *at, size_t n, const fac_dims *item, fac_augment *a,
                            fac_error *err) {
    const char *equals = memchr(at, '=', n);
    const size_t length = equals ? (size_t)(equals - at) : n;
    int k = 0;
    while (k < KINDS && (strlen(kinds[k].name) != length || memcmp(kinds[k].name, at, length))) k++;
    if (k == KINDS) return unknown(at, (int)length, err);
    double x = usual(&kinds[k], item);
    if (equals) {
        char *end = NULL;
        errno = 0;
        x = strtod(equals + 1, &end);
        const bool fits =
            end == at + n && end > equals + 1 && !errno && x > 0 && x <= kinds[k].most;
        if (!fits || (kinds[k].whole && x != (double)(int64_t)x))
            return fac_raise(err, FAC_E_ARGUMENT,
                             "augmentation \"%.*s\": %s needs a %snumber above 0, at most %g",
                             n < 99 ? (int)n : 99, at, kinds[k].name,
                             kinds[k].whole ? "whole " : "", kinds[k].most);
    }
    kinds[k].set(a, x);
    return FAC_OK;
}

fac_status fac_augment_parse(const char *list, const fac_dims *item, fac_augment *out,
                             fac_error *err) {
    fac_augment a = { 0 };
    for (const char *at = strcmp(list, "none") ? list : ""; *at;) {
        const size_t n = strcspn(at, ",");
        FAC_TRY(parse_one(at, n, item, &a, err));
        at += n + (at[n] == ',');
    }
    *out = a;
    return FAC_OK;
}
