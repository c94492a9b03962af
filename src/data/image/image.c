/* Images: which format it is, loading, saving, cropping.  The formats themselves are in image_*.c.
 */
#include <string.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "data/image/image_internal.h"
#include "facula/content.h"

fac_status fac_image_new(int64_t width, int64_t height, const char *name, fac_image *image,
                         fac_error *err) {
    if (width < 1 || height < 1)
        return fac_raise(err, FAC_E_FORMAT, "%s: an image of %lld x %lld pixels", name,
                         (long long)width, (long long)height);
    if (width > FAC_PIXELS || height > FAC_PIXELS / width)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "%s: %lld x %lld pixels, at most 2^28 in all are read", name,
                         (long long)width, (long long)height);
    uint8_t *rgb = fac_alloc((size_t)width * (size_t)height, 3);
    if (!rgb)
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %lld x %lld pixels", name,
                         (long long)width, (long long)height);
    *image = (fac_image){ (int)width, (int)height, rgb };
    return FAC_OK;
}

fac_status fac_image_new_in(const fac_image_file *file, int64_t width, int64_t height, int64_t most,
                            fac_image *image, fac_error *err) {
    bool sane = width > 0 && height > 0 && width <= FAC_PIXELS && height <= FAC_PIXELS / width;
    if (sane && (uint64_t)(width * height / most) > file->bytes)
        return fac_raise(err, FAC_E_FORMAT, "%s: %zu bytes are too short for %lld x %lld pixels",
                         file->name, file->bytes, (long long)width, (long long)height);
    return fac_image_new(width, height, file->name, image, err);
}

void fac_image_free(fac_image *image) {
    if (!image) return;
    fac_release(image->rgb);
    *image = (fac_image){ 0 };
}

/* ---- formats by their first bytes ---- */

typedef struct fac_image_format {
    const char *magic;
    size_t length;
    fac_status (*decode)(const fac_image_file *file, fac_image *image, fac_error *err);
} fac_image_format;

static const fac_image_format formats[] = {
    { "\x89PNG\r\n\x1a\n", 8, fac_png_decode },
    { "\xff\xd8\xff", 3, fac_jpeg_decode },
    { "BM", 2, fac_bmp_decode },
    { "P2", 2, fac_ppm_decode },
    { "P3", 2, fac_ppm_decode },
    { "P5", 2, fac_ppm_decode },
    { "P6", 2, fac_ppm_decode },
};

fac_status fac_image_decode(const void *data, size_t bytes, const char *name, fac_image *out,
                            fac_error *err) {
    const fac_image_file file = { data, bytes, name ? name : "image" };
    if (!data) return fac_raise(err, FAC_E_ARGUMENT, "%s: no data to decode", file.name);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const fac_image_format *f = &formats[i];
        if (bytes < f->length || memcmp(data, f->magic, f->length) != 0) continue;
        fac_image image = { 0 };
        fac_status status = f->decode(&file, &image, err);
        if (status)
            fac_image_free(&image);
        else
            *out = image;
        return status;
    }
    const fac_content is = fac_content_of(data, bytes);
    if (is.kind == FAC_CONTENT_OTHER_PICTURE)
        return fac_raise(err, FAC_E_FORMAT,
                         "%s: %s; facula reads PNG, JPEG, BMP and PNM: convert it", file.name,
                         is.name);
    if (is.name)
        return fac_raise(err, FAC_E_FORMAT, "%s: not an image, but %s", file.name, is.name);
    return fac_raise(err, FAC_E_FORMAT,
                     "%s: not an image: neither PNG, JPEG, BMP nor PPM/PGM by its first bytes",
                     file.name);
}

fac_status fac_image_load(const char *path, fac_image *out, fac_error *err) {
    fac_file *file = NULL;
    FAC_TRY(fac_file_map(path, &file, err));
    fac_status status = fac_image_decode(fac_file_data(file), fac_file_size(file), path, out, err);
    fac_file_free(file);
    return status;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

fac_status fac_image_save(const fac_image *image, const char *path, fac_error *err) {
    if (!image->rgb || image->width < 1 || image->height < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "%s: an empty image cannot be saved", path);
    if (ends_with(path, ".png")) return fac_png_save(image, path, err);
    if (ends_with(path, ".ppm")) return fac_ppm_save(image, path, err);
    return fac_raise(err, FAC_E_ARGUMENT, "%s: images are saved as .png or .ppm", path);
}

fac_status fac_image_encode(const fac_image *image,
                            bool (*put)(void *self, const void *data, size_t bytes), void *self,
                            fac_error *err) {
    if (!image->rgb || image->width < 1 || image->height < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "an empty image cannot be encoded");
    return fac_png_encode(image, put, self, err);
}

fac_status fac_image_crop(const fac_image *from, int x, int y, int width, int height,
                          fac_image *out, fac_error *err) {
    fac_image image = { 0 };
    FAC_TRY(fac_image_new(width, height, "crop", &image, err));
    /* the columns of the result that lie inside the original: [first, last) */
    int64_t first = x < 0 ? -(int64_t)x : 0, last = (int64_t)from->width - x;
    if (last > width) last = width;
    for (int64_t row = 0; row < height && first < last; row++) {
        int64_t r = row + y;
        if (r < 0 || r >= from->height) continue;
        memcpy(image.rgb + 3 * ((size_t)row * (size_t)width + (size_t)first),
               from->rgb + 3 * ((size_t)r * (size_t)from->width + (size_t)(first + x)),
               3 * (size_t)(last - first));
    }
    *out = image;
    return FAC_OK;
}
