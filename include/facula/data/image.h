/* facula/data/image.h: photos to tensors.  PNG, JPEG, BMP, PPM/PGM, found by contents; 8 and 16
 * bit, grey, palette, alpha (dropped, not composed, as Pillow's convert("RGB") does), EXIF
 * orientation applied.  Always ends as 8-bit RGB, at most 2^28 pixels. */
#ifndef FACULA_IMAGE_H
#define FACULA_IMAGE_H

#include "facula/tensor.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_image {
    int width, height;
    uint8_t *rgb;
} fac_image; /* rows top down, 3 bytes a pixel */

/* A PNG, JPEG, BMP or PNM file, by its contents.  FAC_E_IO, FAC_E_FORMAT, FAC_E_UNSUPPORTED,
 * FAC_E_NOMEM; *out is the caller's, fac_image_free clears it. */
fac_status fac_image_load(const char *path, fac_image *out, fac_error *err);
fac_status fac_image_decode(const void *data, size_t bytes, const char *name, fac_image *out,
                            fac_error *err); /* name: for errors */
fac_status fac_image_save(const fac_image *image, const char *path,
                          fac_error *err); /* .png or .ppm, by the name */
/* The bytes of a PNG file, piece by piece; put returns false to give up. */
fac_status fac_image_encode(const fac_image *image,
                            bool (*put)(void *self, const void *data, size_t bytes), void *self,
                            fac_error *err);
void fac_image_free(fac_image *image); /* frees rgb and clears; an empty one is fine */

typedef enum fac_interpolation { FAC_NEAREST, FAC_BILINEAR, FAC_BICUBIC } fac_interpolation;

/* As Pillow's resize: with antialiasing, in 8-bit fixed point per pass; within 1 grey level of it.
 */
fac_status fac_image_resize(const fac_image *from, int width, int height, fac_interpolation how,
                            fac_image *out, fac_error *err);
fac_status fac_image_crop(const fac_image *from, int x, int y, int width, int height,
                          fac_image *out, fac_error *err); /* outside: black */

/* From a photo to a network's input. */
typedef struct fac_preprocess {
    int resize;        /* the shorter side becomes this; 0 = as it is        */
    int height, width; /* then the centre crop; 0 = as it is.  With resize = 0 the photo is scaled
                          to this   */
    fac_interpolation how;
    double scale;           /* y = (x * scale - mean) / std, x in 0..255; 0 = 1/255           */
    double mean[3], std[3]; /* std 0 = 1; in the order of the channels of the result */
    bool bgr, nhwc, grey; /* channel order; layout; one channel (ITU-R 601 luma) instead of three */
    fac_dtype dtype;      /* of the tensor, such as FAC_F16; FAC_NONE: f32 */
} fac_preprocess;

/* y [1,3,H,W] ([1,H,W,3] with nhwc; 1 instead of 3 with grey) of how->dtype; values are computed in
 * f32 and converted once.  FAC_E_ARGUMENT for negative sizes and an empty image, FAC_E_DTYPE for
 * FAC_BIT and FAC_TEXT, FAC_E_NOMEM. */
fac_status fac_image_tensor(const fac_image *image, const fac_preprocess *how, fac_tensor **out,
                            fac_error *err);

/* Presets by name: "imagenet" (torchvision), "efficientnet-lite0", "tf" ((x-127.5)/127.5), "caffe",
 * "unit" (x/255), "mnist"... */
typedef struct fac_preset {
    const char *name, *help;
    fac_preprocess how;
} fac_preset;
extern const fac_preset fac_presets[];               /* ends with a NULL name */
const fac_preset *fac_preset_find(const char *name); /* NULL if there is none */

/* Preprocessing as text, for command lines and for the metadata of models: a name of fac_presets,
 * KEY=VALUE items, or a name and what is to be different, with commas or spaces between:
 * "caffe,crop=227", "size=256,crop=224,order=bgr,range=0..255, mean=104,117,123".  Without a name
 * it begins with the photo as it is, RGB, 0..1.
 *   size=N | HxW | keep    the shorter side becomes N; the whole photo is scaled to HxW; as it is
 *   crop=N | HxW           then the centre of this size
 *   interpolation=NAME     nearest, bilinear, bicubic
 *   order=rgb | bgr | grey
 *   range=A..B             of the pixels before mean and std: 0..1, 0..255 or -1..1; or scale=X
 *                          multiplies 0..255
 *   mean=A[,B,C]  std=A[,B,C]    for each channel in the order of the result; also
 *                          fractions such as 1/255
 *   layout=nchw | nhwc
 * FAC_E_ARGUMENT names the item at fault and what it may be; *out is untouched then. */
fac_status fac_preprocess_parse(const char *spec, fac_preprocess *out, fac_error *err);
/* The same in full, which fac_preprocess_parse reads back to the same numbers; dtype is no part of
 * it.  As snprintf: the length, and at most `size` bytes with their NUL in `to`;
 * FAC_PREPROCESS_TEXT are always enough.  -1: no memory. */
enum { FAC_PREPROCESS_TEXT = 512 };
int fac_preprocess_print(const fac_preprocess *how, char *to, size_t size);
/* The preset that prepares photos exactly so, whatever layout and dtype; NULL if there is none. */
const fac_preset *fac_preprocess_preset(const fac_preprocess *how);

/* Notes of a graph (fac_graph_note) by which a model says how its photos are prepared and what its
 * classes are called, in its file's metadata_props: the text of fac_preprocess_print, and that of
 * fac_labels_text. */
#define FAC_NOTE_PRESET "facula.preset"
#define FAC_NOTE_LABELS "facula.labels"

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
