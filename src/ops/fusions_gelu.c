/* GELUs with a bias before them. */
#include "ops/fusions.h"

const fac_onnx_attr fac_names_quick_gelu[] = { { "alpha", NULL }, { 0 } };

void fac_load_bias_gelu(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                        fac_value *y[]) {
    (void)n, (void)g;
    y[0] = fac_gelu(fac_add(x[0], x[1]));
}

void fac_load_fast_gelu(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                        fac_value *y[]) {
    (void)g;
    fac_value *bias = fac_onnx_in(n, x, 1);
    y[0] = fac_gelu_tanh(bias ? fac_add(x[0], bias) : x[0]);
}

/* x sigmoid(alpha x) */
void fac_load_quick_gelu(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                         fac_value *y[]) {
    const double alpha = fac_onnx_real(n, "alpha", 1.702);
    if (alpha == 1)
        y[0] = fac_silu(x[0]);
    else
        y[0] = fac_mul(x[0], fac_sigmoid(fac_mul(x[0], fac_number(g, x[0]->type.dtype, alpha))));
}
