/* Moving averages of the parameters in place of the parameters: for the evaluation, and at the end.
 */
#include "base/error.h"
#include "base/text.h"
#include "graph/graph_internal.h"
#include "train/train_internal.h"

/* The state "<parameter>.ema" of the step; NULL when there is none, or no memory to look. */
static fac_tensor *average_of(fac_graph *step, const char *name) {
    fac_text full = { 0 };
    fac_text_print(&full, "%s.ema", name);
    fac_value *ema = full.failed ? NULL : fac_graph_find(step, full.s);
    fac_text_free(&full);
    return ema ? ema->tensor : NULL;
}

static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    fac_tensor *t = v->leaf == FAC_PARAM ? average_of(self, v->name) : NULL;
    return t ? fac_param(to, v->name, t) : NULL;
}

fac_graph *fac_train_averaged(const fac_graph *model, fac_graph *step) {
    return fac_graph_rebuild(model, &(fac_rebuild){ .self = step, .leaf = leaf, .keep_dead = true },
                             NULL);
}

fac_status fac_trainer_average(fac_trainer *t, fac_error *err) {
    for (size_t i = 0; i < t->step->nparams; i++) {
        const fac_value *p = t->step->params[i];
        const fac_tensor *ema = p->leaf == FAC_PARAM ? average_of(t->step, p->name) : NULL;
        if (ema)
            FAC_TRY(
                fac_tensor_write(p->tensor, fac_tensor_data(ema), fac_type_bytes(&p->type), err));
    }
    return FAC_OK;
}
