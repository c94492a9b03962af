/* What Loop's reader asks of loop_lists.c. */
#ifndef FACULA_OPS_LOOP_LISTS_H
#define FACULA_OPS_LOOP_LISTS_H
#include "facula/op.h"

bool fac_loop_has_lists(const fac_onnx_node *n, fac_value *const in[]);
/* formal: inputs of the body.  Errors are the graph's. */
void fac_loop_lists(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[],
                    int formal);
#endif
