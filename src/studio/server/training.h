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

/* How far a page has learned.  Loss and accuracy are means over about the last 30 steps. */
typedef struct studio_progress {
    int64_t step;
    double loss, accuracy, seconds; /* seconds: in steps */
    fac_error stopped;              /* why the last step came to nothing */
} studio_progress;

/* At most n steps up to step number `end`, and no more after most_ns nanoseconds.  False: learning
 * is over, at the end or by an error. */
bool fac_studio_steps(const studio_training *t, double lr, int64_t end, int64_t n, int64_t most_ns,
                      studio_progress *p);
#endif
