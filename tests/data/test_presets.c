/* Preprocessing as text: reading, writing, reading back; images in other element types; images of
 * data sets. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/data/data.h"
#include "facula/data/image.h"
#include "facula/nn/zoo.h"
#include "allocations.h"
#include "base/rng.h"
#include "data/sets/dataset_internal.h"
#include "fresh_seed.h"

static fac_preprocess parsed(const char *spec) {
    fac_preprocess how = { 0 };
    fac_error err = { 0 };
    if (fac_preprocess_parse(spec, &how, &err)) fail_msg("%s: %s", spec, err.text);
    return how;
}

static void assert_refused(const char *spec, const char *text) {
    fac_preprocess how = { .resize = 77 };
    fac_error err = { 0 };
    assert_int_equal(fac_preprocess_parse(spec, &how, &err), FAC_E_ARGUMENT);
    assert_string_equal(err.text, text);
    assert_int_equal(how.resize, 77);
}

static void assert_prints(const fac_preprocess *how, const char *text) {
    char got[FAC_PREPROCESS_TEXT];
    assert_int_equal(fac_preprocess_print(how, got, sizeof got), (int)strlen(text));
    assert_string_equal(got, text);
}

static void names(void **state) {
    (void)state;
    assert_ptr_equal(fac_preset_find("imagenet"), &fac_presets[0]);
    assert_null(fac_preset_find("imagene"));
    assert_null(fac_preset_find(NULL));
    for (const fac_zoo *z = fac_zoo_models; z->name; z++)
        assert_non_null(fac_preset_find(z->preset));
}

/* Every preset is its own text, and is found by what it does. */
static void presets_read_back(void **state) {
    (void)state;
    for (const fac_preset *p = fac_presets; p->name; p++) {
        char text[FAC_PREPROCESS_TEXT], again[FAC_PREPROCESS_TEXT];
        assert_true(fac_preprocess_print(&p->how, text, sizeof text) > 0);
        const fac_preprocess how = parsed(text), named = parsed(p->name);
        fac_preprocess_print(&how, again, sizeof again);
        assert_string_equal(text, again);
        assert_ptr_equal(fac_preprocess_preset(&how), p);
        assert_ptr_equal(fac_preprocess_preset(&named), p);
    }
}

static void items(void **state) {
    (void)state;
    fac_preprocess how = parsed("size=224x200,order=BGR,range=0..255,mean=104,117,123");
    assert_true(how.resize == 0 && how.height == 224 && how.width == 200 && how.bgr &&
                how.scale == 1);
    assert_true(how.mean[0] == 104 && how.mean[1] == 117 && how.mean[2] == 123 && how.std[0] == 0 &&
                how.how == FAC_BILINEAR);
    assert_prints(&how, "size=224x200,interpolation=bilinear,order=bgr,range=0..255,"
                        "mean=104,117,123");
    /* blanks between as well */
    how = parsed("caffe crop=227 interpolation=bicubic layout=nhwc");
    assert_true(how.resize == 256 && how.height == 227 && how.width == 227 && how.bgr &&
                how.how == FAC_BICUBIC && how.nhwc);
    /* the range comes first wherever it stands */
    how = parsed("mean=0.5,std=0.25,range=-1..1,size=keep");
    assert_true(how.scale == 1 / 127.5 && how.mean[2] == 1.5 && how.std[1] == 0.25 &&
                how.height == 0);
    how = parsed("range=-1..1");
    assert_prints(&how, "size=keep,interpolation=bilinear,order=rgb,range=-1..1");
    how = parsed("scale=1/128,mean=-.5,1e-3,-0.25,order=grey,size=40,crop=32x48");
    assert_true(how.scale == 1 / 128.0 && how.mean[0] == -.5 && how.mean[1] == 1e-3 && how.grey &&
                how.resize == 40);
    assert_prints(&how, "size=40,crop=32x48,interpolation=bilinear,order=grey,scale=0.0078125,"
                        "mean=-0.5,0.001,-0.25");
}

