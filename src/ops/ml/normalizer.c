/* ai.onnx.ml's Normalizer: rows divided by their maximum, or by their norm; what that would divide
 * by 0 stays. */
#include <string.h>
#include "ops/ml/ml.h"

static fac_value *norm_of(const fac_onnx_node *n, fac_value *x, fac_dims axis) {
    const char *norm = fac_onnx_text(n, "norm", "MAX");
    if (!strcmp(norm, "MAX")) return fac_reduce_max(x, axis, true);
    if (!strcmp(norm, "L1")) return fac_reduce_l1(x, axis, true);
    if (!strcmp(norm, "L2")) return fac_reduce_l2(x, axis, true);
    return fac_fail_graph(fac_value_graph(x), FAC_E_FORMAT,
                          "norm is \"%s\", it must be MAX, L1 or L2", norm);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_value *x = fac_cast(in[0], FAC_F32);
    fac_value *by = norm_of(n, x, fac_shape(x->type.dims.n > 1 ? 1 : 0));
    fac_value *none = fac_equal(by, fac_number(g, FAC_F32, 0));
    out[0] = fac_div(x, fac_where(none, fac_number(g, FAC_F32, 1), by));
}

const fac_onnx fac_reads_normalizer[] = { { FAC_ML, "Normalizer", 1, 0, NULL, load, 1 }, { 0 } };
