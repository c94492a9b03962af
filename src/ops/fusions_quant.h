/* Quantized operators of ONNX Runtime (domain com.microsoft) that are read as other ops, and what
 * the readers of quantized operators share. */
#ifndef FACULA_OPS_FUSIONS_QUANT_H
#define FACULA_OPS_FUSIONS_QUANT_H
#include "ops/fusions.h"
#include "ops/quant.h"

/* fusions_qlinear.c: between two changes of scale */
fac_onnx_loader fac_load_qlinear_sigmoid, fac_load_qlinear_leaky_relu, fac_load_qlinear_softmax,
    fac_load_qlinear_avg_pool, fac_load_qlinear_concat, fac_load_qlinear_where,
    fac_load_qlinear_global;
/* fusions_quant.c: products and convolutions */
fac_onnx_loader fac_load_qgemm, fac_load_integer_to_float, fac_load_dynamic_matmul,
    fac_load_qattention;
/* One or two spatial dims: in[x] and in[w] have as many. */
fac_value *fac_load_quant_conv(const fac_onnx_node *n, fac_graph *g, fac_value *in[], int x, int w,
                               fac_quant_conv *make);
/* Three spatial dims: the sums, i32, with padding of x_zero.  Zero points and b may be NULL. */
fac_value *fac_load_quant_volume(const fac_onnx_node *n, fac_graph *g, fac_value *x,
                                 fac_value *x_zero, fac_value *w, fac_value *w_zero, fac_value *b);

extern const fac_onnx_attr fac_names_quant_conv[], fac_names_qgemm[], fac_names_qattention[],
    fac_names_leaky[], fac_names_qsoftmax[], fac_names_qpool[], fac_names_concat[],
    fac_names_channels_last[], fac_names_lstm[];

/* clang-format off */
#define FAC_QLINEAR_SPELLINGS \
    { "com.microsoft", "QLinearSigmoid", 1, 0, NULL, fac_load_qlinear_sigmoid, 4 }, \
    { "com.microsoft", "QLinearLeakyRelu", 1, 0, fac_names_leaky, \
      fac_load_qlinear_leaky_relu, 4 }, \
    { "com.microsoft", "QLinearSoftmax", 1, 0, fac_names_qsoftmax, fac_load_qlinear_softmax, 5 }, \
    { "com.microsoft", "QLinearAveragePool", 1, 0, fac_names_qpool, \
      fac_load_qlinear_avg_pool, 4 }, \
    { "com.microsoft", "QLinearConcat", 1, 0, fac_names_concat, fac_load_qlinear_concat, 3 }, \
    { "com.microsoft", "QLinearWhere", 1, 0, NULL, fac_load_qlinear_where, 9 }
/* clang-format on */
#endif