static void refusals(void **state) {
    (void)state;
    assert_refused("", "preprocessing: the text is empty");
    assert_refused(" , ", "preprocessing: the text is empty");
    assert_refused("nope", "there is no preset \"nope\"");
    assert_refused("caffe,tf", "preprocessing: \"tf\" is no KEY=VALUE");
    assert_refused("colour=red",
                   "preprocessing has no \"colour\"; it has size, crop, interpolation, order, "
                   "range, scale, mean, "
                   "std, layout");
    assert_refused("size=0", "size is N, HxW (at most 65536) or keep, not \"0\"");
    assert_refused("size=224x", "size is N, HxW (at most 65536) or keep, not \"224x\"");
    assert_refused("size=65537", "size is N, HxW (at most 65536) or keep, not \"65537\"");
    assert_refused("size=-3", "size is N, HxW (at most 65536) or keep, not \"-3\"");
    assert_refused("crop=big", "crop is N or HxW (at most 65536), not \"big\"");
    assert_refused("interpolation=lanczos",
                   "interpolation is nearest, bilinear or bicubic, not \"lanczos\"");
    assert_refused("order=gbr", "order is rgb, bgr or grey, not \"gbr\"");
    assert_refused("range=0..2", "range is 0..1, 0..255 or -1..1, not \"0..2\"");
    assert_refused("scale=0", "scale is a number other than 0, such as 1/255, not \"0\"");
    assert_refused("scale=1/0", "scale is a number other than 0, such as 1/255, not \"1/0\"");
    assert_refused("mean=1,2", "mean is one or three numbers, not \"1,2\"");
    assert_refused("mean=1,2,3,4", "mean is one or three numbers, not \"1,2,3,4\"");
    assert_refused("mean=nan", "mean is one or three numbers, not \"nan\"");
    assert_refused("mean=1e999", "mean is one or three numbers, not \"1e999\"");
    assert_refused("std=1,0,1", "std is one or three numbers other than 0, not \"1,0,1\"");
    assert_refused("layout=chw", "layout is nchw or nhwc, not \"chw\"");
    char longer[2000] = "mean=";
    memset(longer + 5, '1', sizeof longer - 6);
    assert_refused(longer, "there is no preset \"...\"");
    memcpy(longer + 200, ",2,", 3);
    longer[300] = 0;
    assert_refused(longer, "mean is one or three numbers, not \"...\"");
}

/* Any numbers come back bit by bit. */
static void random_ones_read_back(void **state) {
    (void)state;
    const uint64_t seed = fresh_seed();
    uint64_t at = 0;
    for (int round = 0; round < 2000; round++) {
        fac_preprocess how = { .how = (fac_interpolation)(fac_random_bits(seed, 1, at++) % 3) };
        const double scale = (double)(int64_t)fac_random_bits(seed, 1, at++) / 1e17;
        how.resize = fac_random_bits(seed, 1, at++) % 2
                         ? (int)(fac_random_bits(seed, 1, at++) % 65536) + 1
                         : 0;
        how.height = (int)(fac_random_bits(seed, 1, at++) % 600);
        how.width = fac_random_bits(seed, 1, at++) % 2
                        ? how.height
                        : (int)(fac_random_bits(seed, 1, at++) % 600);
        how.scale = fac_random_bits(seed, 1, at++) % 3 ? scale : 1 / 127.5;
        how.nhwc = fac_random_bits(seed, 1, at++) % 2;
        how.bgr = fac_random_bits(seed, 1, at++) % 2;
        for (int c = 0; c < 3; c++) {
            how.mean[c] = (double)(int64_t)fac_random_bits(seed, 1, at++) / 3e15;
            how.std[c] = 1 + 1.0 / (c + 1);
        }
        char text[FAC_PREPROCESS_TEXT];
        const int n = fac_preprocess_print(&how, text, sizeof text);
        assert_true(n > 0 && n < FAC_PREPROCESS_TEXT);
        const fac_preprocess again = parsed(text);
        assert_true(again.resize == how.resize && again.height == how.height &&
                    again.width == how.width);
        assert_true(again.scale == how.scale && again.bgr == how.bgr && again.nhwc == how.nhwc &&
                    again.how == how.how);
        for (int c = 0; c < 3; c++)
            assert_true(again.mean[c] == how.mean[c] && again.std[c] == how.std[c]);
    }
}

