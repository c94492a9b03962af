/* Quantizers of one bit.
 *
 * BNN (Hubara et al. 2016): sign, whose gradient is 1 within [-1,1].
 * XNOR-Net and BWN (Rastegari et al. 2016): W ~ alpha sign(W), alpha = mean |W| of a filter,
 *   dL/dW_i = (1/n) sign(W_i) sum_j g_j sign(W_j) + g_i alpha 1[|W_i| <= 1]
 * Bi-Real Net (Liu et al. 2018): the gradient of sign is 2 - 2|x| within [-1,1]. */
#include "nn/low_bits/low_bits.h"

static fac_value *clipped(fac_value *x) {
    return fac_clip(x, fac_q_number(x, -1), fac_q_number(x, 1));
}

/* A function with this derivative: c (2 - |c|) of the clipped x has 2 - 2|x|. */
static fac_value *path_of(fac_value *x, fac_sign_path path) {
    if (path == FAC_SIGN_IDENTITY) return x;
    fac_value *c = clipped(x);
    if (path == FAC_SIGN_CLIP) return c;
    return fac_mul(c, fac_sub(fac_q_number(x, 2), fac_abs(c)));
}

fac_value *fac_binarize_through(fac_value *x, fac_sign_path path) {
    if (x->graph->error.status) return x->graph->poison;
    return fac_surrogate(fac_binarize(x), path_of(x, path));
}

/* The levels +-alpha of each filter are a basis of one number, so that kernels of bits know them.
 * */
fac_value *fac_binarize_scaled(fac_value *w, fac_sign_path path) {
    fac_dims axes = { 0 }, row = fac_shape(1, w->type.dims.d[0]);
    if (w->graph->error.status) return w->graph->poison;
    for (int k = 1; k < w->type.dims.n; k++) axes.d[axes.n++] = k;
    fac_value *alpha = fac_mean(fac_abs(w), axes, true);
    fac_value *basis = fac_reshape_sizes(alpha, row);
    fac_value *signs = fac_surrogate(fac_binarize(w), path_of(w, path));
    return fac_surrogate(fac_quantize_basis(w, fac_stop(basis), NULL), fac_mul(alpha, signs));
}
