/* Products and convolutions with a factor, transposed operands or an activation. */
#include <string.h>
#include "ops/fusions.h"

const fac_onnx_attr fac_names_fused_matmul[] = { { "alpha", NULL },       { "transA", NULL },
                                                 { "transB", NULL },      { "transBatchA", NULL },
                                                 { "transBatchB", NULL }, { 0 } };
const fac_onnx_attr fac_names_fused_gemm[] = { { "alpha", NULL },
                                               { "beta", NULL },
                                               { "transA", NULL },
                                               { "transB", NULL },
                                               { "activation", NULL },
                                               { "activation_alpha", NULL },
                                               { "activation_beta", NULL },
                                               { "activation_gamma", NULL },
                                               { 0 } };
const fac_onnx_attr fac_names_fused_conv[] = { { "kernel_shape", NULL },
                                               { "strides", NULL },
                                               { "pads", NULL },
                                               { "dilations", NULL },
                                               { "group", NULL },
                                               { "auto_pad", NULL },
                                               { "activation", NULL },
                                               { "activation_params", NULL },
                                               { 0 } };

/* batch: M, batch.., K.  transposed: the last two dims. */
static fac_value *operand(fac_value *x, bool transposed, bool batch) {
    const int rank = x->type.dims.n;
    fac_dims order = { .n = rank };
    if (rank < 2) return x;
    for (int k = 0; k < rank; k++) order.d[k] = k;
    if (batch)
        for (int k = 0; k < rank - 1; k++) order.d[k] = k + 1 < rank - 1 ? k + 1 : 0;
    if (transposed) {
        const int64_t last = order.d[rank - 1];
        order.d[rank - 1] = order.d[rank - 2];
        order.d[rank - 2] = last;
    }
    return batch || transposed ? fac_transpose(x, order) : x;
}

void fac_load_fused_matmul(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                           fac_value *y[]) {
    const double alpha = fac_onnx_real(n, "alpha", 1);
    fac_value *a =
        operand(x[0], fac_onnx_int(n, "transA", 0) != 0, fac_onnx_int(n, "transBatchA", 0) != 0);
    fac_value *b =
        operand(x[1], fac_onnx_int(n, "transB", 0) != 0, fac_onnx_int(n, "transBatchB", 0) != 0);
    y[0] = fac_matmul(a, b);
    if (alpha != 1) y[0] = fac_mul(y[0], fac_number(g, x[0]->type.dtype, alpha));
}

/* An activation by ONNX Runtime's name; p: its parameters, of which `given` are there. */
static fac_value *activated(const fac_onnx_node *n, fac_graph *g, fac_value *x, const double *p,
                            int given) {
    const char *how = fac_onnx_text(n, "activation", "");
    const fac_dtype t = x->type.dtype;
    if (!*how) return x;
    if (!strcmp(how, "Relu")) return fac_relu(x);
    if (!strcmp(how, "Sigmoid")) return fac_sigmoid(x);
    if (!strcmp(how, "Tanh")) return fac_tanh(x);
    if (!strcmp(how, "LeakyRelu")) return fac_leaky_relu(x, given > 0 ? p[0] : 0.01);
    if (!strcmp(how, "Elu")) return fac_elu(x, given > 0 ? p[0] : 1);
    if (!strcmp(how, "Softplus")) return fac_softplus(x);
    if (!strcmp(how, "Softsign")) return fac_softsign(x);
    if (!strcmp(how, "HardSwish")) return fac_hard_swish(x);
    if (!strcmp(how, "Gelu")) return fac_gelu(x);
    if (!strcmp(how, "HardSigmoid") && given > 1) return fac_hard_sigmoid(x, p[0], p[1]);
    if (!strcmp(how, "HardSigmoid")) return fac_hard_sigmoid(x, given > 0 ? p[0] : 0.2, 0.5);
    if (!strcmp(how, "Clip") && given == 2)
        return fac_clip(x, fac_number(g, t, p[0]), fac_number(g, t, p[1]));
    return fac_fail_graph(g, FAC_E_UNSUPPORTED, "%s: activation %s with %d parameters", n->type,
                          how, given);
}

void fac_load_fused_gemm(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                         fac_value *y[]) {
    const double p[] = { fac_onnx_real(n, "activation_alpha", 0.01),
                         fac_onnx_real(n, "activation_beta", 0.5) };
    const int given = fac_onnx_has(n, "activation_alpha") + fac_onnx_has(n, "activation_beta");
    fac_gemm_load(n, g, x, y);
    y[0] = activated(n, g, y[0], p, given);
}

/* act(convolution + bias + z) */
void fac_load_fused_conv(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                         fac_value *y[]) {
    double p[2] = { 0 };
    const int given = fac_onnx_reals(n, "activation_params", p, 2);
    fac_value *z = fac_onnx_in(n, x, 3);
    fac_conv_load(n, g, x, y);
    if (z) y[0] = fac_add(y[0], z);
    if (given > 2)
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "FusedConv: %d parameters of an activation",
                              given);
    else
        y[0] = activated(n, g, y[0], p, given < 0 ? 0 : given);
}
