/* Programs: a snapshot of a graph, and the plans it was compiled to so far. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/optional.h"
#include "run/flow.h"
#include "run/program_internal.h"
#include "backends/transfer.h"
#include "run/loan.h"
#include "run/run.h"
#include "tensor/tensor_internal.h"

enum { PLANS = 256 };

fac_status fac_program_new(const fac_graph *g, fac_device *device, const fac_program_opts *opts,
                           fac_program **out, fac_error *err) {
    if (!g || !device || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_program_new: %s is NULL",
                         !g        ? "the graph"
                         : !device ? "the device"
                                   : "out");
    FAC_TRY(fac_graph_usable(g, "fac_program_new", err));
    FAC_TRY(fac_solver_known(device, opts ? opts->solver : NULL, err));
    if (!g->noutputs && !g->nparams)
        return fac_raise(err, FAC_E_ARGUMENT, "a graph without outputs has nothing to run");
    fac_program *p = fac_alloc(1, sizeof *p);
    if (!p) return fac_raise_memory(err, "a program");
    p->device = device;
    if (opts) p->opts = *opts;
    p->graph = fac_graph_clone(g);
    p->steers = fac_alloc(g->ninputs + 1, sizeof *p->steers);
    bool named =
        (!p->opts.solver || (p->solver = fac_copy_text(p->opts.solver))) &&
        (!p->opts.recompute.scopes || (p->scopes = fac_copy_text(p->opts.recompute.scopes))) &&
        (!p->graph || !(p->opts.hook || p->opts.observe) || fac_name_nodes(p->graph));
    p->opts.solver = p->solver;
    p->opts.recompute.scopes = p->scopes;
    fac_status status = p->graph && p->steers && named ? fac_graph_check(p->graph, err)
                                                       : fac_raise_memory(err, "a program");
    if (!status && pthread_mutex_init(&p->lock, NULL))
        status = fac_raise(err, FAC_E_NOMEM, "no mutex");
    else if (!status)
        p->locks++;
    if (!status && pthread_mutex_init(&p->turn, NULL))
        status = fac_raise(err, FAC_E_NOMEM, "no mutex");
    else if (!status)
        p->locks++;
    if (status) {
        fac_program_free(p);
        return status;
    }
    if (!fac_graph_steering(p->graph, p->steers)) {
        fac_program_free(p);
        return fac_raise_memory(err, "a program");
    }
    for (size_t i = 0; i < p->graph->nparams; i++) p->updates |= p->graph->params[i]->next != NULL;
    *out = p;
    return FAC_OK;
}

void fac_program_free(fac_program *p) {
    if (!p) return;
    for (size_t i = 0; i < p->nplans; i++) fac_plan_free(p->plans[i]);
    fac_release(p->plans);
    fac_graph_free(p->graph);
    fac_release(p->steers);
    fac_release(p->solver);
    fac_release(p->scopes);
    if (p->locks > 0) pthread_mutex_destroy(&p->lock);
    if (p->locks > 1) pthread_mutex_destroy(&p->turn);
    fac_release(p);
}

/* ---- plans, under p->lock ---- */

/* Sizes of all inputs and contents of those that steer shapes. */
static fac_status key_of(const fac_program *p, fac_tensor *const in[], fac_hash *out,
                         fac_error *err) {
    fac_hash h = fac_hash_start(23);
    for (size_t i = 0; i < p->graph->ninputs; i++) {
        const fac_value *v = p->graph->inputs[i];
        if (!in || !in[i]) return fac_raise(err, FAC_E_ARGUMENT, "input %s was not given", v->name);
        const fac_type t = fac_tensor_type(in[i]);
        h = fac_hash_int(h, t.dtype);
        h = fac_hash_int(h, (uint64_t)t.dims.n);
        for (int k = 0; k < t.dims.n; k++) h = fac_hash_int(h, (uint64_t)t.dims.d[k]);
        if (!p->steers[i]) continue;
        char bytes[FAC_KNOWN * 8];
        size_t n = fac_type_bytes(&t);
        if (n > sizeof bytes)
            return fac_raise(err, FAC_E_UNSUPPORTED,
                             "input %s steers shapes and has more than %d elements", v->name,
                             FAC_KNOWN);
        FAC_TRY(fac_tensor_read(in[i], bytes, n, err));
        h = fac_hash_bytes(h, bytes, n);
    }
    *out = h;
    return FAC_OK;
}

