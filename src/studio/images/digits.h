/* A network that knows digits and comes with the source: LeNet-5, trained on MNIST by
 * scripts/digits_model.py, a byte a weight. */
#ifndef FACULA_STUDIO_DIGITS_H
#define FACULA_STUDIO_DIGITS_H
#include "facula/graph.h"

/* x f32 [N,1,28,28], 0 is paper and 1 ink, as sketch.h draws; logits of the digits 0 to 9. */
fac_status fac_studio_digits(fac_graph **out, fac_error *err);
#endif
