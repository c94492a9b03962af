/* Where values lie, and the steps that bring them into another layout.  See schedule.h. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "plan/schedule.h"

int fac_reads_of(const fac_value *v) {
    int n = (int)v->roots;
    for (const fac_use *u = v->uses; u; u = u->next) n++;
    return n;
}

void fac_lay(fac_scheduler *s, const fac_value *v, int root, const fac_layout *layout) {
    s->at[v->id] = (fac_where){ .slot = { root, *layout }, .set = true, .item = s->at[v->id].item };
    s->plan->roots[root].pending += fac_reads_of(v);
}

/* Inputs of the run and values made before it. */
fac_status fac_lay_early(fac_scheduler *s, const fac_value *v) {
    if (s->at[v->id].set) return FAC_OK;
    fac_layout plain = fac_layout_plain(&v->type.dims);
    int root;
    if (v->leaf == FAC_INPUT) {
        int index = 0;
        while (index < (int)s->original->ninputs &&
               strcmp(s->original->inputs[index]->name, v->name))
            index++;
        root = fac_root_new(s, (fac_root){ .kind = FAC_ROOT_INPUT,
                                           .index = index,
                                           .bytes = fac_type_bytes(&v->type) });
    } else if (v->tensor && fac_tensor_contiguous(v->tensor)) {
        root = fac_root_new(s, (fac_root){ .kind = FAC_ROOT_TENSOR,
                                           .tensor = v->tensor,
                                           .bytes = fac_type_bytes(&v->type) });
    } else {
        root = fac_item_root(
            s, (fac_item){ .value = v, .layout = plain, .bytes = fac_type_bytes(&v->type) });
    }
    if (root < 0) return FAC_E_NOMEM;
    fac_lay(s, v, root, &plain);
    return FAC_OK;
}

/* A layout that is blocked only in name (one pixel planes, whole blocks, no halo) is plain. */
void fac_layout_settle(fac_layout *l, const fac_dims *d) {
    if (!l->block || l->halo || d->d[l->axis] % l->block) return;
    fac_layout plain = fac_layout_plain(d);
    for (int k = l->axis + 1; k < d->n; k++)
        if (d->d[k] != 1) return;
    if (l->stride[l->axis] != l->block && d->d[l->axis] > l->block) return;
    for (int k = 0; k < l->axis; k++)
        if (d->d[k] != 1 && l->stride[k] != plain.stride[k]) return;
    plain.offset = l->offset;
    *l = plain;
}

fac_status fac_pick(fac_scheduler *s, fac_problem *q, const fac_layout_cost *cost, fac_offer *offer,
                    const fac_solver **solver) {
    fac_error own = { 0 };
    *solver = fac_choose(s->plan, q, cost, offer, &own);
    if (*solver) return FAC_OK;
    if (s->err) *s->err = own;
    return own.status;
}

/* A solver that copies between just these layouts, which q has. */
static fac_status pick_copy(fac_scheduler *s, fac_problem *q, fac_offer *offer,
                            const fac_solver **solver) {
    const fac_operand from = q->in[0], to = q->out[0];
    FAC_TRY(fac_pick(s, q, &(fac_layout_cost){ 0 }, offer, solver));
    if (fac_layout_equal(&q->in[0].layout, &from.layout, &from.type.dims) &&
        fac_layout_equal(&q->out[0].layout, &to.layout, &to.type.dims))
        return FAC_OK;
    /* it would rather copy something else: the reference copies anything */
    q->in[0] = from;
    q->out[0] = to;
    fac_offer_drop(offer);
    *solver = fac_last_solver(s->plan->device);
    return fac_solver_offer(*solver, s->plan->device, q, offer)
               ? FAC_OK
               : fac_raise(s->err, FAC_E_INTERNAL, "no reorder");
}

