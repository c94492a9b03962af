/* A model that hears: which of its inputs is the waveform, at which rate, how much at once, and
 * what it remembers from one window to the next. */
#ifndef FACULA_CLI_HEAR_H
#define FACULA_CLI_HEAR_H
#include "cli.h"
#include "labels.h"

/* More states than this is no model that hears. */
enum { HEAR_STATES = 16 };

typedef struct hearer {
    const model *m;
    fac_device *device;
    fac_program *program;
    int rate;
    int64_t window;   /* samples; -1: the whole file at once */
    int64_t hop;      /* samples between windows; 0: what the listener likes */
    const char *only; /* what a model with a single score tells; NULL */
    int wave;         /* the input that takes the waveform */
    int ninputs, noutputs;
    int from[HEAR_STATES]; /* of each input: the output that it carries; -1 */
    fac_tensor *in[HEAR_STATES];
    int64_t classes; /* of the last scores */
    double *p;       /* their probabilities; of a single score, itself */
} hearer;

/* What the model's inputs and metadata say; an exit code.  The program is the caller's. */
int hearer_open(hearer *h, const model *m, fac_device *device, fac_program *program);
/* Before another sound: states are zero. */
fac_status hearer_reset(hearer *h, fac_error *err);
/* n samples: probabilities to h->p, h->classes of them.  FAC_E_SHAPE: the first output is no row of
 * scores.  h->p is valid until the next call. */
fac_status hearer_hear(hearer *h, const float *wave, int64_t n, fac_error *err);
/* How many samples of silence come before the first window: of models with states, those that a
 * window shares with the one before. */
int64_t hearer_before(const hearer *h);
bool hearer_carries(const hearer *h); /* it has states */
void hearer_free(hearer *h);

/* The best of these probabilities; their number. */
int best_of(const double *p, int64_t classes, const labels *names, int most, fac_class *top);
/* What a class is called; a model with one score has a class of its own name. */
const char *heard_as(const hearer *h, const fac_class *c, char *to, size_t size);
#endif
