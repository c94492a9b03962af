/* Loss scaling (Micikevicius et al. 2018), for gradients that travel in f16, whose numbers end at
 * 6e-8 and 65504.
 *
 * The gradients are those of loss * scale, divided by scale in the parameters' own type.  Where one
 * of them is not finite the step is not taken and the scale is halved; after INTERVAL good steps in
 * a row it is doubled (torch's GradScaler). */
#include "optim/optim_internal.h"

enum { INTERVAL = 2000 };
static const double FIRST = 65536;

fac_value *fac_optim_scaled(fac_optim_walk *w, fac_value *loss) {
    if (!w->opts.loss_scaling) return loss;
    w->scale = fac_optim_new_state(w->graph, "optimizer.loss_scale", (fac_type){ .dtype = FAC_F64 },
                                   FIRST);
    return fac_mul(loss, fac_cast(w->scale, loss->type.dtype));
}

static fac_value *whole(const fac_optim_walk *w, int64_t x) {
    return fac_number(w->graph, FAC_I64, (double)x);
}

/* The scale and the count of good steps after this one. */
static void adapt(fac_optim_walk *w, fac_value *fine) {
    fac_graph *g = w->graph;
    fac_value *good =
        fac_optim_new_state(g, "optimizer.good_steps", (fac_type){ .dtype = FAC_I64 }, 0);
    fac_value *more = fac_add(good, whole(w, 1)), *grows = fac_equal(more, whole(w, INTERVAL));
    fac_value *factor =
        fac_where(fine, fac_where(grows, fac_number(g, FAC_F64, 2), fac_number(g, FAC_F64, 1)),
                  fac_number(g, FAC_F64, 0.5));
    fac_value *count = fac_where(fac_or(fac_not(fine), grows), whole(w, 0), more);
    if (g->error.status) return;
    fac_update(w->scale, fac_mul(w->scale, factor));
    fac_update(good, count);
}

void fac_optim_unscale(fac_optim_walk *w, int n, fac_value *grads[]) {
    fac_graph *g = w->graph;
    if (!w->scale || g->error.status) return;
    fac_value *inverse = fac_reciprocal(w->scale);
    for (int i = 0; i < n; i++)
        grads[i] = fac_mul(grads[i], fac_cast(inverse, grads[i]->type.dtype));
    fac_value *sum = fac_sum_square_all(grads, n);
    fac_value *fine = fac_equal(
        fac_sub(sum, sum), fac_number(g, sum->type.dtype, 0)); /* inf - inf and NaN are not 0 */
    adapt(w, fine);
    if (w->opts.accumulate >
        1) /* a batch that overflows adds nothing to the sum that others take their step by */
        for (int i = 0; i < n && !g->error.status; i++)
            grads[i] = fac_where(fine, grads[i], fac_number(g, grads[i]->type.dtype, 0));
    else
        w->apply = fine;
}
