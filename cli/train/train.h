/* facula train: what its files share. */
#ifndef FACULA_CLI_TRAIN_H
#define FACULA_CLI_TRAIN_H
#include "cli.h"
#include "facula/lm.h"
#include "train_view.h"

/* The options of a training; 0 and NULL mean the default, of the data set or of all. */
typedef struct train_options {
    const char *hold_out;
    long sound_memory;
    long points;
    double noise, test_part;
    long rate, mels;
    double seconds, mask, low, high;
    const char *normalize; /* sounds: clip or bands */
    const char *set, *data, *model, *weights, *optimizer, *schedule, *augment, *size, *tensorboard,
        *precision, *glove, *rest;
    long epochs, batch, accumulate, seed, warmup, patience, evaluate_every;
    double lr, momentum, weight_decay, label_smoothing, clip, clip_value, ema, gamma;
    bool nesterov, spare_vectors;
    list freeze, quantize;
    const char *tokenizer, *lora, *scheme;
    long steps, context, test_batches;
    double dropout, beta2;
    /* not recorded */
    const char *out, *resume;
    long show;
    double recompute;
    bool json, quiet, detect_anomaly, overwrite, merge;
    device_options device;
    fac_vocab *vocab;        /* of texts, made with the data */
    bool whole;              /* sounds: all recordings are for testing */
    const fac_dataset *like; /* sounds: whose classes labels mean */
} train_options;

/* ---- train_options.c ---- */
extern train_options train_given;                /* what the command line said */
extern const option train_rows[];                /* ends with a NULL name */
bool train_recorded(const option *o);            /* of train_rows: it is part of run.json */
const char *train_wrong(const train_options *o); /* NULL: nothing */
/* The same of a scheme of --quantize, and which it is. */
const char *train_wrong_scheme(const train_options *o, const char **which);
int train_fits(const verb *v, const train_options *o); /* no option does nothing: an exit code */
void train_list(void);

/* ---- train_setup.c: everything that a training holds ---- */
typedef struct train_job {
    fac_device *dev;
    fac_dataset train, test;
    model m;
    fac_trainer *trainer;
    fac_augment augment;
    model whole;       /* of sounds whose pictures are kept: with what makes these */
    fac_dataset waves; /* ... and what it takes: item and classes */
    bool fresh_head;   /* the model gave other classes: its last layer is new */
    char *about;       /* run.json */
    fac_lm *lm;        /* of texts without classes; its graph is m.graph */
    fac_tokenizer *tokens;
    long in_epoch, steps; /* steps between looks at the test text; of the whole training */
    train_view view;
} train_job;
/* Of a model of the zoo or of a file; ours fit the data from the start. */
int train_fit_head(const train_options *o, int classes, model *m, bool *fresh);
int train_quantize(const train_options *o, model *m); /* as --quantize says */
int train_load(train_options *o, train_job *j); /* device, data and model, which fit each other */
int train_prepare(train_options *o, train_job *j); /* and a trainer */
int train_loop_opts(const train_options *o, train_job *j, fac_train_opts *t);
int train_tell_saving(const train_job *j, const fac_batches *b);
void train_free(train_options *o, train_job *j);

/* Defaults of one data set. */
typedef struct train_set {
    const char *name, *help, *folder, *model, *schedule, *augment;
    long epochs, batch;
    double lr; /* of adam, with the models of our own */
} train_set;
extern const train_set train_sets[];  /* ends with a NULL name */
int train_defaults(train_options *o); /* fills in what was not given */
int train_data(train_options *o, fac_dims want, fac_dataset *train, fac_dataset *test);
int train_model(const train_options *o, const fac_dataset *like,
                model *out); /* like NULL: only of models that need no data */
/* Weights of --weights for a model of our own.  later: they belong to the quantized network,
 * which is to be asked again. */
int train_begin_with(const train_options *o, fac_graph *g, bool quantized, bool *later);
/* The file of weights that --weights means: of a folder, its model.safetensors. */
int train_weights_file(const char *path, char *to, size_t size);
bool train_model_ours(const char *name); /* it fits itself to the samples */
/* The same for texts. */
int text_data(train_options *o, fac_dataset *train, fac_dataset *test);
bool text_is_model(const char *name);
bool text_any_length(const char *name); /* the network takes sentences of any length */
int text_model(const train_options *o, const fac_dataset *like, int dim,
               model *out); /* dim of the vectors; 0: the usual */

/* The same for sounds. */
bool sound_is_set(const char *set);
bool sound_is_own(const char *name); /* its spectrogram and network are made here */
/* A model of a file says at which rate it hears, and for how long, unless the options do. */
int sound_heard(train_options *o, const model *m);
int sound_data(train_options *o, fac_dataset *train, fac_dataset *test);
int sound_model(const train_options *o, const fac_dataset *like, model *out);
/* Where nothing random changes the sounds, their pictures are computed once: the job's data become
 * these, and its model the network after them; `whole` is what is to be saved. */
int sound_keep(const train_options *o, train_job *j);
/* The weights of a folder go to the whole model of the job. */
int sound_whole(train_job *j, const char *weights);
/* sound-cnn, or sound-cnn:WIDTH,WIDTH,... */
bool sound_net_is(const char *name);
fac_value *sound_net(const char *name, fac_value *x, int classes);
int sound_note(const train_options *o, fac_graph *g); /* the rate, for those who use the model */

/* Language models, from a text without classes. */
bool lm_is_set(const char *set);
bool lm_is_new(const train_options *o);      /* not a model of a folder or a file */
bool lm_writes_gguf(const train_options *o); /* the training writes a .gguf */
bool lm_is_chat(const train_options *o);     /* the data are conversations */
int lm_read_chats(train_options *o, train_job *j, const char *text, size_t bytes);
void lm_list(void);                          /* for the help */
int lm_defaults(train_options *o);           /* the usual of a small GPT */
int lm_load(train_options *o, train_job *j); /* what train_load does */
void lm_loop_opts(const train_options *o, const train_job *j, fac_train_opts *t);
int lm_store(const train_options *o,
             const train_job *j); /* the folder that `facula generate` reads */

/* DIR/run.json: written, and read back where options were not given.  o is train_given. */
char *train_about(const train_options *o,
                  const fac_device *device); /* its text, of malloc; NULL: no memory */
int train_record(const char *dir, const char *about);
int train_recall(const char *dir, train_options *o);
/* A folder that no training has begun in, else an error; what an earlier training left there is
 * deleted. */
int train_folder_free(const char *dir);
void train_folder_clear(const char *dir);
/* The same of the contents of DIR/run.json. */
int train_recall_text(const char *text, size_t bytes, const char *path, train_options *o);

#endif
