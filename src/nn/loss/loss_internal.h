/* What losses share. */
#ifndef FACULA_LOSS_INTERNAL_H
#define FACULA_LOSS_INTERNAL_H
#include "facula/nn/loss.h"
#include "graph/graph_internal.h"

fac_value *fac_loss_reduce(fac_value *each, fac_reduction reduction);
/* sum divided by the first dim of x. */
fac_value *fac_loss_by_batch(fac_value *sum, fac_value *x);
/* A number of x's element type. */
static inline fac_value *fac_loss_number(fac_value *x, double number) {
    return fac_number(x->graph, x->type.dtype, number);
}
#endif
