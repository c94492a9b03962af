/* What a trainer needs to be looked at: the model, and programs that are made when somebody first
 * asks. */
#ifndef FACULA_TRAIN_LOOK_H
#define FACULA_TRAIN_LOOK_H
#include "facula/train.h"

typedef struct fac_look {
    fac_graph *model;  /* shares the parameters */
    fac_graph *judged; /* what predicts: with moving averages, where they are kept */
    fac_device *device;
    double smoothing;
    bool soft, sequences;
    fac_precision precision;
    fac_graph *inspected; /* the training form with its gradients as outputs */
    fac_program *inspector, *predictor;
} fac_look;

fac_status fac_look_new(const fac_graph *model, fac_device *device, const fac_trainer_opts *o,
                        fac_look **out, fac_error *err);
void fac_look_free(fac_look *l); /* NULL is fine */
#endif
