/* Inputs that a node of an ONNX file may leave out at its end. */
#ifndef FACULA_OPS_ONNX_IN_H
#define FACULA_OPS_ONNX_IN_H
#include "facula/op.h"

/* Input k, or NULL where the node has fewer. */
static inline fac_value *fac_onnx_in(const fac_onnx_node *n, fac_value *const in[], int k) {
    return k < n->nin ? in[k] : NULL;
}
#endif
