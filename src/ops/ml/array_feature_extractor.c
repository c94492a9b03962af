/* ai.onnx.ml's ArrayFeatureExtractor: elements of the last axis by their numbers. */
#include "ops/ml/ml.h"

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)n;
    fac_value *which = fac_reshape(in[1], fac_shape(-1));
    const int rank = in[0]->type.dims.n;
    if (!rank) {
        fac_fail_graph(g, FAC_E_SHAPE, "ArrayFeatureExtractor needs an input with dims");
        return;
    }
    fac_value *y = fac_gather(in[0], which, rank - 1);
    out[0] = rank == 1 ? fac_unsqueeze(y, fac_shape(0)) : y;
}

const fac_onnx fac_reads_array_feature_extractor[] = {
    { FAC_ML, "ArrayFeatureExtractor", 1, 0, NULL, load, 2 }, { 0 }
};
