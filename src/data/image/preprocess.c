/* From a photo to the input of a network: resize, centre crop, scale, normalize, lay out. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "data/image/image_internal.h"

/* Where a crop starts.  As torchvision's CenterCrop: half of what is left over, halves to even; a
 * photo that is smaller than the crop gets black borders, the odd line after. */
static int crop_start(int size, int crop) {
    return size >= crop ? (int)nearbyint((size - crop) / 2.0) : -((crop - size) / 2);
}

/* The image that the network sees, 8-bit RGB. */
static fac_status geometry(const fac_image *image, const fac_preprocess *how, fac_image *out,
                           fac_error *err) {
    int width = image->width, height = image->height;
    int to_width = how->width ? how->width : width;
    int to_height = how->height ? how->height : height;
    if (!how->resize) return fac_image_resize(image, to_width, to_height, how->how, out, err);

    /* the shorter side becomes `resize`, the longer is rounded down, as torchvision's Resize does
     */
    int64_t shorter = width < height ? width : height;
    int64_t longer = width < height ? height : width;
    int64_t scaled = how->resize * longer / shorter;
    if (scaled > FAC_PIXELS)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "preprocess: %d x %d is too long for a shorter side of %d", width, height,
                         how->resize);
    fac_image resized = { 0 };
    if (width < height) {
        width = how->resize;
        height = (int)scaled;
    } else {
        height = how->resize;
        width = (int)scaled;
    }
    FAC_TRY(fac_image_resize(image, width, height, how->how, &resized, err));
    if (!how->width) to_width = width;
    if (!how->height) to_height = height;
    int x = crop_start(width, to_width), y = crop_start(height, to_height);
    fac_status status = fac_image_crop(&resized, x, y, to_width, to_height, out, err);
    fac_image_free(&resized);
    return status;
}

/* ITU-R BT.601 luma with weights of 16 bits: .299 R + .587 G + .114 B */
static int luma(const uint8_t *rgb) {
    return (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;
}

/* A pixel has 256 values, so each channel is a table of 256 results. */
static void make_table(const fac_preprocess *how, int channel, float table[256]) {
    double scale = how->scale != 0 ? how->scale : 1 / 255.0,
           std = how->std[channel] != 0 ? how->std[channel] : 1;
    for (int x = 0; x < 256; x++) table[x] = (float)((x * scale - how->mean[channel]) / std);
}

static void fill(const fac_image *image, const fac_preprocess *how, float *to) {
    size_t pixels = (size_t)image->width * (size_t)image->height, channels = how->grey ? 1 : 3;
    for (size_t c = 0; c < channels; c++) {
        float table[256];
        make_table(how, (int)c, table);
        const uint8_t *p = image->rgb + (how->bgr ? 2 - c : c);
        size_t start = how->nhwc ? c : c * pixels;
        size_t step = how->nhwc ? channels : 1;
        for (size_t i = 0; i < pixels; i++)
            to[start + i * step] = table[how->grey ? luma(image->rgb + 3 * i) : p[3 * i]];
    }
}

/* f32 becomes what was asked for. */
static fac_status convert(fac_tensor **t, fac_dtype dtype, fac_error *err) {
    fac_tensor *as = NULL;
    if (dtype == FAC_NONE || dtype == FAC_F32) return FAC_OK;
    FAC_TRY(fac_tensor_convert(*t, dtype, &as, err));
    fac_tensor_free(*t);
    *t = as;
    return FAC_OK;
}

fac_status fac_image_tensor(const fac_image *image, const fac_preprocess *how, fac_tensor **out,
                            fac_error *err) {
    if (how->resize < 0 || how->width < 0 || how->height < 0)
        return fac_raise(err, FAC_E_ARGUMENT, "preprocess: negative sizes: resize %d, crop %d x %d",
                         how->resize, how->width, how->height);
    if (!image->rgb || image->width < 1 || image->height < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "preprocess: the image is empty");
    if (how->dtype == FAC_BIT || how->dtype == FAC_TEXT || how->dtype < FAC_NONE ||
        how->dtype >= FAC_DTYPES)
        return fac_raise(err, FAC_E_DTYPE, "preprocess: no pixels are %s",
                         fac_dtype_get(how->dtype)->name);
    fac_image seen = { 0 };
    FAC_TRY(geometry(image, how, &seen, err));

    int64_t channels = how->grey ? 1 : 3, h = seen.height, w = seen.width;
    fac_dims dims = how->nhwc ? fac_shape(1, h, w, channels) : fac_shape(1, channels, h, w);
    fac_tensor *t = NULL;
    size_t bytes = sizeof(float) * (size_t)(channels * h * w);
    float *pixels = fac_alloc(1, bytes);
    fac_status status =
        pixels ? fac_tensor_new(NULL, FAC_F32, dims, &t, err)
               : fac_raise(err, FAC_E_NOMEM, "preprocess: no memory for %zu bytes", bytes);
    if (!status) {
        fill(&seen, how, pixels);
        status = fac_tensor_write(t, pixels, bytes, err);
    }
    if (!status) status = convert(&t, how->dtype, err);
    fac_release(pixels);
    fac_image_free(&seen);
    if (status)
        fac_tensor_free(t);
    else
        *out = t;
    return status;
}
