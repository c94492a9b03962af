/* Gradient accumulation: a large batch in pieces, with the memory of one piece.
 *   a <- a + w g,  W <- W + w;   in every k-th run: the step with g = a / W, then a <- 0, W <- 0
 * which is the gradient of the mean over all pieces when w is the size of a piece and the loss its
 * mean. */
#include "optim/optim_internal.h"

static fac_value *i64(fac_graph *g, double x) { return fac_number(g, FAC_I64, x); }

/* Runs since the last step, and in all. */
static void count(fac_optim_walk *w) {
    fac_graph *g = w->graph;
    const fac_type scalar = { .dtype = FAC_I64 };
    fac_value *all = fac_optim_new_state(g, "optimizer.batch", scalar, 0);
    fac_value *micro = fac_optim_new_state(g, "optimizer.micro", scalar, 0),
              *more = fac_add(micro, i64(g, 1));
    w->apply = fac_greater_or_equal(more, i64(g, w->opts.accumulate));
    if (w->opts.flush) w->apply = fac_or(w->apply, w->opts.flush);
    if (g->error.status) return;
    fac_update(all, fac_add(all, i64(g, 1)));
    fac_update(micro, fac_where(w->apply, i64(g, 0), more));
}

void fac_optim_accumulate(fac_optim_walk *w, int n, fac_value *const params[], fac_value *grads[]) {
    fac_graph *g = w->graph;
    fac_value *share =
        w->opts.weight ? fac_cast(w->opts.weight, FAC_F64) : fac_number(g, FAC_F64, 1);
    fac_value *weight =
        fac_optim_new_state(g, "optimizer.weight", (fac_type){ .dtype = FAC_F64 }, 0);
    fac_value *total = fac_add(weight, share);
    count(w);
    if (g->error.status) return;
    fac_update(weight, fac_where(w->apply, fac_number(g, FAC_F64, 0), total));
    for (int i = 0; i < n && !g->error.status; i++) {
        const fac_step_of s = { .walk = w, .p = params[i] };
        fac_value *old = fac_optim_state(&s, "accum", 0);
        fac_value *sum = fac_add(old, fac_mul(grads[i], fac_optim_as(&s, share)));
        fac_value *kept = fac_where(w->apply, fac_optim_number(&s, 0), sum);
        if (g->error.status) return;
        fac_update(old, kept);
        grads[i] = fac_div(sum, fac_optim_as(&s, total));
    }
}
