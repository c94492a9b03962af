/* What losses share. */
#ifndef FACULA_LOSS_INTERNAL_H
#define FACULA_LOSS_INTERNAL_H
#include "facula/loss.h"
#include "graph/graph_internal.h"

fac_value *fac_loss_reduce(fac_value *each, fac_reduction reduction);
/* A number of x's element type. */
static inline fac_value *fac_loss_number(fac_value *x, double number) { return fac_number(x->graph, x->type.dtype, number); }
#endif
