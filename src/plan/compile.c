/* From a graph and one set of inputs to a plan. */
#include <limits.h>
#include "base/error.h"
#include "base/memory.h"
#include "plan/plan.h"
#include "backends/transfer.h"

/* What the steps have to do, whatever passes and solvers make of it. */
static double count_macs(const fac_graph *g) {
    double macs = 0;
    for (const fac_node *n = g->first; n; n = n->next) {
        fac_cost cost = { 0 };
        if (n->op->cost && n->out[0]->time == FAC_RUN && fac_node_guess(n) != FAC_RANKLESS)
            n->op->cost(n, &cost);
        macs += cost.macs;
    }
    return macs;
}

/* Every size is a number now, or the plan cannot be made. */
static fac_status concrete(const fac_graph *g, fac_error *err) {
    for (const fac_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nout; k++) {
            if (fac_dims_count(&n->out[k]->type.dims) >= 0) continue;
            char label[200];
            bool symbol = false;
            for (int j = 0; j < n->out[k]->type.dims.n; j++)
                symbol |= n->out[k]->type.dims.d[j] < 0;
            fac_node_label(n, label, sizeof label);
            if (!symbol)
                return fac_raise(err, FAC_E_NOMEM, "%s: %s has more elements than fit in memory",
                                 label, n->op->name);
            return fac_raise(err, FAC_E_UNSUPPORTED,
                             "%s: the shape that %s makes depends on computed data", label,
                             n->op->name);
        }
    return FAC_OK;
}

/* The graph of a slice of the batch, where slices do better, in stages where these do. */
static fac_status slice(fac_plan *p, const fac_graph *original, const bool *steers,
                        fac_tensor *const in[], fac_error *err) {
    for (size_t i = 0; i < original->ninputs; i++)
        if (steers[i]) return FAC_OK;
    if (p->observed || p->only || !fac_in_sight(p->device)) return FAC_OK;
    int64_t *after = fac_alloc((size_t)p->graph->nodes + 1, sizeof *after);
    if (!after) return fac_raise_memory(err, "a graph of %d nodes", p->graph->nodes);
    const int64_t images = fac_batch_slice(p->graph, p->device->near, after);
    fac_graph *g = NULL, *staged = NULL;
    fac_status status = FAC_OK;
    if (images > 0 && images < p->graph->inputs[0]->type.dims.d[0])
        status = fac_batch_cut(original, p->graph, in, images, &g, err);
    if (g && g->nodes == p->graph->nodes && (staged = fac_stages(g, after, images)) != NULL) {
        fac_graph_free(g);
        g = staged;
    }
    if (g) {
        p->slices =
            p->graph->outputs[0].value->type.dims.d[0] / g->outputs[0].value->type.dims.d[0];
        fac_graph_free(p->graph);
        p->graph = g;
    }
    fac_release(after);
    return status;
}

fac_type fac_plan_output(const fac_plan *plan, size_t i) {
    fac_type type = plan->graph->outputs[i].value->type;
    if (plan->slices > 1) type.dims.d[0] *= plan->slices;
    return type;
}

/* What each run has to know of all operands, in the order it is read. */
static fac_status route(fac_plan *p, fac_error *err) {
    size_t n = 0;
    for (int i = 0; i < p->nsteps; i++)
        n += (size_t)(p->steps[i].problem->nin + p->steps[i].problem->nout);
    int *at = fac_arena_alloc(&p->memory, n + 1, sizeof *at);
    if (!at) return fac_raise_memory(err, "the operands of %d steps", p->nsteps);
    for (int i = 0; i < p->nsteps; i++) {
        fac_step *s = &p->steps[i];
        s->route = at;
        s->nin = s->problem->nin;
        s->nout = s->problem->nout;
        for (int k = 0; k < s->nin; k++) *at++ = s->in[k].root;
        for (int k = 0; k < s->nout; k++) *at++ = s->out[k].root;
    }
    return FAC_OK;
}

fac_status fac_plan_begin(const fac_graph *original, const bool *steers, fac_tensor *const in[],
                          fac_device *device, const fac_program_opts *o, bool dry, fac_plan **out,
                          fac_error *err) {
    fac_plan *p = fac_alloc(1, sizeof *p);
    if (!p) return fac_raise_memory(err, "a plan");
    p->device = device;
    p->precision = o->precision;
    p->no_inplace = o->no_inplace;
    p->observed = o->observe || o->hook || o->detect_anomaly;
    p->anomalies = o->detect_anomaly;
    p->dry = dry || o->plan_only;
    p->only = o->solver;
    p->wisdom = o->wisdom ? o->wisdom : device->wisdom;
    p->slices = 1;
    fac_status status = FAC_OK;
    fac_error own = { 0 };
    p->graph = fac_specialize(original, steers, in, &own);
    if (!p->graph) {
        status = own.status;
        if (err) *err = own;
    }
    if (!status) p->macs = count_macs(p->graph);
    if (!status && !dry) status = slice(p, original, steers, in, err);
    if (!status) status = fac_plan_settle(p, o, err);
    if (status)
        fac_plan_drop(p);
    else
        *out = p;
    return status;
}

fac_status fac_plan_finish(fac_plan *p, const fac_graph *original, const fac_program_opts *o,
                           fac_error *err) {
    FAC_TRY(fac_plan_rewrite(p, o, INT_MAX, err));
    FAC_TRY(concrete(p->graph, err));
    FAC_TRY(fac_plan_relay_wishes(p, err));
    FAC_TRY(fac_plan_schedule(p, original, err));
    FAC_TRY(fac_plan_aside(p, err));
    FAC_TRY(fac_plan_relays(p, err));
    fac_plan_place(p);
    FAC_TRY(fac_plan_packs(p, err));
    FAC_TRY(fac_plan_make_relays(p, err));
    FAC_TRY(route(p, err));
    return p->device->backend->settle ? p->device->backend->settle(p->device, err) : FAC_OK;
}

void fac_plan_drop(fac_plan *p) {
    for (int i = 0; i < p->nsteps; i++) {
        const fac_step *s = &p->steps[i];
        if (s->relay && s->relay->first == i && s->relay->plan)
            p->device->backend->relay->done(p->device, s->relay->plan);
        if (s->kind == FAC_STEP_RUN && s->plan && s->solver->done)
            s->solver->done(p->device, s->plan);
        if (s->kind == FAC_STEP_PACKS && s->plan)
            p->device->backend->packer->done(p->device, s->plan);
    }
    fac_release(p->commands);
    fac_release(p->steps);
    fac_release(p->roots);
    fac_release(p->items);
    fac_graph_free(p->graph);
    fac_arena_free(&p->memory);
    fac_release(p);
}
