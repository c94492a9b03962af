/* ai.onnx.ml's FeatureVectorizer: columns side by side, as floats, each input with as many as it is
 * said to have. */
#include "base/error.h"
#include "graph/graph_internal.h"
#include "ops/ml/ml.h"

/* Cut off, or filled up with zeros, to `columns`; -1: as they are. */
static fac_value *columns_of(fac_value *x, int64_t columns) {
    fac_graph *g = fac_value_graph(x);
    x = fac_cast(fac_ml_rows(x), FAC_F32);
    if (x->type.dims.n > 2) x = fac_flatten(x, 1);
    const int64_t has = x->type.dims.n == 2 ? x->type.dims.d[1] : -1;
    if (columns < 0 || has < 0 || has == columns) return x;
    if (has > columns) return fac_slice(x, 1, 0, columns, 1);
    const int64_t pads[] = { 0, 0, 0, columns - has };
    return fac_pad(x, fac_ml_const(g, FAC_I64, 4, pads), NULL, NULL, FAC_PAD_CONSTANT);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_ml_ints columns = fac_ml_ints_of(n, g, "inputdimensions");
    fac_value **all = fac_arena_alloc(&g->arena, (size_t)n->nin, sizeof *all);
    if (!all) {
        fac_fail_graph(g, FAC_E_NOMEM, "no memory for %d inputs", n->nin);
        return;
    }
    for (int k = 0; k < n->nin; k++) {
        if (!in[k]) {
            fac_fail_graph(g, FAC_E_FORMAT, "FeatureVectorizer lacks its input %d", k);
            return;
        }
        all[k] = columns_of(in[k], k < columns.n ? columns.v[k] : -1);
    }
    out[0] = fac_concat(all, n->nin, 1);
}

const fac_onnx fac_reads_feature_vectorizer[] = {
    { FAC_ML, "FeatureVectorizer", 1, 0, NULL, load, 1 }, { 0 }
};
