/* Between the layers: how a parameter comes into being. */
#ifndef FACULA_NN_INTERNAL_H
#define FACULA_NN_INTERNAL_H
#include "facula/nn.h"
#include "graph/graph_internal.h"

/* First values: uniform between lo and hi; a constant when they are equal. */
typedef struct fac_nn_init { float lo, hi; } fac_nn_init;

/* The parameter (or state) "<scope>.<name>" of the graph at hand, from its source or drawn from its seed. */
fac_value *fac_nn_leaf(fac_graph *g, fac_leaf kind, const char *name, fac_dtype dtype, fac_dims dims, fac_nn_init init);
#endif
