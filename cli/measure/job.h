/* What bench, profile and tune have in common: a model or one problem on a device, with random
 * inputs, ready to run. */
#ifndef FACULA_CLI_JOB_H
#define FACULA_CLI_JOB_H
#include "cli.h"
#include "facula/lm.h"
#include "facula/train.h"

typedef struct job_options {
    device_options device;
    const char *solver, *weights, *precision;
    list shapes;
    long batch, seed;
    double recompute;
    bool train, inputs;
} job_options;
#define JOB_OPTIONS(o)                                                                             \
    { "--batch",                                                                                   \
      OPTION_INT,                                                                                  \
      &(o).batch,                                                                                  \
      "N",                                                                                         \
      "size of the first open dim of each input; default 1",                                       \
      OPTION_COUNT },                                                                              \
        { "--shape", OPTION_LIST, &(o).shapes, "NAME=DIMS",                                        \
          "sizes of an input: x=1x3x224x224; may be repeated" },                                   \
        { "--weights", OPTION_TEXT, &(o).weights, "FILE",                                          \
          "of zoo:NAME; without it they are random" },                                             \
        LINK_ROOT_OPTION, { "--precision", OPTION_TEXT, &(o).precision, "NAME", PRECISION_HELP },  \
        { "--train", OPTION_FLAG, &(o).train, NULL,                                                \
          "measure a training step of a classifier (cross entropy, Adam, random labels)" },        \
        { "--recompute",                                                                           \
          OPTION_REAL,                                                                             \
          &(o).recompute,                                                                          \
          "SHARE",                                                                                 \
          "with --train: the share of the forward values that is kept, as in `facula train`",      \
          "(0, 1)" },                                                                              \
        { "--inputs", OPTION_FLAG, &(o).inputs, NULL,                                              \
          "take all operands of a problem as inputs, as if each run computed them" },              \
    {                                                                                              \
        "--seed", OPTION_INT, &(o).seed, "S", "seed of the random inputs; default 0"               \
    }

typedef struct job {
    model m;
    fac_device *device;
    fac_trainer *trainer; /* --train: it owns the program */
    fac_lm *lm;           /* a language model: its session owns program, in and out */
    fac_session *session;
    fac_program *program;
    fac_tensor **in, **out; /* nin and nout of them */
    int nin, nout;
    double loaded; /* seconds that it took to open the device and to read the model */
} job;

/* what: a file, zoo:NAME or a problem.  An exit code; close it in any case. */
int job_open(job *j, const verb *v, const job_options *o, const char *what);
void job_close(job *j);

/* job_language.c: what is a GGUF file or a folder of Hugging Face, of which a step of decoding is
 * measured.  An exit code; close it in any case. */
bool job_is_language(const char *what);
int job_open_language(job *j, const verb *v, const job_options *o, const char *what);

/* The two halves of each, for several programs of one model: device and model; inputs and program.
 * Settling may put another form of the graph in the place of j->m.graph. */
int job_begin(job *j, const verb *v, const job_options *o, const char *what);
int job_settle(job *j, const verb *v, const job_options *o);
void job_unsettle(job *j);
#endif
