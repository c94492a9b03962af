/* From a photo file to the input of a model: by an option, by what the model says of itself, or by
 * a guess that is called one. */
#ifndef FACULA_CLI_PHOTO_H
#define FACULA_CLI_PHOTO_H
#include "cli.h"
#include "json.h"

typedef struct photo_options {
    const char *preset, *size, *crop, *mean, *std, *scale, *layout, *interpolation;
    bool bgr;
} photo_options;

#define PHOTO_OPTIONS(o)                                                                           \
    { "--preset", OPTION_TEXT, &(o).preset, "SPEC",                                                \
      "preprocessing of photos, by name or in full: see below" },                                  \
        { "--size", OPTION_TEXT, &(o).size, "N|HxW",                                               \
          "resize: the shorter side to N, or the whole photo to HxW" },                            \
        { "--crop", OPTION_TEXT, &(o).crop, "N|HxW", "then cut out the centre of this size" },     \
        { "--mean", OPTION_TEXT, &(o).mean, "A[,B,C]",                                             \
          "then subtract this from the scaled pixels, one number or one per channel" },            \
        { "--std", OPTION_TEXT, &(o).std, "A[,B,C]",                                               \
          "then divide by this, one number or one per channel" },                                  \
        { "--scale", OPTION_TEXT, &(o).scale, "X",                                                 \
          "before that, multiply pixels (0..255) by this; default 1/255" },                        \
        { "--bgr", OPTION_FLAG, &(o).bgr, NULL, "channels in the order blue, green, red" },        \
        { "--layout", OPTION_TEXT, &(o).layout, "nchw|nhwc",                                       \
          "order of the dims; default: what the model's input says" },                             \
    {                                                                                              \
        "--interpolation", OPTION_TEXT, &(o).interpolation, "NAME",                                \
            "of resizing: nearest, bilinear or bicubic"                                            \
    }

typedef enum photo_source {
    PHOTO_NONE, /* no photo was prepared yet */
    PHOTO_OPTION,
    PHOTO_METADATA,
    PHOTO_SIDECAR,
    PHOTO_ZOO,
    PHOTO_TRAINING,
    PHOTO_DATA,
    PHOTO_GUESS
} photo_source;

/* How photos become an input, and who says so. */
typedef struct photo_plan {
    fac_preprocess how;
    photo_source from;
    bool changed;    /* by single options */
    char name[64];   /* of the preset; "": it has none */
    char file[4096]; /* of a sidecar */
} photo_plan;

/* What is known of a model: --preset, its metadata, a file beside it, the zoo, else the guess.  o
 * may be NULL.  An exit code. */
int photo_plan_of(const photo_options *o, const model *m, photo_plan *out);
/* The same for this input: its size, layout, channels and type, and single options. */
int photo_plan_input(const photo_options *o, const model *m, fac_type input, photo_plan *out);
bool photo_among(list files); /* "FILE" or "NAME=FILE" */
/* Options of photos where no file is one are an error; an exit code. */
int photo_options_fit(const photo_options *o, const verb *v, list files, list named);
/* What a training made of its images. */
void photo_plan_trained(const fac_dataset *d, photo_source from, photo_plan *out);
/* The photo as a tensor of the input's own type (a batch of one). */
fac_status photo_tensor(const char *path, const photo_plan *plan, fac_tensor **out, fac_error *err);

/* One line: "preset imagenet (of the zoo)"; of a guess, how to say it.  Nothing of PHOTO_NONE. */
void photo_plan_print(const photo_plan *plan);
void photo_plan_json(const photo_plan *plan, cJSON *to); /* its key "preset" */

/* A graph that is to be written says how its photos are prepared; an exit code. */
int photo_note(fac_graph *g, const fac_preprocess *how);
void photo_presets(void);
#endif
