/* The ONNX spelling of softmax and its kin. */
#ifndef FACULA_OPS_SOFTMAX_H
#define FACULA_OPS_SOFTMAX_H
#include "facula/op.h"

/* Since opset 13 along one axis (default -1).  Before it the tensor was taken as a matrix of prod(d[0..axis)) lines, each of
 * all that follows (default axis 1). */
fac_value *fac_softmax_load(const fac_onnx_node *n, fac_value *x, fac_value *(*op)(fac_value *x, int64_t axis));
#endif
