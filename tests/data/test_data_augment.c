/* Augmentation: its text form, what each kind does to an image, that kinds do not disturb each
 * other, mixtures and their shares. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "data/image/augment.h"
#include "facula/facula.h"
#include "golden/augment.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

enum { COUNT = 40, SIDE = 16, PLANE = SIDE * SIDE };

static int64_t labels_of[COUNT];
static uint8_t pixels[COUNT * PLANE];

/* COUNT images of which each is pixel(y, x); normalized, a byte v is v / 255. */
static fac_dataset images(uint8_t (*pixel)(int y, int x)) {
    for (int i = 0; i < COUNT; i++) {
        labels_of[i] = i % 10;
        for (int k = 0; k < PLANE; k++) pixels[i * PLANE + k] = pixel(k / SIDE, k % SIDE);
    }
    return (fac_dataset){ .count = COUNT,
                          .item = fac_shape(1, SIDE, SIDE),
                          .classes = 10,
                          .bytes = pixels,
                          .labels = labels_of };
}

static uint8_t bright(int y, int x) {
    (void)y;
    (void)x;
    return 200;
}
static uint8_t own(int y, int x) { return (uint8_t)(y * SIDE + x); }
static uint8_t ramp(int y, int x) {
    (void)y;
    return (uint8_t)(10 * x + 20);
}
static uint8_t bowl(int y, int x) {
    const int dy = 2 * y - SIDE + 1, dx = 2 * x - SIDE + 1;
    return (uint8_t)(dy * dy / 4 + dx * dx / 4);
}

/* All images of an epoch as bytes again. */
static float *augmented(const fac_dataset *d, const fac_augment *a, int64_t epoch) {
    static float all[COUNT * PLANE];
    fac_tensor *x = NULL, *labels = NULL;
    OK(fac_batch(d, &(fac_batches){ .size = COUNT, .seed = 3, .augment = *a }, epoch, 0, &x,
                 &labels, err));
    fac_tensor_read(x, all, sizeof all, NULL);
    for (int i = 0; i < COUNT * PLANE; i++) all[i] *= 255;
    fac_tensor_free(x);
    fac_tensor_free(labels);
    return all;
}

static void texts_are_parsed(void **state) {
    (void)state;
    const fac_dims small = fac_shape(1, 28, 28), large = fac_shape(3, 64, 32);
    fac_augment a = { 0 };
    OK(fac_augment_parse("crop,flip,cutout", &small, &a, err));
    assert_true(a.crop == 2 && a.flip && a.cutout == 7 && a.mixup == 0 && a.erase == 0);
    OK(fac_augment_parse("crop,cutout,mixup,colour,resize,rotate,hue,erase", &large, &a, err));
    assert_true(a.crop == 4 && !a.flip && a.cutout == 8 && a.mixup == 0.2 && a.contrast == 0.4 &&
                a.scale == 0.5);
    assert_true(a.rotate == 10 && a.hue == 0.1 && a.erase == 0.5 && a.brightness == 0.4 &&
                a.saturation == 0.4);
    OK(fac_augment_parse("crop=3,mixup=1.5,colour=0.2,saturation=0.9", &small, &a, err));
    assert_true(a.crop == 3 && a.mixup == 1.5 && a.brightness == 0.2 && a.saturation == 0.9 &&
                !a.flip);
    static const struct {
        const char *list, *says;
    } wrong[] = { { "crop,flop",
                    "no augmentation \"flop\"; there are crop, flip, resize, rotate, colour" },
                  { "crop=1.5", "whole" },
                  { "crop=", "number" },
                  { "mixup=-1", "above 0" },
                  { "hue=0.6", "at most 0.5" },
                  { "crop=2x", "number" },
                  { "crop,,flip", "no augmentation \"\"" },
                  { "crops", "\"crops\"" },
                  { "cutout=nan", "number" } };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        fac_error e = { 0 };
        fac_augment same = a;
        assert_int_equal(fac_augment_parse(wrong[k].list, &small, &a, &e), FAC_E_ARGUMENT);
        if (!strstr(e.text, wrong[k].says))
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", wrong[k].list, e.text, wrong[k].says);
        assert_memory_equal(&same, &a, sizeof a);
    }
}

static void a_square_is_cut_out(void **state) {
    (void)state;
    const fac_dataset d = images(bright);
    int whole = 0;
    for (int64_t epoch = 0; epoch < 10; epoch++) {
        const float *x = augmented(&d, &(fac_augment){ .cutout = 6 }, epoch);
        for (int i = 0; i < COUNT; i++, x += PLANE) {
            int n = 0, top = SIDE, bottom = -1, left = SIDE, right = -1;
            for (int k = 0; k < PLANE; k++) {
                if (x[k] != 0) continue;
                n++;
                top = k / SIDE < top ? k / SIDE : top;
                bottom = k / SIDE > bottom ? k / SIDE : bottom;
                left = k % SIDE < left ? k % SIDE : left;
                right = k % SIDE > right ? k % SIDE : right;
            }
            assert_true(n >= 9 && n <= 36 &&
                        n == (bottom - top + 1) *
                                 (right - left + 1)); /* a corner is 3 x 3 at least */
            whole += n == 36;
        }
    }
    assert_true(whole > 120 && whole < 240); /* (11/16)^2 of 400 lie inside: 189 */
}

