/* A step of a page that learns. */
#ifndef FACULA_STUDIO_TRAINING_H
#define FACULA_STUDIO_TRAINING_H
#include "facula/train.h"

/* What a page trains with.  The loader is made where it is missing; `train` has its place for good
 * by then. */
typedef struct studio_training {
    fac_trainer *trainer;
    const fac_dataset *train;
    const fac_batches *order;
    fac_loader **loader;
} studio_training;

/* Step number `step`.  After an error the loader is gone, so that the next call tries the same
 * batch again: a loader says the error of a batch for ever. */
fac_status fac_studio_step(const studio_training *t, int64_t step, double lr, fac_score *score,
                           fac_error *err);
#endif
