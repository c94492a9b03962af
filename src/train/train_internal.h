/* Between the files of training. */
#ifndef FACULA_TRAIN_INTERNAL_H
#define FACULA_TRAIN_INTERNAL_H
#include "facula/io.h"
#include "facula/op.h"
#include "facula/train.h"
#include "train/look.h"

enum { FAC_TRAIN_LOSS, FAC_TRAIN_CORRECT, FAC_TRAIN_OUTPUTS }; /* outputs of both programs */

struct fac_trainer {
    fac_graph *step, *test; /* they own the parameters; the programs share them */
    fac_program *stepper, *tester;
    fac_tensor *done, *data, *plateau; /* of step: steps done, memory.c's states */
    fac_tensor *lr, *result[FAC_TRAIN_OUTPUTS];
    fac_tensor
        *flush; /* with accumulation: the next step takes all that was accumulated; else NULL */
    double usual_lr; /* of the optimizer */
    bool soft;       /* the step takes probabilities for labels */
    bool sequences;  /* a label for each token */
    fac_look *look;  /* for inspect.c and predict.c */
};

/* Adds the labels (soft: probabilities; sequences: of each token) as an input, and loss and number
 * of right answers as the only outputs.  Returns the loss. */
typedef struct fac_label_form {
    double smoothing;
    bool soft, sequences;
} fac_label_form;
fac_value *fac_train_loss(fac_graph *g, const fac_label_form *form);
/* The step refuses to be taken with a loss that is not finite: every parameter then becomes what it
 * was. */
void fac_train_guard(fac_graph *g, fac_value *loss);

/* basis_form.c: a quantizer whose basis is a state, which the step learns; false: n is something
 * else. */
bool fac_train_basis(fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]);

/* dequantize.c: a copy whose quantized weights are planes of bits (unpack_basis); how many. */
fac_status fac_train_packed(const fac_graph *model, int *packed, fac_graph **out, fac_error *err);

/* recognize.c: a copy where weights of few levels and comparisons of numbers with thresholds are
 * quantizers, as in graphs that were quantized here. */
fac_status fac_train_recognize(const fac_graph *model, fac_graph **out, fac_error *err);
/* The one number of a constant, or of a parameter that a file has in place of one. */
bool fac_train_number(const fac_value *v, double *to);

/* packed.c: the graph of a file that was read. */
fac_status fac_packed_take(const fac_weights *w, const char *path, fac_graph **out, fac_error *err);

/* memory.c */
fac_status fac_train_memory_new(fac_trainer *t, fac_error *err);
fac_plateau fac_train_plateau(const fac_trainer *t);
fac_status fac_train_plateau_next(fac_trainer *t, const fac_schedule *s, double metric,
                                  fac_error *err);

/* average.c: a copy of the model whose parameters are the moving averages that the step keeps.
 * NULL: no memory. */
fac_graph *fac_train_averaged(const fac_graph *model, fac_graph *step);

/* Means over more samples. */
static inline void fac_score_add(fac_score *all, const fac_score *more) {
    int64_t n = all->samples + more->samples;
    if (!n) return;
    double share = (double)more->samples / (double)n;
    all->loss += (more->loss - all->loss) * share;
    all->accuracy += (more->accuracy - all->accuracy) * share;
    all->samples = n;
}
#endif