static void rectangles_are_erased(void **state) {
    (void)state;
    const fac_dataset d = images(bright);
    int erased = 0;
    for (int64_t epoch = 0; epoch < 10; epoch++) {
        const float *x = augmented(&d, &(fac_augment){ .erase = 0.25 }, epoch);
        for (int i = 0; i < COUNT; i++) {
            int n = 0;
            for (int k = 0; k < PLANE; k++) n += x[i * PLANE + k] == 0;
            assert_true(!n || (n > 0.01 * PLANE && n < 0.4 * PLANE));
            erased += n > 0;
        }
    }
    assert_true(erased > 65 && erased < 135);
}

/* A window of a ramp is a ramp: how steep says how wide it was. */
static void windows_are_resized(void **state) {
    (void)state;
    const fac_dataset d = images(ramp);
    double least = 1, most = 0;
    for (int64_t epoch = 0; epoch < 5; epoch++) {
        const float *x = augmented(&d, &(fac_augment){ .scale = 0.3 }, epoch);
        for (int i = 0; i < COUNT; i++, x += PLANE) {
            const double slope = (double)(x[12] - x[3]) / 9 / 10;
            for (int k = 1; k < PLANE; k++) {
                assert_true(x[k] > 19.9f && x[k] < 170.1f);
                if (k % SIDE > 1 && k % SIDE < SIDE - 1)
                    assert_true(fabs((double)(x[k] - x[k - 1]) / 10 - slope) < 1e-3);
            }
            least = fmin(least, slope);
            most = fmax(most, slope);
        }
    }
    assert_true(least > sqrt(0.3 * 0.75) - 1e-3 && least < 0.65 && most > 0.9 && most <= 1.001);
}

/* A bowl looks the same from every side; a picture of places does not. */
static void images_are_rotated(void **state) {
    (void)state;
    fac_dataset d = images(bowl);
    const fac_augment a = { .rotate = 40 };
    const float *x = augmented(&d, &a, 0);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < PLANE; k++) {
            const int y = k / SIDE, z = k % SIDE;
            if (y < 4 || y > 11 || z < 4 || z > 11) continue;
            assert_true(fabs((double)x[i * PLANE + k] - bowl(y, z)) < 1.5);
        }
    d = images(ramp);
    int rotated = 0;
    x = augmented(&d, &a, 0);
    for (int i = 0; i < COUNT; i++)
        rotated += fabs((double)(x[i * PLANE + 5 * SIDE + 8] - x[i * PLANE + 10 * SIDE + 8])) > 4;
    assert_true(rotated > 30); /* 5 rows at 0.9 a degree: above 4 beyond 5 of 40 degrees */
}

/* What is cut out leaves the rest where it was. */
static void kinds_do_not_disturb_each_other(void **state) {
    (void)state;
    static float first[COUNT * PLANE];
    const fac_dataset d = images(own);
    const fac_augment a = { .crop = 2, .flip = true },
                      b = { .crop = 2, .flip = true, .cutout = 4, .erase = 0.5 };
    memcpy(first, augmented(&d, &a, 7), sizeof first);
    const float *x = augmented(&d, &b, 7);
    int same = 0;
    for (int k = 0; k < COUNT * PLANE; k++) {
        assert_true(x[k] == first[k] || x[k] == 0);
        same += x[k] == first[k];
    }
    assert_true(same > COUNT * PLANE / 2 && same < COUNT * PLANE);
    assert_memory_equal(first, augmented(&d, &a, 7), sizeof first);
    assert_memory_not_equal(first, augmented(&d, &a, 8), sizeof first);
}

static void colours_are_torchvisions(void **state) {
    (void)state;
    float x[36];
    fac_augment a = { 0 };
    fac_drawn s = { .seed = 11 };
    memcpy(x, golden_before, sizeof x);
    /* strengths by which the draws of some sample give the factors of the golden numbers */
    for (double *k[] = { &a.brightness, &a.contrast, &a.saturation, &a.hue }; a.hue == 0;
         s.sample++) {
        static const double want[] = { 0.2, -0.3, 0.5, 0.1 };
        bool fits = true;
        for (int i = 0; i < 4; i++) {
            *k[i] = want[i] / (2 * fac_sample_draw(&s, (fac_draw)(FAC_DRAW_BRIGHTNESS + i)) - 1);
            fits = fits && *k[i] > 0 && *k[i] <= (i < 3 ? 1 : 0.5);
        }
        if (fits) break;
        a.hue = 0;
    }
    fac_augment_colour(&a, &s, 3, 12, x);
    for (int i = 0; i < 36; i++)
        if (!(fabsf(x[i] - golden_after[i]) < 2e-3f))
            fail_msg("%d: %g, torchvision has %g", i, (double)x[i], (double)golden_after[i]);
}

