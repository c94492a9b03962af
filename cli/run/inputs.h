/* The inputs of a model from photos and tensors: what `facula run` and `facula activations` are
 * given. */
#ifndef FACULA_CLI_INPUTS_H
#define FACULA_CLI_INPUTS_H
#include "photo.h"

typedef struct input_options {
    photo_options photo;
    list named, shapes;
    long seed;
    bool random;
} input_options;
#define INPUT_OPTIONS(o)                                                                           \
    { "--input", OPTION_LIST, &(o).named, "NAME=FILE",                                             \
      "read an input from .npy, .npz, .pb or a photo; may be repeated" },                          \
        { "--shape", OPTION_LIST, &(o).shapes, "NAME=DIMS",                                        \
          "sizes of an input: x=1x3x224x224; may be repeated" },                                   \
        { "--random", OPTION_FLAG, &(o).random, NULL,                                              \
          "draw the inputs that are not given at random" },                                        \
        { "--seed", OPTION_INT, &(o).seed, "S", "seed of random inputs and weights; default 0" },  \
        PHOTO_OPTIONS((o).photo)

/* What --input gives: a name that the file has as an initializer and as an input is an input then.
 * Set before a model is loaded; NULL: nothing is given. */
extern const list *inputs_given;

typedef struct inputs {
    fac_tensor **tensor; /* in the order of the graph's inputs */
    const char **photo;  /* the file that it came from, if it was a photo */
    bool *random;        /* it came from nowhere */
    int n;
    photo_plan plan; /* how the last photo was prepared */
} inputs;

/* Those of --input, then the files in order, then random ones; an exit code.  Every input has its
 * tensor afterwards. */
int inputs_load(const model *m, const input_options *o, const verb *v, list files, inputs *to);
void inputs_free(inputs *in); /* and clears; an empty one is fine */
#endif
