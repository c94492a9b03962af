/* ai.onnx.ml's DictVectorizer: the values of a map at the places that its keys have in a
 * vocabulary.  A map is a list of its keys and its values (graph/list.h). */
#include "graph/list.h"
#include "ops/ml/ml.h"

/* Keys and values of a map; false after an error of the graph. */
static bool is_map(const fac_onnx_node *n, fac_graph *g, const fac_value *v) {
    if (fac_is_list(v) && fac_list_count(v) == 2) return true;
    fac_fail_graph(g, FAC_E_FORMAT, "%s: its input must be a map", n->type);
    return false;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_ml_ints ints = fac_ml_ints_of(n, g, "int64_vocabulary");
    const fac_ml_texts texts = fac_ml_texts_of(n, g, "string_vocabulary");
    const int count = ints.n > 0 ? ints.n : texts.n;
    if (!is_map(n, g, in[0])) return;
    if (count < 1) {
        fac_fail_graph(g, FAC_E_FORMAT, "DictVectorizer lacks its vocabulary");
        return;
    }
    fac_value *keys = fac_list_item(in[0], 0), *values = fac_list_item(in[0], 1);
    fac_value *words = ints.n > 0 ? fac_ml_const(g, FAC_I64, ints.n, ints.v)
                                  : fac_ml_const(g, FAC_TEXT, texts.n, texts.v);
    fac_value *size = fac_ml_const(g, FAC_I64, 1, &(int64_t){ count });
    fac_value *zeros = fac_full(size, values->type.dtype, 0),
              *at = fac_find_keys(keys, words, true);
    out[0] =
        fac_unsqueeze(fac_scatter_elements(zeros, at, values, 0, FAC_SCATTER_NONE), fac_shape(0));
}

const fac_onnx fac_reads_dict_vectorizer[] = { { FAC_ML, "DictVectorizer", 1, 0, NULL, load, 1 },
                                               { 0 } };
