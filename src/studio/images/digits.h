/* A network for digits that comes with the source: LeNet-5, trained on MNIST by
 * scripts/digits_model.py, one byte per weight. */
#ifndef FACULA_STUDIO_DIGITS_H
#define FACULA_STUDIO_DIGITS_H
#include "facula/graph.h"

/* x f32 [N,1,28,28], where 0 is paper and 1 ink, as sketch.h draws.  The output is the logits of
 * the digits 0 to 9. */
fac_status fac_studio_digits(fac_graph **out, fac_error *err);
#endif
