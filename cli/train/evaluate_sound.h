/* facula evaluate: what the windows of a recording say together. */
#ifndef FACULA_CLI_EVALUATE_SOUND_H
#define FACULA_CLI_EVALUATE_SOUND_H
#include "cli.h"
#include "json.h"

typedef struct recordings {
    const fac_dataset *d; /* NULL: no sounds */
    int64_t n;            /* recordings */
    double *p;            /* sums of probabilities, a row of d->classes for each */
    int64_t *label;
} recordings;

/* Without sounds it stays empty; false: done, true: no memory. */
bool recordings_open(recordings *r, const fac_dataset *d);
/* The logits of a sample of the data set. */
void recordings_add(recordings *r, const float *row, int64_t sample);
void recordings_json(const recordings *r, cJSON *root);
void recordings_print(const recordings *r);
void recordings_free(recordings *r);
#endif