/* ---- mixup ---- */

static void shares_have_their_distribution(void **state) {
    (void)state;
    static const double alphas[] = { 0.05, 0.2, 1, 3 };
    for (int k = 0; k < 4; k++) {
        enum { N = 20000 };
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < N; i++) {
            const double x = fac_mixup_share(alphas[k], &(fac_drawn){ 5, 2, i });
            assert_true(x >= 0 && x <= 1);
            sum += x;
            squares += (x - 0.5) * (x - 0.5);
        }
        const double variance = 1 / (4 * (2 * alphas[k] + 1));
        assert_true(fabs(sum / N - 0.5) < 0.012 && fabs(squares / N / variance - 1) < 0.03);
    }
}

/* Sample i is the number i + 1 alone, so a mixture shows its parts. */
static void samples_and_labels_are_mixed(void **state) {
    (void)state;
    enum { N = 50, CLASSES = 5 };
    float values[N];
    int64_t labels[N], used[N] = { 0 };
    for (int i = 0; i < N; i++) {
        values[i] = (float)(i + 1);
        labels[i] = i % CLASSES;
    }
    const fac_dataset d = {
        .count = N, .item = fac_shape(1), .classes = CLASSES, .values = values, .labels = labels
    };
    fac_batches b = { .size = 20, .seed = 1, .augment = { .mixup = 1 } };
    for (int64_t index = 0; index < 3; index++) {
        fac_tensor *x = NULL, *t = NULL;
        OK(fac_batch(&d, &b, 4, index, &x, &t, err));
        const int64_t n = index < 2 ? 20 : 10;
        const fac_type type = fac_tensor_type(t), want = { FAC_F32, fac_shape(n, CLASSES) };
        assert_true(type.dtype == want.dtype && fac_dims_equal(&type.dims, &want.dims));
        for (int64_t i = 0; i < n; i++) {
            const fac_drawn s = { 1, 4, index * 20 + i };
            const int64_t with = fac_mixup_partner(&d, &s);
            const double share = fac_mixup_share(1, &s),
                         got = (double)((const float *)fac_tensor_data(x))[i];
            const float *row = (const float *)fac_tensor_data(t) + i * CLASSES;
            double sum = 0;
            assert_true(fabs(got - (share * (double)(s.sample + 1) +
                                    (1 - share) * (double)(with + 1))) < 1e-4);
            for (int c = 0; c < CLASSES; c++) {
                const double own_part = s.sample % CLASSES == c ? share : 0,
                             other = with % CLASSES == c ? 1 - share : 0;
                assert_true(fabs((double)row[c] - own_part - other) < 1e-6);
                sum += (double)row[c];
            }
            assert_true(fabs(sum - 1) < 1e-6);
            used[with]++;
        }
        fac_tensor_free(x);
        fac_tensor_free(t);
    }
    for (int i = 0; i < N; i++) assert_int_equal(used[i], 1);
}

static void impossible_augmentation_is_refused(void **state) {
    (void)state;
    float values[4] = { 0 };
    int64_t labels[4] = { 0, 1, 0, 2 };
    const fac_dataset points = {
        .count = 4, .item = fac_shape(1), .classes = 2, .values = values, .labels = labels
    };
    const fac_dataset pictures = images(bright);
    static const struct {
        fac_augment a;
        bool points;
        const char *says;
    } wrong[] = { { { .flip = true }, true, "for images" },
                  { { .cutout = 3 }, true, "for images" },
                  { { .crop = -1 }, false, "crop" },
                  { { .hue = 0.7 }, false, "hue is 0.7" },
                  { { .scale = 1.5 }, false, "resize" },
                  { { .mixup = NAN }, false, "mixup" },
                  { { .scale = 0.5, .ratio = 0.5 }, false, "ratio" },
                  { { .mixup = 1 }, true, "sample 3 has label 2" } };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        fac_error e = { 0 };
        fac_tensor *x = NULL, *t = NULL;
        const fac_batches b = { .size = 4, .augment = wrong[k].a };
        assert_int_not_equal(fac_batch(wrong[k].points ? &points : &pictures, &b, 0, 0, &x, &t, &e),
                             FAC_OK);
        if (!strstr(e.text, wrong[k].says))
            fail_msg("\"%s\" does not say \"%s\"", e.text, wrong[k].says);
        assert_true(!x && !t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_parsed),
        cmocka_unit_test(a_square_is_cut_out),
        cmocka_unit_test(rectangles_are_erased),
        cmocka_unit_test(windows_are_resized),
        cmocka_unit_test(images_are_rotated),
        cmocka_unit_test(kinds_do_not_disturb_each_other),
        cmocka_unit_test(colours_are_torchvisions),
        cmocka_unit_test(shares_have_their_distribution),
        cmocka_unit_test(samples_and_labels_are_mixed),
        cmocka_unit_test(impossible_augmentation_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
