/* Gradients that are too large: cut element by element (torch's clip_grad_value_), then scaled all
 * together by min(1, limit / (norm + 1e-6)), norm = sqrt of the sum of all squares (torch's
 * clip_grad_norm_). */
#include "optim/optim_internal.h"

static void by_norm(fac_graph *g, int n, fac_value *grads[], double limit) {
    fac_value *sum = fac_sum_square_all(grads, n);
    const fac_dtype dtype = sum->type.dtype;
    fac_value *norm = fac_add(fac_sqrt(sum), fac_number(g, dtype, 1e-6));
    fac_value *scale = fac_min(fac_div(fac_number(g, dtype, limit), norm), fac_number(g, dtype, 1));
    for (int i = 0; i < n; i++) grads[i] = fac_mul(grads[i], fac_cast(scale, grads[i]->type.dtype));
}

void fac_optim_clip(const fac_optim_walk *w, int n, fac_value *grads[]) {
    const double value = w->opts.clip_value;
    for (int i = 0; i < n && value > 0; i++) {
        const fac_dtype dtype = grads[i]->type.dtype;
        grads[i] = fac_clip(grads[i], fac_number(w->graph, dtype, -value),
                            fac_number(w->graph, dtype, value));
    }
    if (w->opts.clip_norm > 0 && !w->graph->error.status)
        by_norm(w->graph, n, grads, w->opts.clip_norm);
}
