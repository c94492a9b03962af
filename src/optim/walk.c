/* The walk over all parameters that every optimizer does: who trains and how, gradients, the step
 * counter, states by name. */
#include <fnmatch.h>
#include "base/memory.h"
#include "optim/optim_internal.h"

static bool matches(const char *pattern, const fac_value *p) {
    return !fnmatch(pattern, p->name, 0);
}

/* The first group of a parameter, or one that changes nothing. */
static const fac_optim_group *group_of(const fac_optim_opts *o, const fac_value *p) {
    static const fac_optim_group none;
    for (int i = 0; i < o->ngroups; i++) {
        const fac_optim_group *g = &o->groups[i];
        if ((!g->pattern || matches(g->pattern, p)) && (!g->vectors || p->type.dims.n < 2))
            return g;
    }
    return &none;
}

static bool frozen(const fac_optim_opts *o, const fac_value *p) {
    for (const char *const *pattern = o->freeze; pattern && *pattern; pattern++)
        if (matches(*pattern, p)) return true;
    return group_of(o, p)->freeze;
}

fac_value *fac_optim_new_state(fac_graph *g, const char *name, fac_type type, double first) {
    fac_tensor *t = NULL, *one = NULL, *full = NULL;
    fac_error err = { 0 };
    static const int64_t still[FAC_DIMS] = { 0 };
    fac_status status = fac_tensor_new(NULL, type.dtype, type.dims, &t, &err);
    if (!status && first != 0) { /* one number seen as a whole tensor, converted to a whole one */
        status = fac_tensor_borrow(FAC_F64, type.dims, still, &first, NULL, NULL, &one, &err);
        if (!status) status = fac_tensor_convert(one, type.dtype, &full, &err);
        if (!status)
            status = fac_tensor_write(t, fac_tensor_data(full), fac_type_bytes(&type), &err);
    }
    fac_value *v =
        status ? fac_graph_raise(g, status, "%s: %s", name, err.text) : fac_state(g, name, t);
    fac_tensor_free(t);
    fac_tensor_free(one);
    fac_tensor_free(full);
    return v;
}

fac_value *fac_optim_state(const fac_step_of *s, const char *name, double first) {
    fac_graph *g = s->walk->graph;
    if (g->error.status) return g->poison;
    fac_text full = { 0 };
    fac_text_print(&full, "%s.%s", s->p->name, name);
    fac_value *v = full.failed
                       ? fac_graph_raise(g, FAC_E_NOMEM, "no memory for the name of a state")
                       : fac_optim_new_state(g, full.s, s->p->type, first);
    fac_text_free(&full);
    return v;
}

fac_value *fac_optim_as(const fac_step_of *s, fac_value *scalar) {
    return fac_cast(scalar, s->p->type.dtype);
}
fac_value *fac_optim_number(const fac_step_of *s, double x) {
    return fac_number(s->walk->graph, s->p->type.dtype, x);
}
fac_value *fac_optim_f64(const fac_step_of *s, double x) {
    return fac_number(s->walk->graph, FAC_F64, x);
}
fac_value *fac_optim_scale(const fac_step_of *s, fac_value *a, double k) {
    return fac_mul(a, fac_optim_number(s, k));
}
fac_value *fac_optim_lerp(const fac_step_of *s, fac_value *a, fac_value *b, double weight) {
    return fac_add(a, fac_optim_scale(s, fac_sub(b, a), weight));
}
fac_value *fac_optim_decayed(const fac_step_of *s) {
    return s->weight_decay > 0 ? fac_add(s->g, fac_optim_scale(s, s->p, s->weight_decay)) : s->g;
}

void fac_update_where(fac_value *param, fac_value *cond) {
    fac_value *next = param->next, *kept = next ? fac_where(cond, next, param) : NULL;
    if (!kept || param->graph->error.status) return;
    next->roots--;
    kept->roots++;
    param->next = kept;
}

/* One parameter: its rule, its moving average. */
static void take_step(const fac_optim_walk *w, fac_value *p, fac_value *grad,
                      fac_optim_rule *rule) {
    const fac_optim_group *group = group_of(&w->opts, p);
    fac_step_of s = { .walk = w, .p = p, .g = grad, .lr = w->lr };
    s.weight_decay = fac_optim_or(group->weight_decay, w->opts.weight_decay);
    if (group->lr != 0) s.lr = fac_mul(w->lr, fac_optim_f64(&s, group->lr));
    fac_value *next = rule(&s);
    if (w->opts.ema > 0) fac_optim_ema(&s, next);
    if (!w->graph->error.status) fac_update(p, next);
}

/* All of them, and the count of steps.  The rules add their states after those that are there. */
static void take_steps(fac_optim_walk *w, int n, fac_value *const p[], fac_value *const grads[],
                       fac_optim_rule *rule) {
    fac_graph *g = w->graph;
    fac_value *counter =
        fac_optim_new_state(g, "optimizer.step", (fac_type){ .dtype = FAC_I64 }, 0);
    fac_value *next = fac_add(counter, fac_number(g, FAC_I64, 1));
    const size_t own = g->nparams;
    w->done = fac_cast(counter, FAC_F64);
    w->step = fac_cast(next, FAC_F64);
    for (int i = 0; i < n && !g->error.status; i++) take_step(w, p[i], grads[i], rule);
    if (g->error.status) return;
    fac_update(counter, next);
    if (!w->apply) return;
    fac_update_where(counter, w->apply);
    for (int i = 0; i < n; i++) fac_update_where(p[i], w->apply);
    for (size_t i = own; i < g->nparams; i++) fac_update_where(g->params[i], w->apply);
}

void fac_optim_each(fac_value *loss, fac_value *lr, const fac_optim_opts *opts,
                    fac_optim_rule *rule) {
    fac_graph *g = loss->graph;
    if (g->error.status) return;
    if (!lr || lr->graph != g || lr->type.dims.n != 0) {
        fac_graph_raise(g, FAC_E_ARGUMENT,
                        "an optimizer needs its learning rate as a scalar of the loss's graph");
        return;
    }
    fac_optim_walk walk = { .graph = g, .lr = fac_cast(lr, FAC_F64) };
    if (opts) walk.opts = *opts;
    size_t count = g->nparams; /* before states are added */
    fac_value **p = fac_alloc(2 * count + 1, sizeof *p), **grads = p + count;
    if (!p) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for %zu parameters", count);
        return;
    }
    int n = 0;
    for (size_t i = 0; i < count; i++)
        if (fac_value_trains(g->params[i]) && !frozen(&walk.opts, g->params[i]))
            p[n++] = g->params[i];
    if (!n)
        fac_graph_raise(g, FAC_E_ARGUMENT, "an optimizer has nothing to do: no parameter trains");
    if (!(walk.opts.ema >= 0 && walk.opts.ema < 1))
        fac_graph_raise(g, FAC_E_ARGUMENT,
                        "the decay of moving averages is %g, it must be in [0, 1)", walk.opts.ema);
    fac_value *scaled = fac_optim_scaled(&walk, loss);
    fac_grad(scaled, n, p, grads);
    if (!g->error.status) fac_optim_unscale(&walk, n, grads);
    if (walk.opts.accumulate > 1 && !g->error.status) fac_optim_accumulate(&walk, n, p, grads);
    if (!g->error.status) fac_optim_clip(&walk, n, grads);
    if (!g->error.status) take_steps(&walk, n, p, grads, rule);
    fac_release(p);
}
