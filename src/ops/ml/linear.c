/* See linear.h. */
#include "ops/ml/linear.h"

fac_value *fac_ml_linear(const fac_onnx_node *n, fac_value *x, int64_t targets) {
    fac_graph *g = fac_value_graph(x);
    const fac_ml_reals w = fac_ml_reals_of(n, g, "coefficients"),
                       b = fac_ml_reals_of(n, g, "intercepts");
    const fac_dtype dtype = x->type.dtype;
    if (!targets) targets = b.n > 0 ? b.n : 1;
    if (w.n <= 0 || targets < 1 || w.n % targets) {
        fac_fail_graph(g, FAC_E_FORMAT, "%s has %d coefficients for %lld results", n->type,
                       w.n < 0 ? 0 : w.n, (long long)targets);
        return NULL;
    }
    if (b.n > 0 && b.n != targets && b.n != 1) {
        fac_fail_graph(g, FAC_E_FORMAT, "%s has %d intercepts for %lld results", n->type, b.n,
                       (long long)targets);
        return NULL;
    }
    fac_value *matrix = fac_ml_numbers(g, dtype, fac_shape(targets, w.n / targets), w.v);
    fac_value *y = fac_matmul(x, fac_transpose(matrix, fac_shape(1, 0)));
    return b.n > 0 ? fac_add(y, fac_ml_numbers(g, dtype, fac_shape(b.n), b.v)) : y;
}