static void forget_oldest(fac_program *p) {
    size_t most = p->device->opts.plans > 0 ? (size_t)p->device->opts.plans : PLANS;
    while (p->nplans >= most) {
        size_t oldest = p->nplans;
        for (size_t i = 0; i < p->nplans; i++)
            if (p->plans[i]->busy == 0 &&
                (oldest == p->nplans || p->plans[i]->used < p->plans[oldest]->used))
                oldest = i;
        if (oldest == p->nplans) return; /* all of them are running */
        fac_plan_free(p->plans[oldest]);
        p->plans[oldest] = p->plans[--p->nplans];
    }
}

static fac_status plan_for(fac_program *p, fac_tensor *const in[], fac_plan **out, fac_error *err) {
    fac_hash key;
    FAC_TRY(key_of(p, in, &key, err));
    for (size_t i = 0; i < p->nplans; i++) {
        if (!fac_hash_equal(p->plans[i]->key, key)) continue;
        p->plans[i]->used = ++p->tick;
        *out = p->last = p->plans[i];
        return FAC_OK;
    }
    forget_oldest(p);
    fac_plan *plan;
    if (!fac_reserve(&p->plans, &p->room_plans, p->nplans + 1, sizeof *p->plans))
        return fac_raise_memory(err, "a plan");
    FAC_TRY(fac_plan_new(p->graph, p->steers, in, p->device, &p->opts, false, &plan, err));
    plan->key = key;
    plan->used = ++p->tick;
    p->plans[p->nplans++] = plan;
    *out = p->last = plan;
    return FAC_OK;
}

/* What preparing would make. */
static size_t bytes_to_pack(const fac_plan *plan) {
    size_t bytes = 0;
    for (int i = 0; i < plan->nitems; i++) bytes += plan->items[i].bytes;
    return bytes;
}

