/* Moving averages of the parameters (Polyak & Juditsky 1992), often better than the parameters of
 * the last step:
 *   ema <- ema + (1 - d) (p - ema),   d = decay, with warm-up min(decay, (1 + t) / (10 + t)) in
 *       step t = 0, 1... */
#include "base/error.h"
#include "optim/optim_internal.h"
#include "tensor/tensor_internal.h"

/* It begins as a copy of the parameter. */
static fac_status copy(const fac_value *param, fac_value *state, fac_error *err) {
    fac_tensor *now = NULL;
    FAC_TRY(fac_tensor_copy_contiguous(param->tensor, &now, err));
    fac_status status =
        fac_tensor_write(state->tensor, fac_tensor_data(now), fac_type_bytes(&param->type), err);
    fac_tensor_free(now);
    return status;
}

void fac_optim_ema(const fac_step_of *s, fac_value *next) {
    const fac_optim_walk *w = s->walk;
    fac_value *ema = fac_optim_state(s, "ema", 0), *keep = fac_optim_f64(s, w->opts.ema);
    fac_error err = { 0 };
    if (w->graph->error.status) return;
    if (copy(s->p, ema, &err)) {
        fac_graph_raise(w->graph, err.status, "%s: %s", ema->name, err.text);
        return;
    }
    if (w->opts.ema_warmup) {
        fac_value *early =
            fac_div(fac_add(w->done, fac_optim_f64(s, 1)), fac_add(w->done, fac_optim_f64(s, 10)));
        keep = fac_min(keep, early);
    }
    fac_value *share = fac_optim_as(s, fac_sub(fac_optim_f64(s, 1), keep));
    fac_value *mean = fac_add(ema, fac_mul(fac_sub(next, ema), share));
    if (!w->graph->error.status) fac_update(ema, mean);
}
