/* Between the files of the page of graphs. */
#ifndef FACULA_STUDIO_MODEL_H
#define FACULA_STUDIO_MODEL_H
#include "facula/graph.h"

/* Adds the gradients of all parameters by a loss as outputs: of a classifier [N,classes] its cross
 * entropy with class 0, of others the mean of the squares of their first output. */
fac_status fac_model_gradients(fac_graph *g, fac_error *err);
#endif
