/* Runs a plan: borrows nothing, allocates nothing; all that changes is in the frame. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "backends/transfer.h"
#include "run/loan.h"
#include "backends/layout_copy.h"
#include "base/clock.h"
#include "run/run.h"
#include "plan/plan.h"
#include "tensor/tensor_internal.h"

fac_status fac_frame_new(const fac_plan *plan, fac_frame **out, fac_error *err) {
    fac_frame *f = fac_alloc(1, sizeof *f);
    fac_status status = FAC_OK;
    if (f) {
        f->roots = fac_alloc((size_t)plan->nroots + 1, sizeof *f->roots);
        f->spans = fac_alloc((size_t)plan->most + 1, sizeof *f->spans);
        f->seconds = fac_alloc((size_t)plan->nsteps + 1, sizeof *f->seconds);
        f->params = fac_in_sight(plan->device)
                        ? NULL
                        : fac_alloc((size_t)plan->nroots + 1, sizeof *f->params);
    }
    if (!f || !f->roots || !f->spans || !f->seconds || (!f->params && !fac_in_sight(plan->device)))
        status = fac_raise_memory(err, "a run of %d steps", plan->nsteps);
    if (!status && plan->arena_bytes) {
        status = fac_device_hold(plan->device, FAC_HOLD_ARENAS, plan->arena_bytes, &f->arena, err);
        if (status)
            fac_raise_in(err, status, "the %zu bytes that all values need at once",
                         plan->arena_bytes);
    }
    if (status) {
        fac_frame_free(plan, f);
        return status;
    }
    *out = f;
    return FAC_OK;
}

void fac_frame_free(const fac_plan *plan, fac_frame *f) {
    if (!f) return;
    fac_device_drop(plan->device, FAC_HOLD_ARENAS, f->arena, plan->arena_bytes);
    fac_release(f->roots);
    fac_release(f->spans);
    fac_release(f->seconds);
    fac_release(f->params);
    fac_release(f->commands);
    fac_release(f);
}

/* Out of sight all of it is zeroed: a halo is many short pieces. */
static fac_status zero_halo(fac_device *d, const fac_type *type, fac_span at,
                            const fac_layout *layout, fac_error *err) {
    if (!layout->halo) return FAC_OK;
    if (!fac_in_sight(d)) return d->backend->zero(d, at, fac_layout_bytes(layout, type), err);
    fac_zero_halo(type, (char *)d->backend->host(d, at.memory) + at.at, layout);
    return FAC_OK;
}

/* n jobs of the step's relay, from the step on. */
static fac_status run_relay(const fac_plan *plan, const fac_frame *f, const fac_step *s, int n,
                            fac_error *err) {
    const fac_relayed *r = s->relay;
    const fac_step *first = &plan->steps[r->first];
    fac_span *to = f->spans, none = { 0 };
    for (const fac_step *job = first; job < first + r->n; job++) {
        for (int i = 0; i < job->nin + job->nout; i++)
            *to++ = job->route[i] < 0 ? none : f->roots[job->route[i]];
        *to++ = job->work < 0 ? none : f->roots[job->work];
    }
    return plan->device->backend->relay->run(r->plan, plan->device, f->spans, (int)(s - first), n,
                                             err);
}

/* n: more than one in a relay only, whose steps nothing looks at. */
static fac_status run_step(const fac_plan *plan, const fac_frame *f, const fac_step *s, int n,
                           const fac_program_opts *opts, bool *meant, fac_error *err) {
    fac_span *in = f->spans, *out = in + s->nin, none = { 0 };
    for (int i = 0; i < s->nin + s->nout; i++)
        in[i] = s->route[i] < 0 ? none : f->roots[s->route[i]];
    if (s->kind == FAC_STEP_PACK)
        return s->solver->pack(s->plan, plan->device, s->input, in[0], out[0], err);
    if (s->kind == FAC_STEP_PACKS)
        return plan->device->backend->packer->run(s->plan, plan->device, in,
                                                  (fac_span){ f->arena, 0 }, err);
    for (int k = 0; s->halo && k < s->nout; k++)
        if (out[k].memory)
            FAC_TRY(
                zero_halo(plan->device, &s->problem->out[k].type, out[k], &s->out[k].layout, err));
    if (s->relay)
        FAC_TRY(run_relay(plan, f, s, n, err));
    else
        FAC_TRY(s->solver->run(s->plan, plan->device, in, out,
                               s->work < 0 ? none : f->roots[s->work], err));
    if (opts->hook || opts->observe) FAC_TRY(fac_call_hooks(plan, f, s, opts, err));
    return plan->anomalies ? fac_anomaly(plan, s, in, out, meant, err) : FAC_OK;
}

