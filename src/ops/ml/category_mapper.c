/* ai.onnx.ml's CategoryMapper: integers become texts and texts integers, by two parallel lists. */
#include "ops/ml/ml.h"

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_ml_ints i = fac_ml_ints_of(n, g, "cats_int64s");
    const fac_ml_texts t = fac_ml_texts_of(n, g, "cats_strings");
    const char *text = fac_onnx_text(n, "default_string", "_Unused");
    const int64_t number = fac_onnx_int(n, "default_int64", -1);
    if (i.n < 0 || i.n != t.n) {
        fac_fail_graph(g, FAC_E_FORMAT, "CategoryMapper has %d integers and %d texts", i.n, t.n);
        return;
    }
    const bool to_text = in[0]->type.dtype != FAC_TEXT;
    fac_value *ints = fac_ml_const(g, FAC_I64, i.n, i.v),
              *texts = fac_ml_const(g, FAC_TEXT, t.n, t.v);
    fac_value *other =
        to_text ? fac_ml_const(g, FAC_TEXT, 1, &text) : fac_ml_const(g, FAC_I64, 1, &number);
    fac_value *all = fac_concat((fac_value *[]){ to_text ? texts : ints, other }, 2, 0);
    out[0] = fac_gather(all, fac_find_keys(in[0], to_text ? ints : texts, false), 0);
}

const fac_onnx fac_reads_category_mapper[] = { { FAC_ML, "CategoryMapper", 1, 0, NULL, load, 1 },
                                               { 0 } };
