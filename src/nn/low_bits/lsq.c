/* LSQ (Esser et al. 2020, arXiv 1902.08153): y = round(c) s,  c = clip(x / s, -Qn, Qp).
 *   dy/dx = 1 where -Qn < x / s < Qp, else 0
 *   dy/ds = round(c) - x / s there, -Qn or Qp beside it; times 1 / sqrt(count Qp)
 * That is what the chain rule makes of it where the rounding passes its gradient.  What is not
 * below 0, of up to 4 bits, has the levels of a basis, s times powers of two: kernels of bits take
 * it, and halves of a step go to the level below. */
#include <math.h>
#include "nn/low_bits/low_bits.h"
#include "ops/basis.h"

/* s, whose gradient is scaled. */
static fac_value *scaled_step(const fac_value *x, fac_value *step, double most) {
    double count = 1;
    for (int k = 0; k < x->type.dims.n; k++)
        if (x->type.dims.d[k] > 0) count *= (double)x->type.dims.d[k];
    const double g = 1 / sqrt(count * most);
    return fac_surrogate(step, fac_mul(step, fac_q_number(x, g)));
}

/* The nearest of 0, s, 2 s, ... */
static fac_value *nearest_step(fac_value *x, fac_value *step, int bits) {
    const fac_basis_opts positive = { .positive = true };
    fac_value *all[FAC_BASIS_BITS];
    for (int j = 0; j < bits; j++)
        all[j] = fac_reshape(fac_mul(step, fac_q_number(x, ldexp(1, j))), fac_shape(1));
    return fac_quantize_basis(x, bits == 1 ? all[0] : fac_concat(all, bits, 0), &positive);
}

fac_value *fac_quantize_lsq(fac_value *x, fac_value *step, int bits, bool positive) {
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    if (bits < 1 || bits > 8)
        return fac_fail_graph(g, FAC_E_ARGUMENT, "lsq of %d bits, expected 1 to 8", bits);
    if (bits == 1 && !positive)
        return fac_fail_graph(g, FAC_E_ARGUMENT, "lsq of 1 bit with a sign has no level above 0");
    const double least = positive ? 0 : -ldexp(1, bits - 1);
    const double most = positive ? ldexp(1, bits) - 1 : ldexp(1, bits - 1) - 1;
    if (step->type.dims.n == 1) step = fac_reshape(step, (fac_dims){ 0 });
    fac_value *s = scaled_step(x, step, most);
    fac_value *c = fac_clip(fac_div(x, s), fac_q_number(x, least), fac_q_number(x, most));
    fac_value *y = fac_mul(fac_surrogate(fac_round(c), c), s);
    return positive && bits <= FAC_BASIS_BITS ? fac_surrogate(nearest_step(x, step, bits), y) : y;
}
