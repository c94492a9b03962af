/* What the samples of a training were, for those who use its model later: DIR/samples.json, and of
 * texts DIR/vocab.txt. */
#ifndef FACULA_CLI_SAMPLES_H
#define FACULA_CLI_SAMPLES_H
#include "cli.h"

typedef enum samples_kind { SAMPLES_VALUES, SAMPLES_IMAGES, SAMPLES_TEXTS } samples_kind;

typedef struct samples {
    samples_kind kind;
    fac_dataset like; /* without samples: item, classes and their names, mean, std */
    fac_vocab *vocab; /* of texts */
} samples;

int samples_record(const char *dir, const fac_dataset *d,
                   const fac_vocab *vocab); /* vocab: NULL unless d holds texts */
int samples_recall(const char *dir, samples *out);
/* The same of the contents of its samples.json; without the vocabulary. */
int samples_parse(const char *text, size_t bytes, const char *path, samples *out);
void samples_free(samples *s);
#endif
