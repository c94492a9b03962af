/* The image formats as image.c sees them.  A decoder gets the whole file and its name for errors,
 * and fills a zeroed image of its own; what it leaves in there after an error is freed by the
 * caller. */
#ifndef FACULA_DATA_IMAGE_INTERNAL_H
#define FACULA_DATA_IMAGE_INTERNAL_H
#include <stdbool.h>
#include "facula/data/image.h"

typedef struct fac_image_file {
    const uint8_t *data;
    size_t bytes;
    const char *name;
} fac_image_file;

fac_status fac_png_decode(const fac_image_file *file, fac_image *image, fac_error *err);
fac_status fac_jpeg_decode(const fac_image_file *file, fac_image *image, fac_error *err);
fac_status fac_bmp_decode(const fac_image_file *file, fac_image *image, fac_error *err);
fac_status fac_ppm_decode(const fac_image_file *file, fac_image *image, fac_error *err);

fac_status fac_png_save(const fac_image *image, const char *path, fac_error *err);
fac_status fac_png_encode(const fac_image *image,
                          bool (*put)(void *self, const void *data, size_t bytes), void *self,
                          fac_error *err);
fac_status fac_ppm_save(const fac_image *image, const char *path, fac_error *err);

/* Black pixels.  Refuses sizes below 1 and more than FAC_PIXELS pixels, so that sizes in bytes
 * always fit. */
enum { FAC_PIXELS = 1 << 28 };
fac_status fac_image_new(int64_t width, int64_t height, const char *name, fac_image *image,
                         fac_error *err);

/* The same for the contents of a file, of which one byte cannot give more than `most` pixels: what
 * a damaged or hostile head claims costs nothing. */
fac_status fac_image_new_in(const fac_image_file *file, int64_t width, int64_t height, int64_t most,
                            fac_image *image, fac_error *err);

/* The first `channels` of red, green and blue, one plane after the other. */
void fac_image_planes(const fac_image *image, int channels, uint8_t *to);

/* EXIF (CIPA DC-008, 4.6.4 A): how the camera was held, 1..8; 1 when the TIFF block does not say or
 * makes no sense. */
int fac_exif_orientation(const uint8_t *tiff, size_t bytes);
fac_status fac_image_orient(fac_image *image, int orientation, const char *name, fac_error *err);
#endif
