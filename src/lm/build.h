/* Building graphs of language models: what decoders and encoders share (block.c). */
#ifndef FACULA_LM_BUILD_H
#define FACULA_LM_BUILD_H
#include "facula/ops.h"
#include "lm/lm.h"

typedef struct fac_lm_building {
    fac_lm *m;
    const fac_lm_config *c;
    fac_graph *g;
    fac_tensor *const *caches;
    fac_value *positions, *at, *lengths; /* at and lengths: with caches */
    fac_value *cos[2], *sin[2];          /* of layers that see all, of those with a window */
    int64_t layer;
    fac_status status;
    fac_error *err;
} fac_lm_building;

/* x through "stem.weight" and "stem.bias"; x itself after an error. */
fac_value *fac_lm_linear(fac_lm_building *b, fac_value *x, const char *stem);
/* The norm of the family, which all of its models have. */
fac_value *fac_lm_norm(fac_lm_building *b, fac_value *x, const char *stem);
/* Rows of a table that may be stored in any type, as f32; NULL after an error. */
fac_value *fac_lm_rows(fac_lm_building *b, const char *name, fac_value *ids);
/* Positions 0, 1, ... as the ids have them. */
fac_value *fac_lm_counted(fac_lm_building *b, fac_value *ids);

/* angles.c: cos and sin of so many positions, where the family rotates by them. */
void fac_lm_angles(fac_lm_building *b, int64_t rows);

/* encoder.c: ids -> embedding. */
void fac_lm_encoder(fac_lm_building *b, int64_t batch);
#endif
