/* What the files of `facula activations` share. */
#ifndef FACULA_CLI_ACTIVATIONS_H
#define FACULA_CLI_ACTIVATIONS_H
#include "files.h"
#include "json.h"
#include "run/photo.h"

/* What becomes of each tensor besides its statistics: a picture, a part of an .npz file. */
typedef struct keeper {
    const char *pictures; /* a folder, or NULL */
    fac_npz *npz;         /* or NULL */
    int run, runs;        /* of several inputs the names say which: "0/conv1" */
    int drawn, undrawn, saved;
    file_names files, parts; /* of pictures; of the .npz file */
    photo_plan plan;         /* of photos among the inputs */
} keeper;

/* activations_keep.c: fac_activations_opts.see; self is a keeper. */
fac_status keep_tensor(void *self, const fac_activation *a, const fac_tensor *t, fac_error *err);

/* activations_json.c */
int activations_json(const char *path, const keeper *k, const fac_activation *const *rows, int n,
                     long bits);
#endif
