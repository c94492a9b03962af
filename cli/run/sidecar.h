/* Files beside a model that say how its photos are prepared and what its classes are called:
 * MODEL.json, or what Hugging Face puts there: preprocessor_config.json and config.json. */
#ifndef FACULA_CLI_SIDECAR_H
#define FACULA_CLI_SIDECAR_H
#include "cli.h"

typedef enum sidecar_want { SIDECAR_PRESET, SIDECAR_LABELS } sidecar_want;

typedef struct sidecar {
    char file[4096]; /* the one that said it */
    bool preset;
    fac_preprocess how;
    fac_labels *labels; /* the caller's to free; NULL: no file says */
} sidecar;

/* The first file that says what is wanted; an exit code.  None: *out is empty.  path NULL: the
 * model has no file. */
int sidecar_read(const char *path, sidecar_want want, sidecar *out);
#endif