/* Copies a result that does not lie where it has to; out of sight it is plain. */
static fac_status deliver(const fac_plan *plan, const fac_frame *f, const fac_slot *slot,
                          const fac_type *type, fac_span to, fac_error *err) {
    fac_device *d = plan->device;
    if (!fac_in_sight(d))
        return d->backend->copy(d, fac_span_of(f, slot, type), to, fac_type_bytes(type), err);
    return fac_fetch(d, type, f->roots[slot->root], &slot->layout,
                     (char *)d->backend->host(d, to.memory) + to.at, err);
}

/* Beside what follows, where the plan says so. */
static fac_status run_there(const fac_plan *plan, const fac_frame *f, const fac_step *s, int n,
                            const fac_program_opts *opts, bool *meant, fac_error *err) {
    const fac_beside *b = plan->device->backend->beside;
    if (s->meet) FAC_TRY(b->meet(plan->device, err));
    if (!s->aside) return run_step(plan, f, s, n, opts, meant, err);
    FAC_TRY(b->begin(plan->device, err));
    const fac_status status = run_step(plan, f, s, n, opts, meant, err),
                     ended = b->end(plan->device, status ? NULL : err);
    return status ? status : ended;
}

/* Do n steps write over a parameter?  The first one that does gives all of them new versions. */
static void begin_writing(const fac_plan *plan, fac_frame *f, const fac_step *s, int n) {
    for (const fac_step *job = s; job < s + n && !f->wrote; job++)
        for (int i = job->nin; i < job->nin + job->nout && !f->wrote; i++)
            f->wrote = job->route[i] >= 0 && plan->roots[job->route[i]].written;
    if (f->wrote) fac_touch_updates(plan);
}

static fac_status run_stage(const fac_plan *plan, fac_frame *f, int stage, bool timed,
                            const fac_program_opts *opts, fac_error *err) {
    const int first = plan->stages[stage].first,
              end = stage + 1 < plan->nstages ? plan->stages[stage + 1].first : plan->nsteps;
    const fac_backend *b = plan->device->backend;
    bool *meant = plan->anomalies ? fac_alloc((size_t)plan->graph->ids + 1, sizeof *meant) : NULL;
    fac_status status = plan->anomalies && !meant
                            ? fac_raise(err, FAC_E_NOMEM, "no memory to look for anomalies")
                            : FAC_OK;
    for (int i = first, n; i < end && !status; i += n) {
        const fac_step *s = &plan->steps[i];
        n = s->relay && !timed ? s->relay->n : 1;
        /* its own time alone */
        if (timed && b->watch && s->solver == &fac_solver_away)
            status = fac_device_sync(plan->device, err);
        if (!status) status = fac_device_go_on(plan->device, err);
        if (status) break;
        double start = timed ? fac_now() : 0;
        if (b->step) b->step(plan->device, s->label);
        if (plan->updating && !f->wrote) begin_writing(plan, f, s, n);
        status = run_there(plan, f, s, n, opts, meant, err);
        if (status) fac_raise_in(err, status, "%s (%s)", s->label, s->solver->name);
        if (timed && !b->watch && !fac_in_sight(plan->device) && !status)
            status = fac_device_sync(plan->device, err);
        if (timed) f->seconds[i] += fac_now() - start;
    }
    if (b->beside) {
        const fac_status met = b->beside->meet(plan->device, status ? NULL : err);
        if (!status) status = met;
    }
    if (b->step) b->step(plan->device, NULL);
    fac_release(meant);
    return status;
}

static fac_status find_param(const fac_plan *plan, fac_frame *f, int i, fac_error *err) {
    const fac_root *r = &plan->roots[i];
    if (!fac_in_sight(plan->device)) {
        FAC_TRY(fac_lend_param(plan->device, r->tensor, &f->params[i], err));
        f->roots[i] = f->params[i].span;
        return FAC_OK;
    }
    FAC_TRY(fac_storage_home(fac_tensor_storage(r->tensor), err));
    f->roots[i] = (fac_span){ fac_tensor_memory(r->tensor), 0 };
    return FAC_OK;
}

static fac_status find_roots(const fac_plan *plan, fac_frame *f, const fac_prepared *prepared,
                             const fac_span *in, const fac_span *out, fac_error *err) {
    for (int i = 0; i < plan->nroots; i++) {
        const fac_root *r = &plan->roots[i];
        f->roots[i] = (fac_span){ 0 };
        if (!r->used) continue;
        switch (r->kind) {
        case FAC_ROOT_ARENA:
            f->roots[i] = (fac_span){ f->arena, r->at };
            break;
        case FAC_ROOT_INPUT:
            f->roots[i] = in[r->index];
            break;
        case FAC_ROOT_OUTPUT:
            f->roots[i] = out[r->index];
            break;
        case FAC_ROOT_TENSOR:
            FAC_TRY(find_param(plan, f, i, err));
            break;
        case FAC_ROOT_PREPARED:
            f->roots[i] = (fac_span){ prepared->packs[r->index]->memory, 0 };
            break;
        case FAC_ROOT_PART:
            f->roots[i] = (fac_span){ f->arena, plan->roots[r->index].at };
            break;
        }
    }
    return FAC_OK;
}

