/* facula quantize --sweep: what each layer loses alone at 1 to 4 bits. */
#ifndef FACULA_CLI_QUANTIZE_SWEEP_H
#define FACULA_CLI_QUANTIZE_SWEEP_H
#include "quantize.h"

/* Samples that every variant of the model is calibrated with: of `inputs` tensors each, retained.
 */
typedef struct sweep_samples {
    int inputs, n, room;
    fac_tensor **at;
} sweep_samples;
fac_status sweep_keep(sweep_samples *s, fac_tensor *const in[], fac_error *err);
void sweep_free(sweep_samples *s);

typedef struct sweep_what {
    const fac_graph *model;
    fac_device *device;
    const char *scheme; /* lq:wWaA, whose A of 32 leaves floats to all inputs */
    const char *out;    /* a chart, .svg or .png; NULL: none */
    const list *keep;
    const train_job *labelled; /* NULL: signal to error in place of accuracy */
    const sweep_samples *samples;
    bool json;
} sweep_what;
int quantize_sweep(const sweep_what *w);
#endif
