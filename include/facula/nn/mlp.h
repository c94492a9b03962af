/* facula/nn/mlp.h: layers in a row by a line of text, "16,16,tanh". */
#ifndef FACULA_MLP_H
#define FACULA_MLP_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

enum { FAC_MLP_LAYERS = 8, FAC_MLP_WIDTH = 512 };

/* Widths of the hidden layers, and what comes after each of them: "relu", "tanh", "sigmoid", "gelu"
 * or "linear". */
typedef struct fac_mlp {
    int n, width[FAC_MLP_LAYERS];
    const char *activation;
} fac_mlp;

/* At most 8 widths of 1 to 512, then an activation, all parted by commas; without one: relu.  No
 * widths: a linear classifier.  FAC_E_ARGUMENT says which word is wrong. */
fac_status fac_mlp_parse(const char *text, fac_mlp *out, fac_error *err);
/* The same text again. */
void fac_mlp_text(const fac_mlp *m, char *to, size_t size);

/* x [N,...] -> [N,outputs]: layers fc1, fc2 ..., the last one without an activation.  hidden: NULL,
 * or room for m->n values, each layer after its activation. */
fac_value *fac_nn_mlp(fac_value *x, const fac_mlp *m, int outputs, fac_value *hidden[]);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