/* Inputs, or results that are written where they belong, move on. */
static void next_slice(const fac_plan *plan, fac_frame *f, fac_root_kind kind) {
    for (int i = 0; i < plan->nroots; i++) {
        const fac_root *r = &plan->roots[i];
        if (f->roots[i].memory && r->kind == kind) f->roots[i].at += r->bytes;
    }
}

/* Results of slice number `slice` that do not lie where they belong. */
static fac_status deliver_slice(const fac_plan *plan, const fac_frame *f, const fac_span *out,
                                int64_t slice, fac_error *err) {
    const fac_graph *g = plan->graph;
    for (size_t i = 0; i < g->noutputs; i++) {
        const fac_slot *slot = &plan->outputs[i];
        const fac_type *type = &g->outputs[i].value->type;
        if (plan->roots[slot->root].kind == FAC_ROOT_OUTPUT &&
            plan->roots[slot->root].index == (int)i)
            continue;
        const fac_span to = { out[i].memory, out[i].at + (size_t)slice * fac_type_bytes(type) };
        FAC_TRY(deliver(plan, f, slot, type, to, err));
    }
    return FAC_OK;
}

/* What stage number `stage` has left, in its run number `run`, is complete: the next run leaves it
 * after that, or begins anew. */
static void next_part(const fac_plan *plan, fac_frame *f, const fac_stage *stage, int64_t run) {
    const fac_root *r = &plan->roots[stage->part];
    f->roots[stage->part].at =
        plan->roots[r->index].at + (size_t)((run + 1) % stage->times) * r->bytes;
}

static fac_status run_slices(const fac_plan *plan, fac_frame *f, const fac_span *out, bool timed,
                             const fac_program_opts *opts, fac_error *err) {
    const int last = plan->nstages - 1;
    for (int64_t slice = 0, delivered = 0; delivered < plan->slices; slice++) {
        int64_t run = slice;
        int stage = 0;
        if (slice) next_slice(plan, f, FAC_ROOT_INPUT);
        FAC_TRY(run_stage(plan, f, 0, timed, opts, err));
        for (const fac_stage *s; stage < last;
             run /= s->times) { /* each that has all it needs now */
            s = &plan->stages[stage];
            next_part(plan, f, s, run);
            if ((run + 1) % s->times) break;
            FAC_TRY(run_stage(plan, f, ++stage, timed, opts, err));
        }
        if (stage < last) continue;
        FAC_TRY(deliver_slice(plan, f, out, delivered, err));
        if (++delivered < plan->slices) next_slice(plan, f, FAC_ROOT_OUTPUT);
    }
    return FAC_OK;
}

/* Commands are in the order of the steps; what a step has named no command for took no time of the
 * device.  What the cpu did is told by the host's clock. */
static void add_seconds(const fac_plan *plan, fac_frame *f) {
    int step = 0;
    for (int i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].solver != &fac_solver_away) f->seconds[i] = 0;
    for (size_t k = 0; k < f->ncommands; k++) {
        const fac_command *c = &f->commands[k];
        int i = step;
        while (i < plan->nsteps && plan->steps[i].label != c->step) i++;
        if (i == plan->nsteps) continue;
        f->seconds[step = i] += c->end - c->start;
    }
}

/* By the device's own clock: nothing waits between the steps. */
static fac_status run_watched(const fac_plan *plan, fac_frame *f, const fac_span *out,
                              const fac_program_opts *opts, fac_error *err) {
    const fac_backend *b = plan->device->backend;
    FAC_TRY(b->watch(plan->device, NULL, NULL, err));
    fac_status status = run_slices(plan, f, out, true, opts, err);
    fac_release(f->commands);
    f->commands = NULL;
    f->ncommands = 0;
    const fac_status ended =
        b->watch(plan->device, &f->commands, &f->ncommands, status ? NULL : err);
    if (!status && !ended) add_seconds(plan, f);
    return status ? status : ended;
}

fac_status fac_execute(const fac_plan *plan, fac_frame *f, const fac_prepared *prepared,
                       const fac_span *in, const fac_span *out, bool timed,
                       const fac_program_opts *opts, fac_error *err) {
    f->wrote = false;
    FAC_TRY(find_roots(plan, f, prepared, in, out, err));
    for (int i = 0; i < plan->nsteps && timed; i++) f->seconds[i] = 0;
    if (timed && plan->device->backend->watch) return run_watched(plan, f, out, opts, err);
    return run_slices(plan, f, out, timed, opts, err);
}

void fac_frame_end(const fac_plan *plan, fac_frame *f) {
    for (int i = 0; f && f->params && i < plan->nroots; i++)
        if (plan->roots[i].kind == FAC_ROOT_TENSOR)
            fac_lend_end(plan->device, &f->params[i], plan->roots[i].written, NULL);
}
