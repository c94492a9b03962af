/* Operators that are read as the ops that they are made of: the fused ones of ONNX Runtime's
 * optimizer (domain com.microsoft, and what it puts into the default domain), some of ONNX's own,
 * and those of old files.  Each op file names those that belong to it in its table of spellings. */
#ifndef FACULA_OPS_FUSIONS_H
#define FACULA_OPS_FUSIONS_H
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/onnx_in.h"

typedef void fac_onnx_loader(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                             fac_value *y[]);

/* fusions_norm.c */
fac_onnx_loader fac_load_skip_layer_norm, fac_load_embed_layer_norm, fac_load_skip_rms_norm,
    fac_load_simplified_norm;
/* fusions_gelu.c */
fac_onnx_loader fac_load_bias_gelu, fac_load_fast_gelu, fac_load_quick_gelu;
/* fusions_product.c */
fac_onnx_loader fac_load_fused_matmul, fac_load_fused_gemm, fac_load_fused_conv;
/* fusions_nchwc.c */
fac_onnx_loader fac_load_nchwc_conv, fac_load_reorder_input, fac_load_reorder_output,
    fac_load_nchwc_upsample;
/* fusions_attention.c */
fac_onnx_loader fac_load_ms_attention, fac_load_multi_head_attention;
/* fusions_flex.c, fusions_cache.c */
fac_onnx_loader fac_load_flex_attention, fac_load_tensor_scatter;
/* fusions_first.c */
fac_onnx_loader fac_load_first, fac_load_first_prelu;
/* fusions_random.c */
fac_onnx_loader fac_load_uniform, fac_load_normal, fac_load_bernoulli, fac_load_multinomial;
bool fac_save_uniform(const fac_onnx_writer *w, const fac_node *n);
bool fac_save_normal(const fac_onnx_writer *w, const fac_node *n);
bool fac_save_bernoulli(const fac_onnx_writer *w, const fac_node *n);
/* fusions_old.c */
fac_onnx_loader fac_load_affine, fac_load_scale, fac_load_scaled_tanh, fac_load_parametric_softplus,
    fac_load_image_scaler, fac_load_crop;

/* The rest of them after the projection, B,S,(D + D + E); mask, past, bias may be absent. */
void fac_attend(const fac_onnx_node *n, fac_graph *g, fac_value *all, fac_value *mask,
                fac_value *past, fac_value *bias, fac_value *y[]);

extern const fac_onnx_attr fac_names_norm[], fac_names_quick_gelu[], fac_names_fused_matmul[],
    fac_names_fused_gemm[], fac_names_fused_conv[], fac_names_ms_attention[],
    fac_names_flex_attention[], fac_names_tensor_scatter[], fac_names_affine[], fac_names_scale[],
    fac_names_image_scaler[], fac_names_crop[], fac_names_reorder[], fac_names_nchwc_upsample[],
    fac_names_first[], fac_names_random[];

/* ONNX's Conv and Gemm, for those that are fused with more. */
fac_onnx_loader fac_conv_load, fac_gemm_load;

/* B,S,HD as B,H,S,D, and back. */
static inline fac_value *fac_in_heads(fac_value *x, int64_t heads) {
    return fac_transpose(fac_reshape(x, fac_shape(0, 0, heads, -1)), fac_shape(0, 2, 1, 3));
}
static inline fac_value *fac_out_of_heads(fac_value *y) {
    return fac_reshape(fac_transpose(y, fac_shape(0, 2, 1, 3)), fac_shape(0, 0, -1));
}

#endif
