/* What SVMRegressor and SVMClassifier share: kernels of rows with support vectors. */
#ifndef FACULA_OPS_ML_SVM_H
#define FACULA_OPS_ML_SVM_H
#include "ops/ml/ml.h"

/* k(x_i, v_j), [N, count], of x [N, F] with count vectors of F numbers, by the attributes
 * kernel_type and kernel_params LINEAR x.v   POLY (gamma x.v + coef0)^degree   RBF exp(-gamma |x -
 * v|^2)   SIGMOID tanh(gamma x.v + coef0) NULL after an error of the graph. */
fac_value *fac_ml_kernel(const fac_onnx_node *n, fac_value *x, const double *vectors, int64_t count,
                         int64_t features);
#endif
