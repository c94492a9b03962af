/* facula train: what its files share. */
#ifndef FACULA_CLI_TRAIN_H
#define FACULA_CLI_TRAIN_H
#include "cli.h"
#include "train_view.h"

/* The options of a training; 0 and NULL mean the default of the data set.  Recorded in run.json. */
typedef struct train_options {
    const char *set, *data, *model, *weights, *optimizer, *schedule, *augment, *size, *tensorboard;
    long   epochs, batch, seed, warmup;
    double lr, momentum, weight_decay, label_smoothing, clip;
    list   freeze;
    const char *glove;          /* vectors of words to begin with */
    fac_vocab *vocab;           /* of texts, made with the data; not recorded */
} train_options;

/* Defaults of one data set. */
typedef struct train_set {
    const char *name, *help, *folder, *model, *schedule;
    long   epochs, batch;
    double lr;
} train_set;
extern const train_set train_sets[];                    /* ends with a NULL name */
int train_defaults(train_options *o);                   /* fills in what was not given */
int train_data(train_options *o, fac_dims want, fac_dataset *train, fac_dataset *test);
int train_model(const train_options *o, const fac_dataset *like, model *out);   /* like NULL: only of models that need no data */
/* The same for texts. */
int  text_data(train_options *o, fac_dataset *train, fac_dataset *test);
bool text_is_model(const char *name);
bool text_any_length(const char *name);
int  text_model(const train_options *o, const fac_dataset *like, int dim, model *out);      /* dim 0: the usual one */

/* DIR/run.json: written, and read back where options were not given. */
char *train_about(const train_options *o, const fac_device *device);    /* its text, of malloc; NULL: no memory */
int train_record(const char *dir, const char *about);
int train_recall(const char *dir, train_options *o);

#endif