/* Texts come from files of strangers: whatever they are, the answer is a preset that reads back, or
 * one error. */
static void any_text(void **state) {
    (void)state;
    static const char *const words[] = {
        "size=", "crop=", "mean=",  "std=", "scale=", "range=", "order=", "layout=", "caffe",
        "tf",    "-1..1", "0..255", "bgr",  "grey",   "keep",   "224",    "x",       "1/255",
        "-.5",   "1e308", "nan",    ",",    " ",      "=",      "/",      "\n",      "\xff"
    };
    const uint64_t seed = fresh_seed();
    uint64_t at = 0;
    int good = 0;
    for (int round = 0; round < 20000; round++) {
        char text[400] = "", again[FAC_PREPROCESS_TEXT];
        fac_preprocess how;
        fac_error err = { 0 };
        const int n = (int)(fac_random_bits(seed, 2, at++) % 12);
        for (int k = 0; k < n; k++)
            strcat(text, words[fac_random_bits(seed, 2, at++) % (sizeof words / sizeof *words)]);
        if (fac_preprocess_parse(text, &how, &err)) {
            assert_true(err.status == FAC_E_ARGUMENT && *err.text);
            continue;
        }
        good++;
        assert_true(fac_preprocess_print(&how, again, sizeof again) > 0);
        parsed(again);
    }
    assert_true(good > 10);
}

