/* facula/image.h: photos to tensors.  PNG, JPEG, BMP, PPM/PGM, found by contents; 8 and 16 bit, grey, palette, alpha (dropped,
 * not composed, as Pillow's convert("RGB") does), EXIF orientation applied.  Always ends as 8-bit RGB, at most 2^28 pixels. */
#ifndef FACULA_IMAGE_H
#define FACULA_IMAGE_H

#include "facula/tensor.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_image { int width, height; uint8_t *rgb; } fac_image;    /* rows top down, 3 bytes a pixel */

fac_status fac_image_load(const char *path, fac_image *out, fac_error *err);
fac_status fac_image_decode(const void *data, size_t bytes, const char *name, fac_image *out, fac_error *err);  /* name: for errors */
fac_status fac_image_save(const fac_image *image, const char *path, fac_error *err);    /* .png or .ppm, by the name */
/* The bytes of a PNG file, piece by piece; put returns false to give up. */
fac_status fac_image_encode(const fac_image *image, bool (*put)(void *self, const void *data, size_t bytes), void *self,
                            fac_error *err);
void       fac_image_free(fac_image *image);                /* frees rgb and clears; an empty one is fine */

typedef enum fac_interpolation { FAC_NEAREST, FAC_BILINEAR, FAC_BICUBIC } fac_interpolation;

/* As Pillow's resize: with antialiasing, in 8-bit fixed point per pass; within 1 grey level of it. */
fac_status fac_image_resize(const fac_image *from, int width, int height, fac_interpolation how, fac_image *out, fac_error *err);
fac_status fac_image_crop(const fac_image *from, int x, int y, int width, int height, fac_image *out, fac_error *err);   /* outside: black */

/* From a photo to a network's input. */
typedef struct fac_preprocess {
    int    resize;              /* the shorter side becomes this; 0 = as it is                                        */
    int    height, width;       /* then the centre crop; 0 = as it is.  With resize = 0 the photo is scaled to this   */
    fac_interpolation how;
    double scale;               /* y = (x * scale - mean) / std, x in 0..255; 0 = 1/255                               */
    double mean[3], std[3];     /* std 0 = 1; in the order of the channels of the result                              */
    bool   bgr, nhwc, grey;     /* channel order; layout; one channel (ITU-R 601 luma) instead of three               */
} fac_preprocess;

/* y f32 [1,3,H,W] ([1,H,W,3] with nhwc; 1 instead of 3 with grey). */
fac_status fac_image_tensor(const fac_image *image, const fac_preprocess *how, fac_tensor **out, fac_error *err);

/* Presets by name: "imagenet" (torchvision), "efficientnet-lite0", "tf" ((x-127.5)/127.5), "caffe", "unit" (x/255), "mnist"... */
typedef struct fac_preset { const char *name, *help; fac_preprocess how; } fac_preset;
extern const fac_preset fac_presets[];                      /* ends with a NULL name */

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
