/* Preparing photos: tensors by their formula, the shorter side and then the centre, presets. */
#include "image_check.h"

/* ---- preprocessing ---- */

static const fac_preset *preset(const char *name) {
    for (const fac_preset *p = fac_presets; p->name; p++)
        if (strcmp(p->name, name) == 0) return p;
    fail_msg("no preset %s", name);
    return NULL;
}

static fac_tensor *tensor_of(const fac_image *image, const fac_preprocess *how, fac_dims dims) {
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    if (fac_image_tensor(image, how, &t, &err)) fail_msg("%s", err.text);
    fac_type type = fac_tensor_type(t);
    assert_int_equal(type.dtype, FAC_F32);
    assert_true(fac_dims_equal(&type.dims, &dims));
    return t;
}

static void tensors_follow_the_formula(void **state) {
    (void)state;
    fac_image image = pattern(5, 4);
    static const struct {
        fac_preprocess how;
        double scale, mean[3], std[3];
    } cases[] = {
        { { 0 }, 1 / 255.0, { 0 }, { 1, 1, 1 } },
        { { .scale = 2, .mean = { 1, 2, 3 }, .std = { 4, 5, 6 } }, 2, { 1, 2, 3 }, { 4, 5, 6 } },
        { { .scale = 1, .mean = { 104, 117, 123 }, .bgr = true },
          1,
          { 104, 117, 123 },
          { 1, 1, 1 } },
        { { .scale = 1, .mean = { 1, 0, 7 }, .bgr = true, .nhwc = true },
          1,
          { 1, 0, 7 },
          { 1, 1, 1 } },
        { { .nhwc = true }, 1 / 255.0, { 0 }, { 1, 1, 1 } },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const fac_preprocess *how = &cases[k].how;
        fac_tensor *t =
            tensor_of(&image, how, how->nhwc ? fac_shape(1, 4, 5, 3) : fac_shape(1, 3, 4, 5));
        const float *y = fac_tensor_data(t);
        for (int i = 0; i < 20; i++)
            for (int c = 0; c < 3; c++) {
                double x = image.rgb[3 * i + (how->bgr ? 2 - c : c)];
                double expected = (x * cases[k].scale - cases[k].mean[c]) / cases[k].std[c];
                assert_float_equal(y[how->nhwc ? 3 * i + c : 20 * c + i], expected, 1e-5);
            }
        fac_tensor_free(t);
    }

    fac_tensor *grey =
        tensor_of(&image, &(fac_preprocess){ .scale = 1, .grey = true }, fac_shape(1, 1, 4, 5));
    for (int i = 0; i < 20; i++) {
        const uint8_t *p = image.rgb + 3 * i;
        assert_float_equal(((const float *)fac_tensor_data(grey))[i],
                           0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2], 0.51);
    }
    fac_tensor_free(grey);
    free(image.rgb);
}

/* Resize to a shorter side and crop the centre, step by step: 300 x 451 becomes 256 x 384, of which
 * columns 16 and so on. */
static void shorter_side_then_centre(void **state) {
    static const int sides[] = { 384, 256 }, before[] = { 80, 16 };
    (void)state;
    for (int tall = 0; tall < 2; tall++) {
        fac_image image = tall ? pattern(300, 451) : pattern(451, 300), small = { 0 },
                  centre = { 0 };
        const fac_preset *p = preset("efficientnet-lite0");
        fac_tensor *t = tensor_of(&image, &p->how, fac_shape(1, 3, 224, 224));
        assert_int_equal(
            fac_image_resize(&image, sides[tall], sides[!tall], FAC_BICUBIC, &small, NULL), FAC_OK);
        assert_int_equal(
            fac_image_crop(&small, before[tall], before[!tall], 224, 224, &centre, NULL), FAC_OK);
        const float *y = fac_tensor_data(t);
        for (int i = 0; i < 224 * 224; i++)
            assert_float_equal(y[2 * 224 * 224 + i], (centre.rgb[3 * i + 2] - 127) / 128.0, 1e-6);
        fac_tensor_free(t);
        fac_image_free(&small);
        fac_image_free(&centre);
        free(image.rgb);
    }
}

static void presets_have_names_and_help(void **state) {
    (void)state;
    static const char *const promised[] = {
        "imagenet",
        "imagenet-bicubic",
        "efficientnet-lite0",
        "tf",
        "tflite",
        "caffe",
        "darknet",
        "unit",
        "mnist",
    };
    for (size_t i = 0; i < sizeof promised / sizeof *promised; i++)
        assert_non_null(preset(promised[i])->help);
    fac_image image = pattern(1, 3);
    for (const fac_preset *p = fac_presets; p->name; p++) { /* each takes the oddest photo */
        fac_tensor *t = NULL;
        assert_int_equal(fac_image_tensor(&image, &p->how, &t, NULL), FAC_OK);
        fac_tensor_free(t);
    }
    fac_tensor *t = NULL;
    assert_int_equal(fac_image_tensor(&image, &(fac_preprocess){ .resize = -1 }, &t, NULL),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_image_tensor(&(fac_image){ 0 }, &(fac_preprocess){ 0 }, &t, NULL),
                     FAC_E_ARGUMENT);
    assert_null(t);
    free(image.rgb);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_follow_the_formula),
        cmocka_unit_test(shorter_side_then_centre),
        cmocka_unit_test(presets_have_names_and_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
