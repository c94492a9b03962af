/* What LinearRegressor and LinearClassifier share. */
#ifndef FACULA_OPS_ML_LINEAR_H
#define FACULA_OPS_ML_LINEAR_H
#include "ops/ml/ml.h"

/* x [N, F] coefficients^T + intercepts, [N, targets]; targets 0: as many as there are intercepts,
 * or one.  NULL after an error of the graph. */
fac_value *fac_ml_linear(const fac_onnx_node *n, fac_value *x, int64_t targets);
#endif
