/* ai.onnx.ml's LinearRegressor: x w^T + b. */
#include "ops/ml/linear.h"

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const int64_t targets = fac_onnx_int(n, "targets", 1);
    const fac_ml_post post = fac_ml_post_of(n, g);
    fac_value *y = fac_ml_linear(n, fac_ml_rows(in[0]), targets);
    if (y) out[0] = fac_cast(fac_ml_post_apply(y, post), FAC_F32);
}

const fac_onnx fac_reads_linear_regressor[] = { { FAC_ML, "LinearRegressor", 1, 0, NULL, load, 1 },
                                                { 0 } };
