/* ai.onnx.ml's Imputer: one value, which stands for a missing one, is replaced, by feature or
 * everywhere. */
#include <math.h>
#include "ops/ml/ml.h"

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_dtype dtype = in[0]->type.dtype;
    const bool floats = fac_dtype_get(dtype)->kind == 'f';
    const fac_ml_reals reals = fac_ml_reals_of(n, g, "imputed_value_floats");
    const fac_ml_ints ints = fac_ml_ints_of(n, g, "imputed_value_int64s");
    const double real = fac_onnx_real(n, "replaced_value_float", 0);
    const int64_t number = fac_onnx_int(n, "replaced_value_int64", 0);
    const int count = floats ? reals.n : ints.n;
    if (count <= 0) {
        fac_fail_graph(g, FAC_E_FORMAT, "Imputer lacks imputed values of its input's type");
        return;
    }
    fac_value *by = floats ? fac_ml_numbers(g, dtype, fac_shape(count), reals.v)
                           : fac_cast(fac_ml_const(g, FAC_I64, count, ints.v), dtype);
    fac_value *missing =
        floats && isnan(real)
            ? fac_isnan(in[0])
            : fac_equal(in[0], fac_number(g, dtype, floats ? real : (double)number));
    out[0] = fac_where(missing, by, in[0]);
}

const fac_onnx fac_reads_imputer[] = { { FAC_ML, "Imputer", 1, 0, NULL, load, 1 }, { 0 } };
