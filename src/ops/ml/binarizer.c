/* ai.onnx.ml's Binarizer: 1 above the threshold, else 0. */
#include "ops/ml/ml.h"

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_dtype dtype = in[0]->type.dtype;
    out[0] =
        fac_cast(fac_greater(in[0], fac_number(g, dtype, fac_onnx_real(n, "threshold", 0))), dtype);
}

const fac_onnx fac_reads_binarizer[] = { { FAC_ML, "Binarizer", 1, 0, NULL, load, 1 }, { 0 } };