/* A step that copies v to a place that is there, or when that is NULL into memory of its own. */
static fac_status copy(fac_scheduler *s, const fac_value *v, const fac_layout *want,
                       const fac_slot *there, fac_slot *out) {
    static const fac_node identity = { .op = &fac_op_identity, .nin = 1, .nout = 1, .nports = 1 };
    fac_plan *p = s->plan;
    const fac_where *w = &s->at[v->id];
    fac_problem *q = fac_problem_new(s, &identity, 1, 1);
    if (!q) return FAC_E_NOMEM;
    q->in[0] = (fac_operand){ .type = v->type, .layout = w->slot.layout, .time = FAC_RUN };
    q->out[0] = (fac_operand){ .type = v->type, .layout = *want, .time = FAC_RUN };
    fac_offer offer = { 0 };
    const fac_solver *solver = NULL;
    void *plan = NULL;
    fac_status status = pick_copy(s, q, &offer, &solver);
    if (!status && !p->dry) status = fac_solver_make(solver, p->device, q, &offer, &plan, s->err);
    fac_offer_drop(&offer);
    if (status) return status;
    fac_step *step = fac_step_new(s, q, solver, plan);
    if (!step) {
        if (plan && solver->done) solver->done(p->device, plan);
        return FAC_E_NOMEM;
    }
    step->in[0] = w->slot;
    *out = there ? *there : (fac_slot){ fac_arena_root(s, &v->type, want), *want };
    step->out[0] = *out;
    FAC_TRY(fac_step_done(s, step, offer.work, offer.own));
    return out->root < 0 ? FAC_E_NOMEM : FAC_OK;
}

fac_status fac_copy_to(fac_scheduler *s, const fac_value *v, const fac_slot *to) {
    fac_slot out;
    return copy(s, v, &to->layout, to, &out);
}

/* The same, and a note of where that copy lies. */
static fac_status reorder(fac_scheduler *s, const fac_value *v, const fac_layout *want,
                          fac_slot *out) {
    fac_where *w = &s->at[v->id];
    fac_copy *c = fac_arena_alloc(&s->plan->memory, 1, sizeof *c);
    if (!c) return fac_raise_memory(s->err, "a plan");
    FAC_TRY(copy(s, v, want, NULL, out));
    *c = (fac_copy){ w->copies, *out };
    w->copies = c;
    return FAC_OK;
}

/* A copy that was last read long ago, in the forward part of a training step say, while the value
 * itself has to stay for others anyway: one more reorder now is cheaper than both of them for all
 * that time. */
static bool forgotten(const fac_scheduler *s, const fac_where *w, const fac_copy *c) {
    enum { LONG = 32, SMALL = 64 << 10 }; /* steps; bytes */
    const fac_root *own = &s->plan->roots[w->slot.root], *copy = &s->plan->roots[c->slot.root];
    return s->plan->nsteps - copy->last > LONG && copy->bytes > SMALL &&
           (own->kind != FAC_ROOT_ARENA || own->pending > 1);
}

/* v in this layout, by a reorder step or, before the run, by an item. */
fac_status fac_slot_in(fac_scheduler *s, const fac_value *v, const fac_layout *want,
                       fac_slot *out) {
    fac_where *w = &s->at[v->id];
    if (fac_layout_equal(&w->slot.layout, want, &v->type.dims)) {
        *out = w->slot;
        return FAC_OK;
    }
    if (v->time != FAC_RUN) {
        out->layout = *want;
        out->root = fac_item_root(
            s,
            (fac_item){ .value = v, .layout = *want, .bytes = fac_layout_bytes(want, &v->type) });
        return out->root < 0 ? FAC_E_NOMEM : FAC_OK;
    }
    for (fac_copy *c = w->copies; c; c = c->next)
        if (fac_layout_equal(&c->slot.layout, want, &v->type.dims) && !forgotten(s, w, c)) {
            *out = c->slot;
            return FAC_OK;
        }
    return reorder(s, v, want, out);
}
