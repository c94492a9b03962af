/* Training steps of a page. */
#ifndef FACULA_STUDIO_TRAINING_H
#define FACULA_STUDIO_TRAINING_H
#include "facula/train.h"

/* What a page trains with.  The loader is made when it is missing; `train` must not move after
 * that. */
typedef struct studio_training {
    fac_trainer *trainer;
    const fac_dataset *train;
    const fac_batches *order;
    fac_loader **loader;
} studio_training;

/* Runs step number `step`.  After an error the loader is freed, so that the next call tries the
 * same batch again: a loader keeps the error of a batch. */
fac_status fac_studio_step(const studio_training *t, int64_t step, double lr, fac_score *score,
                           fac_error *err);

/* Progress of a training.  Loss and accuracy are means over about the last 30 steps. */
typedef struct studio_progress {
    int64_t step;
    double loss, accuracy, seconds; /* seconds: total time of the steps */
    fac_error stopped;              /* why the last step failed */
} studio_progress;

/* Runs at most n steps, up to step number `end`, for at most most_ns nanoseconds.  False: the
 * training is over, at its end or by an error. */
bool fac_studio_steps(const studio_training *t, double lr, int64_t end, int64_t n, int64_t most_ns,
                      studio_progress *p);
#endif
