/* How good a model is on the test part of a data set: facula evaluate and facula quantize. */
#ifndef FACULA_CLI_EVALUATE_H
#define FACULA_CLI_EVALUATE_H
#include "evaluate_sound.h"
#include "run/photo.h"
#include "train.h"

/* set NULL: that of the training whose folder `model` is.  preset may be NULL. */
typedef struct evaluate_what {
    const char *model, *set, *preset;
} evaluate_what;
/* Model and data set of train_given; images are prepared as the model wants them.  An exit code; j
 * is the caller's to free in any case (train_free). */
int evaluate_open(const verb *v, const evaluate_what *what, train_job *j, photo_plan *plan);

/* Sums over the samples; same, difference: of another model. */
typedef struct scores {
    double right, loss, samples, same, difference, seconds;
    recordings heard; /* of sounds: what their windows say together */
} scores;
/* other NULL: there is none.  `heard` is the caller's to free, also after an error. */
fac_status evaluate_scores(const train_job *j, const fac_graph *other, scores *s, fac_error *err);
#endif
