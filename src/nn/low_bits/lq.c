/* LQ-Nets' quantizer with its gradient (Zhang et al. 2018, arXiv 1807.10029).
 *
 *   weights       dL/dw = dL/dQ
 *   activations   dL/dx = dL/dQ where x <= the largest level, 0 above (a relu in front cuts the
 * rest) The basis gets no gradient: the training form of a graph learns it by fac_fit_basis. */
#include "nn/low_bits/low_bits.h"

/* The largest level: the sum of what is above 0. */
static fac_value *largest(fac_value *basis) {
    return fac_sum(fac_relu(fac_stop(basis)), fac_shape(0), basis->type.dims.n == 1);
}

fac_value *fac_quantize_lq(fac_value *x, fac_value *basis, const fac_basis_opts *opts) {
    fac_value *y = fac_quantize_basis(x, basis, opts), *path = x;
    if (x->graph->error.status) return x->graph->poison;
    if (!opts || !opts->positive) return fac_surrogate(y, path);
    fac_value *top = largest(basis);
    if (basis->type.dims.n == 2) {
        const int rank = x->type.dims.n;
        fac_dims d = { .n = rank - fac_axis(opts->axis, rank) };
        for (int k = 0; k < d.n; k++) d.d[k] = 1;
        d.d[0] = basis->type.dims.d[1];
        top = fac_reshape_sizes(top, d);
    }
    return fac_surrogate(y, fac_where(fac_less_or_equal(x, top), x, top));
}
