/* The walk over all parameters that every optimizer does: gradients, clipping, the step counter, states by name. */
#include <fnmatch.h>
#include "base/memory.h"
#include "optim/optim_internal.h"

static bool frozen(const fac_value *p, const char *const *patterns) {
    for (; patterns && *patterns; patterns++)
        if (!fnmatch(*patterns, p->name, 0)) return true;
    return false;
}

static fac_value *new_state(fac_graph *g, const char *name, fac_type type, double first) {
    fac_tensor *t = NULL, *one = NULL, *full = NULL;
    fac_error err = { 0 };
    static const int64_t still[FAC_DIMS] = { 0 };
    fac_status status = fac_tensor_new(NULL, type.dtype, type.dims, &t, &err);
    if (!status && first != 0) {        /* one number seen as a whole tensor, converted to a whole one */
        status = fac_tensor_borrow(FAC_F64, type.dims, still, &first, NULL, NULL, &one, &err);
        if (!status) status = fac_tensor_convert(one, type.dtype, &full, &err);
        if (!status) status = fac_tensor_write(t, fac_tensor_data(full), fac_type_bytes(&type), &err);
    }
    fac_value *v = status ? fac_graph_raise(g, status, "%s: %s", name, err.text) : fac_state(g, name, t);
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
    fac_value *v = full.failed ? fac_graph_raise(g, FAC_E_NOMEM, "no memory for the name of a state")
                               : new_state(g, full.s, s->p->type, first);
    fac_text_free(&full);
    return v;
}

fac_value *fac_optim_as(const fac_step_of *s, fac_value *scalar) { return fac_cast(scalar, s->p->type.dtype); }
fac_value *fac_optim_number(const fac_step_of *s, double x) { return fac_number(s->walk->graph, s->p->type.dtype, x); }
fac_value *fac_optim_f64(const fac_step_of *s, double x) { return fac_number(s->walk->graph, FAC_F64, x); }
fac_value *fac_optim_scale(const fac_step_of *s, fac_value *a, double k) { return fac_mul(a, fac_optim_number(s, k)); }
fac_value *fac_optim_lerp(const fac_step_of *s, fac_value *a, fac_value *b, double weight) {
    return fac_add(a, fac_optim_scale(s, fac_sub(b, a), weight));
}
fac_value *fac_optim_decayed(const fac_step_of *s) {
    double decay = s->walk->opts.weight_decay;
    return decay > 0 ? fac_add(s->g, fac_optim_scale(s, s->p, decay)) : s->g;
}

/* All gradients times min(1, limit / (norm + 1e-6)), norm = sqrt of the sum of all squares: torch's clip_grad_norm_. */
static void clip(fac_graph *g, int n, fac_value *grads[], double limit) {
    fac_value *sum = fac_number(g, FAC_F32, 0);
    for (int i = 0; i < n; i++) sum = fac_add(sum, fac_cast(fac_reduce_sum_square(grads[i], (fac_dims){ 0 }, false), FAC_F32));
    fac_value *norm = fac_add(fac_sqrt(sum), fac_number(g, FAC_F32, 1e-6));
    fac_value *scale = fac_min(fac_div(fac_number(g, FAC_F32, limit), norm), fac_number(g, FAC_F32, 1));
    for (int i = 0; i < n; i++) grads[i] = fac_mul(grads[i], fac_cast(scale, grads[i]->type.dtype));
}

void fac_optim_each(fac_value *loss, fac_value *lr, const fac_optim_opts *opts, fac_optim_rule *rule) {
    fac_graph *g = loss->graph;
    if (g->error.status) return;
    if (!lr || lr->graph != g || lr->type.dims.n != 0) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "an optimizer needs its learning rate as a scalar of the loss's graph");
        return;
    }
    fac_optim_walk walk = { .graph = g, .lr = fac_cast(lr, FAC_F64) };
    if (opts) walk.opts = *opts;
    size_t count = g->nparams;                      /* before states are added */
    fac_value **p = fac_alloc(2 * count + 1, sizeof *p), **grads = p + count;
    if (!p) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for %zu parameters", count);
        return;
    }
    int n = 0;
    for (size_t i = 0; i < count; i++)
        if (fac_value_trains(g->params[i]) && !frozen(g->params[i], walk.opts.freeze)) p[n++] = g->params[i];
    if (!n) fac_graph_raise(g, FAC_E_ARGUMENT, "an optimizer has nothing to do: no parameter trains");
    fac_grad(loss, n, p, grads);
    if (walk.opts.clip_norm > 0) clip(g, n, grads, walk.opts.clip_norm);
    fac_value *counter = new_state(g, "optimizer.step", (fac_type){ .dtype = FAC_I64 }, 0);
    fac_value *next = fac_add(counter, fac_number(g, FAC_I64, 1));
    walk.done = fac_cast(counter, FAC_F64);
    walk.step = fac_cast(next, FAC_F64);
    for (int i = 0; i < n && !g->error.status; i++) {
        const fac_step_of s = { &walk, p[i], grads[i] };
        fac_update(p[i], rule(&s));
    }
    if (!g->error.status) fac_update(counter, next);
    fac_release(p);
}
