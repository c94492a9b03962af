/* ai.onnx.ml's Scaler: (x - offset) scale, by feature or for all. */
#include "ops/ml/ml.h"

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_ml_reals offset = fac_ml_reals_of(n, g, "offset"),
                       scale = fac_ml_reals_of(n, g, "scale");
    if (offset.n <= 0 || scale.n <= 0) {
        fac_fail_graph(g, FAC_E_FORMAT, "Scaler lacks its %s", scale.n <= 0 ? "scale" : "offset");
        return;
    }
    fac_value *x = fac_cast(in[0], FAC_F32);
    x = fac_sub(x, fac_ml_numbers(g, FAC_F32, fac_shape(offset.n), offset.v));
    out[0] = fac_mul(x, fac_ml_numbers(g, FAC_F32, fac_shape(scale.n), scale.v));
}

const fac_onnx fac_reads_scaler[] = { { FAC_ML, "Scaler", 1, 0, NULL, load, 1 }, { 0 } };
