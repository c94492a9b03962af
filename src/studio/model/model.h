/* Shared by the files of the page of graphs. */
#ifndef FACULA_STUDIO_MODEL_H
#define FACULA_STUDIO_MODEL_H
#include "facula/graph.h"

/* Adds the gradients of a loss with respect to all parameters as outputs.  The loss of a classifier
 * [N,classes] is its cross entropy with class 0, that of other models the mean square of their
 * first output. */
fac_status fac_model_gradients(fac_graph *g, fac_error *err);
#endif
