/* From a photo file to the input of a model, by a preset and by single options. */
#ifndef FACULA_CLI_PHOTO_H
#define FACULA_CLI_PHOTO_H
#include "cli.h"

typedef struct photo_options {
    const char *preset, *size, *crop, *mean, *std, *scale, *layout, *interpolation;
    bool bgr;
} photo_options;

#define PHOTO_OPTIONS(o) \
    { "--preset", OPTION_TEXT, &(o).preset, "NAME", "preprocessing of photos by name (below)" }, \
    { "--size", OPTION_TEXT, &(o).size, "N|HxW", "shorter side becomes N; or scaled to HxW" }, \
    { "--crop", OPTION_TEXT, &(o).crop, "N|HxW", "then the centre of this size" }, \
    { "--mean", OPTION_TEXT, &(o).mean, "A[,B,C]", "subtracted from the scaled pixels" }, \
    { "--std", OPTION_TEXT, &(o).std, "A[,B,C]", "divides them then" }, \
    { "--scale", OPTION_TEXT, &(o).scale, "X", "multiplies pixels (0..255) first; 1/255 if not given" }, \
    { "--bgr", OPTION_FLAG, &(o).bgr, NULL, "blue first" }, \
    { "--layout", OPTION_TEXT, &(o).layout, "nchw|nhwc", "instead of what the model's input says" }, \
    { "--interpolation", OPTION_TEXT, &(o).interpolation, "NAME", "nearest, bilinear or bicubic" }

/* How photos become this input; an exit code.  zoo: its own preset unless one is asked for. */
int photo_how(const photo_options *o, const fac_zoo *zoo, fac_type input, fac_preprocess *out);
/* The photo as a tensor of the input's own type (a batch of one). */
fac_status photo_tensor(const char *path, const fac_preprocess *how, fac_type input, fac_tensor **out, fac_error *err);
void photo_presets(void);
#endif
