/* facula/train.h: training a classifier.
 *
 * A trainer makes two programs of a model: the step (forward, cross entropy, gradients, optimizer,
 * updates: one program) and the evaluation.  Both share the parameter tensors of the model, which
 * is therefore trained in place.  The model's first input takes samples [N,...], its first output
 * gives logits [N,classes].  Batch norms of a model in inference form (of the zoo, of an ONNX file)
 * take the statistics of each batch in the step, and update their running ones. Everything that
 * changes is in the parameters and states of the step, the step number included, so a checkpoint is
 * one file of tensors, and a training that is resumed goes on bit by bit as if it had never
 * stopped. */
#ifndef FACULA_TRAIN_H
#define FACULA_TRAIN_H

#include "facula/data/data.h"
#include "facula/optim.h"
#include "facula/program.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* A copy for training, as fac_graph_inference gives one without it: batch norms take the statistics
 * of each batch and update their running ones, which are states even where an importer took them
 * for parameters.  NULL only when memory is gone. */
fac_graph *fac_graph_training(const fac_graph *model);

/* What was done to the end of a network. */
typedef struct fac_head {
    char layer[128];                /* the last layer with weights */
    int64_t features, had, classes; /* numbers that a class is made from; classes before and now */
    bool replaced,
        batch_freed; /* its weights are fresh ones; a batch of fixed size may be any now */
} fac_head;
/* A copy of a model, of the zoo or of an ONNX file, that gives logits [N,classes], ready to be
 * trained: when its last layer (a linear one, a product or a convolution) has another number of
 * classes it is replaced by a fresh one, drawn from the seed as torch draws it, under the old
 * names; names of the old classes (FAC_NOTE_LABELS) go; softmax after it goes; a fixed batch
 * becomes any, if the model allows that.  All other parameters are shared.  head may be NULL.
 * FAC_E_UNSUPPORTED: the model ends in something else. */
fac_status fac_graph_replace_head(const fac_graph *model, int64_t classes, uint64_t seed,
                                  fac_graph **out, fac_head *head, fac_error *err);

typedef struct fac_trainer fac_trainer;

typedef struct fac_trainer_opts {
    const char *optimizer; /* a name of fac_optims; NULL = "adam" */
    fac_optim_opts optim;
    double label_smoothing;
    bool sequences;   /* logits are [N,L,classes], labels i64 [N,L], those of FAC_NO_LABEL do not
                         count: language models.  Samples of a score are then labels */
    bool soft_labels; /* labels of a step are probabilities f32 [N,classes], as mixup makes them */
    fac_precision precision; /* as in fac_program_opts */
    fac_dtype
        mixed; /* FAC_BF16, FAC_F16: the model computes in it (fac_graph_autocast), parameters and
                  moments stay as they are; f16 with loss scaling.  FAC_NONE: as the model is */
    double recompute;    /* forward values alive at one time, as a share of what they are without
                            recomputing;    0: nothing is recomputed.  See facula/recompute.h and
                            fac_program_opts */
    bool detect_anomaly; /* a step stops at the first operation that makes NaN or infinity, and its
                            error names it; slow */
} fac_trainer_opts;

/* Means; accuracy 0..1.  error: the standard error of an evaluation's loss, from how its batches
 * differ; 0: of one batch. */
typedef struct fac_score {
    double loss, accuracy;
    int64_t samples;
    double error;
} fac_score;

/* opts may be NULL.  The model must outlive nothing: it may be changed or freed afterwards. */
fac_status fac_trainer_new(const fac_graph *model, fac_device *device, const fac_trainer_opts *opts,
                           fac_trainer **out, fac_error *err);
/* Frees the trainer; tensors that were retained stay.  NULL is fine. */
void fac_trainer_free(fac_trainer *t);
int64_t fac_trainer_steps(
    const fac_trainer *t); /* done so far: batches, also when their gradients accumulate */
/* The program of a step, for profiles; it stays the trainer's.  Inputs: samples, labels (i64 N),
 * learning rate (an f64 scalar), and with accumulation whether to take the step now (a bool
 * scalar). */
fac_program *fac_trainer_program(const fac_trainer *t);

/* One step on one batch; score may be NULL.  FAC_E_ARGUMENT when the loss is not finite: the
 * parameters are then those of before the step. */
fac_status fac_trainer_step(fac_trainer *t, fac_tensor *x, fac_tensor *labels, double lr,
                            fac_score *score, fac_error *err);
/* With opts.optim.accumulate: the next step takes all that was accumulated, whatever the count, as
 * after an epoch. */
fac_status fac_trainer_flush(fac_trainer *t, fac_error *err);
/* All of a data set, in batches of this size; with opts.optim.ema by the moving averages, as
 * predictions and confusions. */
fac_status fac_trainer_evaluate(fac_trainer *t, const fac_dataset *data, int64_t batch,
                                fac_score *score, fac_error *err);