fac_status fac_program_plan(fac_program *p, fac_tensor *const in[], fac_plan_stat *stat,
                            fac_error *err) {
    fac_plan *plan;
    fac_prepared *prepared = NULL;
    pthread_mutex_lock(&p->lock);
    fac_status status = plan_for(p, in, &plan, err);
    const bool whole = !status && !plan->cut;
    if (whole && plan->dry)
        plan->packed_bytes = bytes_to_pack(plan);
    else if (whole)
        status = fac_prepare(plan, &prepared, err);
    if (!status && !whole && stat) *stat = (fac_plan_stat){ .macs = plan->macs };
    if (!status && whole) {
        fac_prepared_put(plan, prepared);
        const fac_plan_stat s = { plan->arena_bytes,  plan->values_bytes, plan->bound_bytes,
                                  plan->packed_bytes, plan->nsteps,       plan->copied_bytes,
                                  plan->recompute,    plan->macs };
        if (stat) *stat = s;
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* ---- running ---- */

enum { FEW = 48 };

/* Everything one run borrows and has to give back. */
typedef struct run {
    fac_plan *plan;
    fac_prepared *prepared;
    fac_frame *frame;
    fac_tensor *few_tensors[FEW], **in, **out; /* contiguous inputs, results that were made here */
    fac_span few_spans[FEW], *from, *to;
    fac_loan few_loans[FEW], *loans; /* of inputs, then outputs, on a device out of sight */
    void *many;
    bool busy; /* the plan is in use */
} run;

static fac_status borrow(fac_program *p, fac_tensor *const in[], run *r, fac_error *err) {
    pthread_mutex_lock(&p->lock);
    fac_status status = plan_for(p, in, &r->plan, err);
    const bool whole = !status && !r->plan->cut;
    if (whole) status = fac_prepare(r->plan, &r->prepared, err);
    if (!status) {
        r->busy = true;
        r->plan->busy++;
        if ((r->frame = r->plan->frames)) r->plan->frames = r->frame->next;
    }
    pthread_mutex_unlock(&p->lock);
    if (whole && !status && !r->frame) status = fac_frame_new(r->plan, &r->frame, err);
    return status;
}

static void give_back(fac_program *p, run *r, bool ran) {
    if (!r->busy) return;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; ran && p->timed && i < r->plan->nsteps; i++) {
        r->plan->steps[i].seconds += r->frame->seconds[i];
        r->plan->steps[i].runs++;
    }
    if (ran && p->timed && r->frame && r->frame->commands) {
        fac_release(r->plan->commands);
        r->plan->commands = r->frame->commands;
        r->plan->ncommands = r->frame->ncommands;
        r->frame->commands = NULL;
        r->frame->ncommands = 0;
    }
    if (r->frame) {
        r->frame->next = r->plan->frames;
        r->plan->frames = r->frame;
    }
    r->plan->busy--;
    if (r->prepared) fac_prepared_put(r->plan, r->prepared);
    pthread_mutex_unlock(&p->lock);
}

static fac_status arrays(const fac_program *p, run *r, fac_error *err) {
    const size_t i = p->graph->ninputs, n = i + p->graph->noutputs;
    r->in = r->few_tensors;
    r->from = r->few_spans;
    r->loans = r->few_loans;
    if (n > FEW) {
        if (!(r->many = fac_alloc(n, sizeof *r->in + sizeof *r->from + sizeof *r->loans)))
            return fac_raise_memory(err, "%zu operands", n);
        r->loans = r->many;
        r->from = (fac_span *)(r->loans + n);
        r->in = (fac_tensor **)(r->from + n);
    }
    r->out = r->in + i;
    r->to = r->from + i;
    return FAC_OK;
}

/* The contiguous memory of a tensor on the program's device; a copy where it is strided or
 * elsewhere, or must be our own. */
static fac_status input_memory(fac_program *p, fac_tensor *t, bool own, run *r, size_t i,
                               fac_error *err) {
    if (!fac_in_sight(p->device)) {
        FAC_TRY(fac_lend_in(p->device, t, own, &r->loans[i], err));
        r->from[i] = r->loans[i].span;
        return FAC_OK;
    }
    FAC_TRY(fac_storage_home(fac_tensor_storage(t), err));
    if (own || !fac_tensor_contiguous(t) || !fac_tensor_data(t)) {
        FAC_TRY(fac_tensor_copy_contiguous(t, &r->in[i], err));
        t = r->in[i];
    }
    r->from[i].memory = fac_tensor_memory(t);
    return FAC_OK;
}

static fac_status check_output(const fac_program *p, const char *name, const fac_type *type,
                               const fac_tensor *t, fac_error *err) {
    fac_type have = fac_tensor_type(t);
    if (have.dtype == type->dtype && fac_dims_equal(&have.dims, &type->dims) &&
        fac_tensor_contiguous(t))
        return FAC_OK;
    fac_text want = { 0 }, got = { 0 };
    fac_type_print(p->graph, type, &want);
    fac_type_print(p->graph, &have, &got);
    fac_status status = fac_raise(err, FAC_E_SHAPE, "output %s is %s, the tensor given is %s%s",
                                  name, fac_text_or(want.s, "?"), fac_text_or(got.s, "?"),
                                  fac_tensor_contiguous(t) ? "" : ", not contiguous");
    fac_text_free(&want);
    fac_text_free(&got);
    return status;
}

static fac_status output_memory(fac_program *p, size_t i, const fac_type *type, fac_tensor *given,
                                run *r, fac_error *err) {
    const bool here = fac_in_sight(p->device);
    if (given)
        FAC_TRY(check_output(p, p->graph->outputs[i].name, type, given, err));
    else if (here)
        FAC_TRY(fac_tensor_new_on(p->device->memory_ops, p->device, *type, false, &r->out[i], err));
    else
        FAC_TRY(fac_tensor_new_aside(*type, &r->out[i], err)); /* host memory on the first read */
    fac_tensor *t = given ? given : r->out[i];
    if (here) return fac_tensor_begin_write(t, &r->to[i].memory, err);
    FAC_TRY(fac_lend_out(p->device, t, &r->loans[p->graph->ninputs + i], err));
    r->to[i] = r->loans[p->graph->ninputs + i].span;
    return FAC_OK;
}

/* Results of a device out of sight belong to their tensors from now on. */
static fac_status end_lending(fac_program *p, run *r, fac_status status, fac_error *err) {
    const size_t n = p->graph->ninputs + p->graph->noutputs;
    for (size_t i = 0; r->loans && i < n; i++) {
        fac_status ended = fac_lend_end(p->device, &r->loans[i], !status, err);
        if (!status) status = ended;
    }
    return status;
}

/* Does the caller hand in the very memory that steps write over? */
static bool is_written(const fac_plan *plan, const fac_tensor *t) {
    const fac_graph *g = plan->graph;
    for (size_t i = 0; i < g->nparams; i++)
        if (plan->written[i] && fac_tensor_storage(g->params[i]->tensor) == fac_tensor_storage(t))
            return true;
    return false;
}

/* Texts that a plan makes are borrowed from what it read: a result keeps copies. */
static fac_status own_texts(const run *r, fac_tensor *const given[], size_t n, fac_error *err) {
    for (size_t i = 0; i < n; i++) {
        fac_tensor *t = given[i] ? given[i] : r->out[i];
        const fac_type type = fac_tensor_type(t);
        const size_t bytes = type.dtype == FAC_TEXT ? fac_type_bytes(&type) : 0;
        if (bytes) FAC_TRY(fac_storage_home(fac_tensor_storage(t), err));
        if (bytes) FAC_TRY(fac_tensor_write(t, fac_tensor_data(t), bytes, err));
    }
    return FAC_OK;
}

static fac_status run_once(fac_program *p, run *r, fac_tensor *const in[], fac_tensor *out[],
                           const fac_within *within, fac_error *err) {
    const fac_graph *g = p->graph;
    r->frame->within = within;
    FAC_TRY(arrays(p, r, err));
    for (size_t i = 0; i < g->ninputs; i++)
        if (in[i])
            FAC_TRY(input_memory(p, in[i], p->updates && is_written(r->plan, in[i]), r, i, err));
    for (size_t i = 0; i < g->noutputs; i++) {
        const fac_type type = fac_plan_output(r->plan, i);
        FAC_TRY(output_memory(p, i, &type, out[i], r, err));
    }
    if (p->updates) FAC_TRY(fac_begin_updates(r->plan, err));
    fac_status status =
        fac_execute(r->plan, r->frame, r->prepared, r->from, r->to, p->timed, &p->opts, err);
    if (r->frame->wrote) fac_touch_updates(r->plan);
    if (!status && r->plan->copied_bytes) status = fac_copy_updates(r->plan, r->frame, err);
    return status;
}

fac_status fac_program_run_within(fac_program *p, fac_tensor *const in[], fac_tensor *out[],
                                  const fac_within *within, fac_error *err) {
    run r;
    memset(&r, 0, sizeof r);
    if (p->opts.plan_only)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "this program was made to be planned only, and does not run");
    if (p->updates) pthread_mutex_lock(&p->turn);
    fac_status status = borrow(p, in, &r, err);
    if (!status)
        status = r.plan->cut ? fac_cut_run(r.plan->cut, in, out, within, err)
                             : run_once(p, &r, in, out, within, err);
    if (r.frame) fac_frame_end(r.plan, r.frame);
    if (!fac_in_sight(p->device)) status = end_lending(p, &r, status, err);
    if (!status && !r.plan->cut) status = own_texts(&r, out, p->graph->noutputs, err);
    for (size_t i = 0; r.in && i < p->graph->ninputs; i++) fac_tensor_free(r.in[i]);
    for (size_t i = 0; r.out && i < p->graph->noutputs; i++) {
        if (status)
            fac_tensor_free(r.out[i]);
        else if (r.out[i])
            out[i] = r.out[i];
    }
    fac_release(r.many);
    give_back(p, &r, !status);
    if (p->updates) pthread_mutex_unlock(&p->turn);
    return status;
}

