/* The ONNX spelling of softmax, log_softmax and hardmax, see softmax.h. */
#include "facula/ops.h"
#include "ops/softmax.h"

fac_value *fac_softmax_load(const fac_onnx_node *n, fac_value *x, fac_value *(*op)(fac_value *x, int64_t axis)) {
    if (n->opset >= 13) return op(x, fac_onnx_int(n, "axis", -1));
    fac_dims d = fac_value_type(x).dims;
    int64_t axis = fac_onnx_int(n, "axis", 1);
    if (axis < 0) axis += d.n;
    if (axis == d.n - 1) return op(x, axis);
    return fac_reshape(op(fac_flatten(x, axis), 1), d);
}
