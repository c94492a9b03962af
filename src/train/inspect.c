/* Gradients of one batch without a step: the training form and its loss, the gradients as outputs,
 * no updates. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "train/train_internal.h"

fac_status fac_look_new(const fac_graph *model, fac_device *device, const fac_trainer_opts *o,
                        fac_look **out, fac_error *err) {
    fac_look *l = fac_alloc(1, sizeof *l);
    if (l) l->model = fac_graph_clone(model);
    if (!l || !l->model) {
        fac_release(l);
        return fac_raise_memory(err, "a copy of the model");
    }
    l->device = device;
    l->smoothing = o->label_smoothing;
    l->soft = o->soft_labels;
    l->sequences = o->sequences;
    l->precision = o->precision;
    *out = l;
    return FAC_OK;
}

void fac_look_free(fac_look *l) {
    if (!l) return;
    fac_program_free(l->inspector);
    fac_program_free(l->predictor);
    fac_graph_free(l->inspected);
    fac_graph_free(l->model);
    fac_graph_free(l->judged);
    fac_release(l);
}

/* Running statistics and counters stay as they are. */
static void drop_updates(fac_graph *g) {
    for (size_t i = 0; i < g->nparams; i++) {
        if (!g->params[i]->next) continue;
        g->params[i]->next->roots--;
        g->params[i]->next = NULL;
    }
}

static bool trains(const fac_value *p) {
    return p->leaf == FAC_PARAM && fac_dtype_get(p->type.dtype)->kind == 'f';
}

/* Outputs: those of fac_train_loss, then a gradient for each parameter that trains, in their order.
 */
static fac_status build(fac_look *l, fac_graph *g, fac_error *err) {
    fac_value **wrt = fac_alloc(g->nparams + 1, sizeof *wrt),
              **grads = fac_alloc(g->nparams + 1, sizeof *grads);
    if (!wrt || !grads) fac_graph_raise(g, FAC_E_NOMEM, "no memory for the list of gradients");
    drop_updates(g);
    fac_value *loss = fac_train_loss(g, &(fac_label_form){ l->smoothing, l->soft, l->sequences });
    int n = 0;
    for (size_t i = 0; i < g->nparams && !g->error.status; i++)
        if (trains(g->params[i])) wrt[n++] = g->params[i];
    if (!g->error.status) fac_grad(loss, n, wrt, grads);
    for (int i = 0; i < n && !g->error.status; i++) fac_output(g, wrt[i]->name, grads[i]);
    fac_release(wrt);
    fac_release(grads);
    FAC_TRY(fac_graph_check(g, err));
    const fac_program_opts how = { .precision = l->precision };
    return fac_program_new(g, l->device, &how, &l->inspector, err);
}

static fac_status compile(fac_look *l, fac_error *err) {
    if (l->inspector) return FAC_OK;
    fac_graph *g = fac_graph_training(l->model);
    if (!g) return fac_raise_memory(err, "the graph of the gradients");
    fac_status status = build(l, g, err);
    if (status)
        fac_graph_free(g);
    else
        l->inspected = g;
    return status;
}

static fac_status norm_of(const fac_tensor *t, double *out, fac_error *err) {
    fac_tensor *as;
    FAC_TRY(fac_tensor_convert(t, FAC_F64, &as, err));
    fac_type type = fac_tensor_type(as);
    const double *x = fac_tensor_data(as);
    double sum = 0;
    for (int64_t i = 0; i < fac_dims_count(&type.dims); i++) sum += x[i] * x[i];
    fac_tensor_free(as);
    *out = sqrt(sum);
    return FAC_OK;
}

/* Takes what came out of the program. */
static fac_status collect(const fac_graph *g, fac_tensor **result, fac_gradients *to,
                          fac_error *err) {
    double sum = 0;
    for (size_t i = 0; i < g->nparams; i++) {
        const fac_value *p = g->params[i];
        if (!trains(p)) continue;
        fac_gradient *one = &to->of[to->n];
        *one = (fac_gradient){ p->name, p->tensor, result[FAC_TRAIN_OUTPUTS + to->n], 0 };
        result[FAC_TRAIN_OUTPUTS + to->n++] = NULL;
        FAC_TRY(norm_of(one->gradient, &one->norm, err));
        sum += one->norm * one->norm;
    }
    to->norm = sqrt(sum);
    return FAC_OK;
}

fac_status fac_trainer_gradients(fac_trainer *t, fac_tensor *x, fac_tensor *labels,
                                 fac_gradients *out, fac_error *err) {
    FAC_TRY(compile(t->look, err));
    const fac_graph *g = t->look->inspected;
    fac_tensor *in[] = { x, labels }, **result = fac_alloc(g->noutputs + 1, sizeof *result);
    fac_gradients all = { .of = fac_alloc(g->nparams + 1, sizeof *all.of) };
    fac_status status = result && all.of ? fac_program_run(t->look->inspector, in, result, err)
                                         : fac_raise_memory(err, "the list of gradients");
    if (!status) status = collect(g, result, &all, err);
    for (size_t i = 0; result && i < g->noutputs; i++) fac_tensor_free(result[i]);
    fac_release(result);
    if (status)
        fac_gradients_free(&all);
    else
        *out = all;
    return status;
}

void fac_gradients_free(fac_gradients *g) {
    for (int i = 0; i < g->n; i++) fac_tensor_free(g->of[i].gradient);
    fac_release(g->of);
    *g = (fac_gradients){ 0 };
}
