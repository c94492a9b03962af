/* What a user's program shows of its training: curves and weights.  Threads of the program write
 * them by fac_studio_log and fac_studio_weights; threads of pages read them. */
#ifndef FACULA_STUDIO_NOTEBOOK_H
#define FACULA_STUDIO_NOTEBOOK_H
#include <stdint.h>
#include "base/text.h"
#include "facula/tensor.h"

enum { NOTEBOOK_CURVES = 16, NOTEBOOK_TENSORS = 200, NOTEBOOK_NAME = 96 };

typedef struct notebook notebook;

notebook *fac_notebook_new(void); /* NULL: no memory */
void fac_notebook_free(notebook *n);

fac_status fac_notebook_log(notebook *n, double step, int count, const char *const names[],
                            const double values[], fac_error *err);
fac_status fac_notebook_weights(notebook *n, int count, const char *const names[],
                                fac_tensor *const tensors[], fac_error *err);
void fac_notebook_stop(notebook *n); /* the page asks the training to stop */
bool fac_notebook_stopped(const notebook *n);

/* Counters that grow with new data of a kind. */
typedef struct notebook_turn {
    unsigned curves, weights;
} notebook_turn;
notebook_turn fac_notebook_turn(notebook *n);
void fac_notebook_put_curves(notebook *n, fac_text *to); /* members of an object */
/* Likewise.  pictures: of the same weights, after a generation, as FRAME_PICTURES. */
void fac_notebook_put_weights(notebook *n, fac_text *to, fac_text *pictures);
#endif
