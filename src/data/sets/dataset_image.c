/* Samples that are images: as photos, and all of them in another size. */
#include <string.h>
#include "base/error.h"
#include "data/sets/dataset_internal.h"
#include "data/image/image_internal.h"

void fac_image_planes(const fac_image *image, int channels, uint8_t *to) {
    const size_t plane = (size_t)image->height * (size_t)image->width;
    for (size_t i = 0; i < plane; i++)
        for (size_t c = 0; c < (size_t)channels; c++) to[c * plane + i] = image->rgb[3 * i + c];
}

static fac_status check_images(const fac_dataset *d, fac_error *err) {
    if (d->bytes && d->item.n == 3 && (d->item.d[0] == 1 || d->item.d[0] == 3)) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "the samples of this data set are no images");
}

fac_status fac_dataset_image(const fac_dataset *d, int64_t sample, fac_image *out, fac_error *err) {
    FAC_TRY(check_images(d, err));
    if (sample < 0 || sample >= d->count)
        return fac_raise(err, FAC_E_ARGUMENT, "sample %lld of %lld", (long long)sample,
                         (long long)d->count);
    const int64_t channels = d->item.d[0], plane = d->item.d[1] * d->item.d[2];
    FAC_TRY(fac_image_new(d->item.d[2], d->item.d[1], "a sample", out, err));
    const uint8_t *from = d->bytes + sample * channels * plane;
    for (int64_t i = 0; i < plane; i++)
        for (int64_t c = 0; c < 3; c++)
            out->rgb[3 * i + c] = from[(channels == 3 ? c * plane : 0) + i];
    return FAC_OK;
}

static fac_status resize_all(const fac_dataset *d, fac_dataset *to, fac_error *err) {
    const int64_t channels = to->item.d[0], height = to->item.d[1], width = to->item.d[2];
    for (int64_t i = 0; i < d->count; i++) {
        fac_image image = { 0 }, sized = { 0 };
        fac_status status = fac_dataset_image(d, i, &image, err);
        if (!status)
            status = fac_image_resize(&image, (int)width, (int)height, FAC_BILINEAR, &sized, err);
        if (!status)
            fac_image_planes(&sized, (int)channels,
                             fac_dataset_bytes(to) + i * channels * height * width);
        fac_image_free(&image);
        fac_image_free(&sized);
        FAC_TRY(status);
    }
    memcpy(fac_dataset_labels(to), d->labels, (size_t)d->count * sizeof *d->labels);
    return FAC_OK;
}

fac_status fac_dataset_resize(const fac_dataset *d, int channels, int height, int width,
                              fac_dataset *out, fac_error *err) {
    FAC_TRY(check_images(d, err));
    if (height < 1 || width < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "images cannot become %d x %d", height, width);
    const int64_t has = d->item.d[0];
    if (channels != has && channels != 3)
        return fac_raise(err, FAC_E_ARGUMENT, "images of %lld channels cannot become those of %d",
                         (long long)has, channels);
    fac_dataset to = { 0 };
    fac_status status = fac_dataset_new(&to, d->count, fac_shape(channels, height, width), false,
                                        "images in another size", err);
    if (!status) status = fac_dataset_like(d, &to, err);
    for (int c = 1; c < 3 && has == 1; c++) {
        to.mean[c] = to.mean[0];
        to.std[c] = to.std[0];
    }
    if (!status) status = resize_all(d, &to, err);
    if (status)
        fac_dataset_free(&to);
    else
        *out = to;
    return status;
}

static void swap_planes(fac_dataset *d) {
    const int64_t plane = d->item.d[1] * d->item.d[2];
    uint8_t *image = fac_dataset_bytes(d);
    for (int64_t i = 0; i < d->count; i++, image += 3 * plane)
        for (int64_t k = 0; k < plane; k++) {
            const uint8_t red = image[k];
            image[k] = image[2 * plane + k];
            image[2 * plane + k] = red;
        }
}

/* (b scale - mean) / std = (b / 255 - mean / k) / (std / k), with k = 255 scale */
fac_status fac_dataset_prepare(fac_dataset *d, const fac_preprocess *how, fac_error *err) {
    FAC_TRY(check_images(d, err));
    const double scale = how->scale != 0 ? how->scale : 1 / 255.0;
    const double k = scale == 1 / 255.0 ? 1 : 255 * scale;
    for (int c = 0; c < 3; c++) {
        const double std = how->std[c] != 0 ? how->std[c] : 1;
        d->mean[c] = how->mean[c] / k;
        d->std[c] = std / k;
    }
    if (how->bgr && d->item.d[0] == 3) swap_planes(d);
    return FAC_OK;
}
