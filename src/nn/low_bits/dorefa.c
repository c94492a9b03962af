/* DoReFa-Net (Zhou et al. 2016, arXiv 1606.06160): q_k(x) = round((2^k - 1) x) / (2^k - 1),
 *   weights       2 q_k(tanh(w) / (2 max |tanh(w)|) + 1/2) - 1;  one bit: mean |w| sign(w)
 *   activations   q_k(clip(x, 0, 1))
 * with gradients through the rounding.  Its levels lie evenly, so they are those of a basis. */
#include <math.h>
#include <string.h>
#include "nn/low_bits/low_bits.h"

/* 2^j / (2^bits - 1): as digits -1 and 1 the levels reach from -1 to 1, as 0 and 1 from 0 to 1. */
static fac_value *even(const fac_value *like, int bits) {
    fac_value *all[8];
    const double whole = ldexp(1, bits) - 1;
    for (int j = 0; j < bits && j < 8; j++)
        all[j] = fac_reshape(fac_q_number(like, ldexp(1, j) / whole), fac_shape(1));
    return bits == 1 ? all[0] : fac_concat(all, bits, 0);
}

static bool bits_fit(fac_value *x, int bits) {
    if (x->graph->error.status) return false;
    if (bits >= 1 && bits <= 4) return true;
    fac_fail_graph(x->graph, FAC_E_ARGUMENT, "dorefa of %d bits, expected 1 to 4", bits);
    return false;
}

fac_value *fac_quantize_dorefa_weight(fac_value *w, int bits) {
    if (!bits_fit(w, bits)) return w->graph->poison;
    if (bits == 1) {
        fac_value *alpha = fac_mean(fac_abs(fac_stop(w)), (fac_dims){ 0 }, false);
        return fac_surrogate(fac_quantize_basis(w, fac_reshape(alpha, fac_shape(1)), NULL), w);
    }
    fac_value *t = fac_tanh(w);
    fac_value *most = fac_reduce_max(fac_abs(t), (fac_dims){ 0 }, false);
    fac_value *scaled = fac_div(t, most);
    return fac_surrogate(fac_quantize_basis(scaled, even(w, bits), NULL), scaled);
}

fac_value *fac_quantize_dorefa(fac_value *x, int bits) {
    const fac_basis_opts positive = { .positive = true };
    if (!bits_fit(x, bits)) return x->graph->poison;
    fac_value *path = fac_clip(x, fac_q_number(x, 0), fac_q_number(x, 1));
    return fac_surrogate(fac_quantize_basis(x, even(x, bits), &positive), path);
}