fac_status fac_program_run(fac_program *p, fac_tensor *const in[], fac_tensor *out[],
                           fac_error *err) {
    return fac_program_run_within(p, in, out, NULL, err);
}

fac_status fac_eval(fac_value *v, fac_device *device, fac_tensor **out, fac_error *err) {
    if (!v || !device || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_eval: %s is NULL",
                         !v        ? "the value"
                         : !device ? "the device"
                                   : "out");
    fac_graph *g = v->graph, *only = NULL;
    FAC_TRY(fac_graph_usable(g, "fac_eval", err));
    if (g->ninputs)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_eval: input %s has no data", g->inputs[0]->name);
    fac_value **map = NULL;
    fac_program *p = NULL;
    fac_tensor *result = NULL;
    only = fac_graph_rebuild(g, &(fac_rebuild){ .keep_dead = true }, &map);
    if (!only) return fac_raise_memory(err, "a graph of %d nodes", g->nodes);
    for (size_t i = 0; i < only->noutputs; i++) only->outputs[i].value->roots--;
    only->noutputs = 0;
    for (size_t i = 0; i < only->nparams; i++) {
        if (only->params[i]->next) only->params[i]->next->roots--;
        only->params[i]->next = NULL;
    }
    fac_output(only, "y", map[v->id]);
    fac_status status = fac_program_new(only, device, NULL, &p, err);
    if (!status) status = fac_program_run(p, NULL, &result, err);
    fac_program_free(p);
    fac_graph_free(only);
    if (!status) *out = result;
    return status;
}