/* ---- looking at it; programs for these are made when they are first asked for ---- */

/* Logits [N,...] of samples, as in the evaluation; a new tensor. */
fac_status fac_trainer_predict(fac_trainer *t, fac_tensor *x, fac_tensor **logits, fac_error *err);
/* The place of the largest number in each row of [N,classes]; the first of equal ones. */
fac_status fac_tensor_best(const fac_tensor *logits, int64_t *to, fac_error *err);
/* counts[truth * classes + prediction] over all of a data set. */
fac_status fac_trainer_confusion(fac_trainer *t, const fac_dataset *data, int64_t batch,
                                 int64_t *counts, fac_error *err);

/* The first output of p, f32 [N, ...], for every sample of d as it is without augmentation: a new
 * data set of values with the same labels and classes.  p takes `batch` samples at once. */
fac_status fac_dataset_through(const fac_dataset *d, fac_program *p, int64_t batch,
                               fac_dataset *out, fac_error *err);

/* d loss / d parameter for one batch, at the parameters as they are; nothing is updated. */
typedef struct fac_gradient {
    const char *name; /* name and parameter stay the trainer's */
    fac_tensor *parameter, *gradient;
    double norm;
} fac_gradient;
typedef struct fac_gradients {
    int n;
    fac_gradient *of;
    double norm;
} fac_gradients; /* norm: of all together */
fac_status fac_trainer_gradients(fac_trainer *t, fac_tensor *x, fac_tensor *labels,
                                 fac_gradients *out, fac_error *err);
void fac_gradients_free(fac_gradients *g); /* and clears; an empty one is fine */

/* A checkpoint: parameters, states, moments, step number; safetensors, written atomically. */
fac_status fac_trainer_save(const fac_trainer *t, const char *path, fac_error *err);
/* Goes on from a checkpoint.  FAC_E_ARGUMENT names a tensor that is missing, of another type or
 * shape, or one too many; nothing is changed then.  FAC_E_IO, FAC_E_FORMAT, FAC_E_NOMEM. */
fac_status fac_trainer_load(fac_trainer *t, const char *path, fac_error *err);
/* Where opts.optim.ema keeps moving averages, the parameters (those of the model) become them:
 * before a model is saved at the end of its training. */
fac_status fac_trainer_average(fac_trainer *t, fac_error *err);
/* The parameters and states of a model alone. */
fac_status fac_graph_save_weights(const fac_graph *model, const char *path, fac_error *err);

/* ---- the usual loop ---- */

/* After every step; and once more after each epoch that the test set is looked at, with `test` set.
 */
typedef struct fac_progress {
    int64_t step, steps;   /* done, of the whole training */
    int64_t epoch, epochs; /* epoch: from 0 */
    double lr, seconds;    /* since this call began */
    double images_per_s;
    fac_score batch;       /* of this step */
    fac_score train;       /* of this epoch so far, of the steps that this call did */
    const fac_score *test; /* after an epoch, when there is a test set; else NULL */
} fac_progress;

typedef struct fac_train_opts {
    int64_t epochs;
    fac_batches batches;
    fac_schedule schedule; /* its steps are batches; steps 0: those of the whole training; lr 0: the
                              usual one of the optimizer.  Plateau: of the loss of the test set, or
                              rising, of the accuracy */
    int ahead;             /* batches made ahead by a thread; 0: 2, negative: none and no thread */
    int64_t steps; /* the training ends after so many, where the last epoch may be cut; 0: after the
                      last epoch.  epochs must be enough for them */
    int64_t evaluate_every; /* epochs; 0: 1.  The last one always */
    const char *checkpoint; /* written after every epoch and when stopped; NULL: none */
    bool (*report)(void *self,
                   const fac_progress *p); /* false stops after this step; may be NULL */
    void *self;
} fac_train_opts;

typedef struct fac_train_result {
    int64_t epochs, steps;        /* done, earlier runs of a resumed training included */
    double seconds, images_per_s; /* of this call: all of it; the steps alone */
    bool stopped;                 /* by report */
    fac_score train, test;        /* of the last epoch */
} fac_train_result;

/* What fac_train asks first: were the steps so far done with this data set, batch size and seed?
 * Else FAC_E_ARGUMENT. */
fac_status fac_trainer_continues(fac_trainer *t, const fac_dataset *train,
                                 const fac_batches *batches, fac_error *err);

/* From the trainer's step number on (0, or that of a loaded checkpoint) to the end of the last
 * epoch.  test may be NULL. A training goes on with the data, batch size and seed that it was begun
 * with, else FAC_E_ARGUMENT.  Another number of epochs is fine: the schedule is then the one of
 * that length. */
fac_status fac_train(fac_trainer *t, const fac_dataset *train, const fac_dataset *test,
                     const fac_train_opts *opts, fac_train_result *out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
