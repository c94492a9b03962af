/* ai.onnx.ml's CastMap: the values of a map in the order of its keys, or each at the place that is
 * its key.  A map is a list of its keys and its values (graph/list.h). */
#include <string.h>
#include "facula/op.h"
#include "graph/list.h"
#include "op_list.h"
#include "ops/ml/ml.h"

static fac_value *in_order(fac_graph *g, fac_value *keys, fac_value *values) {
    const struct {
        int64_t axis;
        bool smallest;
    } by = { 0, true };
    fac_value *n = fac_reshape(fac_size_of(keys), fac_shape(1));
    fac_value *sorted =
        fac_emit_body(g, &fac_op_top_k, &by, 2, 2, (fac_value *[]){ keys, n }, NULL, NULL);
    return fac_gather(values, fac_value_other(sorted, 1), 0);
}

static fac_dtype cast_to(const fac_onnx_node *n, fac_graph *g) {
    static const struct {
        const char *name;
        fac_dtype dtype;
    } types[] = { { "TO_FLOAT", FAC_F32 }, { "TO_INT64", FAC_I64 }, { "TO_STRING", FAC_TEXT } };
    const char *to = fac_onnx_text(n, "cast_to", "TO_FLOAT");
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (!strcmp(types[k].name, to)) return types[k].dtype;
    fac_fail_graph(g, FAC_E_FORMAT, "cast_to is \"%s\"", to);
    return FAC_F32;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const char *form = fac_onnx_text(n, "map_form", "DENSE");
    const int64_t length = fac_onnx_int(n, "max_map", 1);
    const fac_dtype to = cast_to(n, g);
    const bool sparse = !strcmp(form, "SPARSE");
    if (!fac_is_list(in[0]) || fac_list_count(in[0]) != 2 || (!sparse && strcmp(form, "DENSE")) ||
        length < 1) {
        fac_fail_graph(g, FAC_E_FORMAT,
                       "CastMap: its input must be a map, its map_form DENSE or SPARSE");
        return;
    }
    fac_value *keys = fac_cast(fac_list_item(in[0], 0), FAC_I64), *values = fac_list_item(in[0], 1);
    if (!sparse)
        values = in_order(g, keys, values);
    else {
        fac_value *zeros = fac_full(fac_ml_const(g, FAC_I64, 1, &length), values->type.dtype, 0);
        values = fac_scatter_elements(zeros, keys, values, 0, FAC_SCATTER_NONE);
    }
    out[0] = fac_unsqueeze(fac_cast(values, to), fac_shape(0));
}

static const fac_onnx_attr names[] = { { "max_map", NULL }, { 0 } };
const fac_onnx fac_reads_cast_map[] = { { FAC_ML, "CastMap", 1, 0, names, load, 1 }, { 0 } };