/* A program whose locale has a comma reads the same metadata. */
static void any_locale(void **state) {
    (void)state;
    static const char *const commas[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8" };
    bool found = false;
    for (int k = 0; k < 3 && !found; k++) found = setlocale(LC_NUMERIC, commas[k]) != NULL;
    const fac_preprocess how = parsed("scale=0.25,mean=0.5,1.5,2.5");
    assert_true(how.scale == 0.25 && how.mean[1] == 1.5);
    assert_prints(&how, "size=keep,interpolation=bilinear,order=rgb,scale=0.25,mean=0.5,1.5,2.5");
    setlocale(LC_NUMERIC, "C");
}

static void other_types(void **state) {
    (void)state;
    uint8_t rgb[12] = { 0, 10, 20, 30, 40, 50, 60, 70, 80, 255, 254, 253 };
    const fac_image image = { 2, 2, rgb };
    static const fac_dtype dtypes[] = { FAC_F16, FAC_BF16, FAC_F64, FAC_U8, FAC_NONE };
    fac_preprocess how = parsed("raw,order=bgr,scale=1/2,mean=1");
    fac_tensor *f32 = NULL, *expected = NULL, *t = NULL;
    fac_error err = { 0 };
    assert_int_equal(fac_image_tensor(&image, &how, &f32, NULL), FAC_OK);
    for (int k = 0; k < 5; k++) {
        const fac_dtype want = dtypes[k] == FAC_NONE ? FAC_F32 : dtypes[k];
        how.dtype = dtypes[k];
        if (want == FAC_U8) how.mean[0] = how.mean[1] = how.mean[2] = 0;
        assert_int_equal(fac_image_tensor(&image, &how, &t, NULL), FAC_OK);
        fac_type type = fac_tensor_type(t);
        assert_true(type.dtype == want);
        if (want != FAC_U8) {
            assert_int_equal(fac_tensor_convert(f32, want, &expected, NULL), FAC_OK);
            assert_memory_equal(fac_tensor_data(t), fac_tensor_data(expected),
                                fac_type_bytes(&type));
            fac_tensor_free(expected);
        } else {
            /* the last pixel's blue, 253 / 2 */
            assert_int_equal(((const uint8_t *)fac_tensor_data(t))[3], 126);
        }
        how.mean[0] = how.mean[1] = how.mean[2] = 1;
        fac_tensor_free(t);
    }
    how.dtype = FAC_TEXT;
    t = NULL;
    assert_int_equal(fac_image_tensor(&image, &how, &t, &err), FAC_E_DTYPE);
    assert_string_equal(err.text, "preprocess: no pixels are text");
    assert_null(t);
    fac_tensor_free(f32);
}

/* One image of 4 x 5. */
static void make_images(fac_dataset *d) {
    assert_int_equal(fac_dataset_new(d, 1, fac_shape(3, 4, 5), false, "images", NULL), FAC_OK);
    for (int i = 0; i < 60; i++) fac_dataset_bytes(d)[i] = (uint8_t)(i * 37);
    d->classes = 2;
}

/* A data set under a preset gives what the preset gives of its images. */
static void data_sets(void **state) {
    (void)state;
    static const char *const specs[] = { "unit", "caffe", "imagenet",
                                         "range=-1..1,order=bgr,std=2,3,4" };
    for (int k = 0; k < 4; k++) {
        fac_dataset d = { 0 };
        fac_preprocess how = parsed(specs[k]);
        fac_tensor *x = NULL, *labels = NULL, *y = NULL;
        fac_image image = { 0 };
        const fac_batches one = { .size = 1 };
        make_images(&d);
        assert_int_equal(fac_dataset_image(&d, 0, &image, NULL), FAC_OK);
        how.resize = 0;
        how.height = 4;
        how.width = 5;
        assert_int_equal(fac_image_tensor(&image, &how, &y, NULL), FAC_OK);
        assert_int_equal(fac_dataset_prepare(&d, &how, NULL), FAC_OK);
        assert_int_equal(fac_batch(&d, &one, 0, 0, &x, &labels, NULL), FAC_OK);
        const float *a = fac_tensor_data(x), *b = fac_tensor_data(y);
        for (int i = 0; i < 60; i++) assert_true(fabsf(a[i] - b[i]) <= 1e-5f * (1 + fabsf(b[i])));
        fac_tensor_free(x);
        fac_tensor_free(labels);
        fac_tensor_free(y);
        fac_image_free(&image);
        fac_dataset_free(&d);
    }
    fac_dataset points = { 0 };
    assert_int_equal(fac_dataset_toy("xor", 10, 1, &points, NULL), FAC_OK);
    const fac_preprocess how = parsed("unit");
    assert_int_equal(fac_dataset_prepare(&points, &how, NULL), FAC_E_ARGUMENT);
    fac_dataset_free(&points);
}

/* Whichever allocation fails, the call says so. */
static void without_memory(void **state) {
    (void)state;
    uint8_t rgb[12] = { 0 };
    const fac_image image = { 2, 2, rgb };
    fac_preprocess how = parsed("raw");
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    char text[FAC_PREPROCESS_TEXT];
    long k = 0;
    how.dtype = FAC_F16;
    for (fac_status status = FAC_E_NOMEM; status; k++) {
        allocations_left = k;
        status = fac_image_tensor(&image, &how, &t, NULL);
        allocations_left = -1;
        assert_true(status == FAC_OK || status == FAC_E_NOMEM);
        assert_true(!status == (t != NULL));
    }
    assert_true(k > 4);
    fac_tensor_free(t);
    allocations_left = 0;
    assert_int_equal(fac_preprocess_print(&how, text, sizeof text), -1);
    assert_int_equal(fac_preprocess_parse("colour=red", &how, &err), FAC_E_ARGUMENT);
    allocations_left = -1;
    assert_string_equal(text, "");
    assert_string_equal(err.text, "preprocessing has no \"colour\"; it has others");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(names),
                                        cmocka_unit_test(presets_read_back),
                                        cmocka_unit_test(items),
                                        cmocka_unit_test(refusals),
                                        cmocka_unit_test(random_ones_read_back),
                                        cmocka_unit_test(any_text),
                                        cmocka_unit_test(any_locale),
                                        cmocka_unit_test(other_types),
                                        cmocka_unit_test(data_sets),
                                        cmocka_unit_test(without_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
