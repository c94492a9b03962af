/* ai.onnx.ml's OneHotEncoder: a new last axis, 1 at the place of the category. */
#include "ops/ml/ml.h"

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_ml_ints i = fac_ml_ints_of(n, g, "cats_int64s");
    const fac_ml_texts t = fac_ml_texts_of(n, g, "cats_strings");
    const bool zeros = fac_onnx_int(n, "zeros", 1) != 0, texts = in[0]->type.dtype == FAC_TEXT;
    const int count = texts ? t.n : i.n;
    if (count < 0) {
        fac_fail_graph(g, FAC_E_FORMAT, "OneHotEncoder lacks %s",
                       texts ? "cats_strings" : "cats_int64s");
        return;
    }
    fac_value *keys =
        texts ? fac_ml_const(g, FAC_TEXT, t.n, t.v) : fac_ml_const(g, FAC_I64, i.n, i.v);
    fac_value *x = texts ? in[0] : fac_cast(in[0], FAC_I64);
    fac_value *values = fac_ml_numbers(g, FAC_F32, fac_shape(2), (const double[]){ 0, 1 });
    fac_value *place = fac_find_keys(x, keys, !zeros);
    out[0] = fac_one_hot(place, fac_number(g, FAC_I64, count), values, -1);
}

const fac_onnx fac_reads_one_hot_encoder[] = { { FAC_ML, "OneHotEncoder", 1, 0, NULL, load, 1 },
                                               { 0 } };
