/* ai.onnx.ml's SVMRegressor: sum over support vectors of coefficient times kernel, plus rho;
 * without vectors the coefficients are one.  one_class: 1 or -1, by its sign. */
#include "ops/ml/svm.h"

static fac_value *sum_of(const fac_onnx_node *n, fac_value *x) {
    fac_graph *g = fac_value_graph(x);
    const int64_t count = fac_onnx_int(n, "n_supports", 0);
    const fac_ml_reals w = fac_ml_reals_of(n, g, "coefficients"),
                       v = fac_ml_reals_of(n, g, "support_vectors");
    if (count <= 0) return w.n > 0 ? fac_ml_kernel(n, x, w.v, 1, w.n) : NULL;
    if (v.n <= 0 || v.n % count || w.n != count) return NULL;
    fac_value *k = fac_ml_kernel(n, x, v.v, count, v.n / count);
    return k ? fac_matmul(k, fac_ml_numbers(g, x->type.dtype, fac_shape(count, 1), w.v)) : NULL;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_ml_reals rho = fac_ml_reals_of(n, g, "rho");
    const fac_ml_post post = fac_ml_post_of(n, g);
    const bool one_class = fac_onnx_int(n, "one_class", 0) != 0;
    fac_value *y = sum_of(n, fac_cast(fac_ml_rows(in[0]), FAC_F32));
    if (!y || rho.n < 1) {
        fac_fail_graph(g, FAC_E_FORMAT,
                       "SVMRegressor: its vectors, coefficients and rho do not fit together");
        return;
    }
    y = fac_add(y, fac_number_as(y, rho.v[0]));
    if (one_class)
        out[0] = fac_where(fac_greater(y, fac_number_as(y, 0)), fac_number_as(y, 1),
                           fac_number_as(y, -1));
    else
        out[0] = fac_ml_post_apply(y, post);
}

const fac_onnx fac_reads_svm_regressor[] = { { FAC_ML, "SVMRegressor", 1, 0, NULL, load, 1 },
                                             { 0 } };
