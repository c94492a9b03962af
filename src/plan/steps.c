/* The parts of a plan while it is scheduled: memory roots, prepared items, steps.  See schedule.h.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "plan/schedule.h"

int fac_root_new(fac_scheduler *s, fac_root root) {
    fac_plan *p = s->plan;
    if (!fac_reserve(&p->roots, &p->room_roots, (size_t)p->nroots + 1, sizeof *p->roots)) {
        fac_raise_memory(s->err, "a plan of %d roots", p->nroots);
        return -1;
    }
    root.first = root.last = s->now;
    p->roots[p->nroots] = root;
    return p->nroots++;
}

void fac_root_touch(fac_plan *p, int root, int step) {
    if (root < 0) return;
    p->roots[root].used = true;
    if (step < p->roots[root].first) p->roots[root].first = step;
    if (step > p->roots[root].last) p->roots[root].last = step;
}

/* A root of the arena for a value in this layout. */
int fac_arena_root(fac_scheduler *s, const fac_type *type, const fac_layout *layout) {
    size_t bytes = fac_layout_bytes(layout, type);
    if (bytes == SIZE_MAX) {
        fac_raise(s->err, FAC_E_NOMEM, "a value of more bytes than fit in memory");
        return -1;
    }
    s->plan->values_bytes += bytes;
    return fac_root_new(s, (fac_root){ .kind = FAC_ROOT_ARENA, .bytes = bytes });
}

int fac_item_root(fac_scheduler *s, fac_item item) {
    fac_plan *p = s->plan;
    int *last = &s->at[item.value->id].item;
    for (int i = item.solver ? 0 : *last; i;
         i = p->items[p->roots[i - 1].index].before) /* what a solver packs is its own */
        if (fac_layout_equal(&p->items[p->roots[i - 1].index].layout, &item.layout,
                             &item.value->type.dims))
            return i - 1;
    if (!fac_reserve(&p->items, &p->room_items, (size_t)p->nitems + 1, sizeof *p->items)) {
        fac_raise_memory(s->err, "a plan of %d prepared values", p->nitems);
        return -1;
    }
    item.before = item.solver ? 0 : *last;
    p->items[p->nitems] = item;
    const int root = fac_root_new(
        s, (fac_root){ .kind = FAC_ROOT_PREPARED, .index = p->nitems++, .bytes = item.bytes });
    if (!item.solver && root >= 0) *last = root + 1;
    return root;
}

/* In the plan's memory, where solvers may keep it. */
fac_problem *fac_problem_new(fac_scheduler *s, const fac_node *node, int nin, int nout) {
    fac_arena *a = &s->plan->memory;
    fac_problem *p = fac_arena_alloc(a, 1, sizeof *p);
    fac_operand *o = fac_arena_alloc(a, (size_t)nin + (size_t)nout + 1, sizeof *o);
    if (!p || !o) {
        fac_raise_memory(s->err, "a plan");
        return NULL;
    }
    *p = (fac_problem){ .node = node,
                        .precision = s->plan->precision,
                        .nin = nin,
                        .nout = nout,
                        .in = o,
                        .out = o + nin };
    return p;
}

fac_step *fac_step_new(fac_scheduler *s, fac_problem *problem, const fac_solver *solver,
                       void *plan) {
    fac_plan *p = s->plan;
    size_t n = (size_t)problem->nin + (size_t)problem->nout;
    fac_slot *slots = fac_arena_alloc(&p->memory, n + 1, sizeof *slots);
    if (!slots ||
        !fac_reserve(&p->steps, &p->room_steps, (size_t)p->nsteps + 1, sizeof *p->steps)) {
        fac_raise_memory(s->err, "a plan of %d steps", p->nsteps);
        return NULL;
    }
    fac_step *step = &p->steps[p->nsteps];
    *step =
        (fac_step){ .solver = solver, .plan = plan, .problem = problem, .in = slots, .work = -1 };
    step->out = slots + problem->nin;
    for (size_t i = 0; i < n; i++) slots[i].root = -1;
    if ((int)n > p->most) p->most = (int)n;
    s->now = p->nsteps++; /* counted from now on, so that its plan is freed whatever happens */
    return step;
}

/* Channels last; a part of them, with others in between. */
static bool is_last(const fac_dims *d, const fac_layout *l, bool part) {
    const fac_layout last = fac_layout_channels_last(d);
    if (!part) return fac_layout_equal(l, &last, d);
    return l->stride[1] == 1 && l->stride[d->n - 1] > d->d[1] &&
           l->stride[d->n - 2] == l->stride[d->n - 1] * d->d[d->n - 1];
}

/* "n16c+1": channels in blocks of 16, a halo of 1; "plain"; "last": channels last, "last part":
 * some of those that lie there; "strided" for any other order or gaps. */
static void layout_text(const fac_operand *o, const fac_layout *l, char to[24]) {
    const fac_dims *d = &o->type.dims;
    if (l->block && l->axis == 1)
        snprintf(to, 24, l->halo ? "n%dc+%d" : "n%dc", l->block, l->halo);
    else if (l->block)
        snprintf(to, 24, "%d@%d+%d", l->block, l->axis, l->halo);
    else if (fac_layout_is_plain(l, d))
        snprintf(to, 24, "plain");
    else if (d->n > 2 && is_last(d, l, false))
        snprintf(to, 24, "last");
    else
        snprintf(to, 24, "%s", d->n > 2 && is_last(d, l, true) ? "last part" : "strided");
}

/* Of the first input and the first output. */
static const char *layouts(fac_arena *memory, const fac_step *s) {
    const fac_problem *q = s->problem;
    char in[24] = "-", out[24] = "-", text[56];
    if (q->nin && s->in[0].root >= 0) layout_text(&q->in[0], &s->in[0].layout, in);
    if (q->nout && s->out[0].root >= 0 && s->kind == FAC_STEP_RUN)
        layout_text(&q->out[0], &s->out[0].layout, out);
    snprintf(text, sizeof text, "%s -> %s", in, s->kind == FAC_STEP_RUN ? out : "packed");
    return fac_arena_text(memory, text);
}

/* The step is complete: its operands count as used now. */
fac_status fac_step_done(fac_scheduler *s, fac_step *step, size_t work, bool own) {
    fac_plan *p = s->plan;
    const fac_problem *q = step->problem;
    const int index = (int)(step - p->steps);
    if (work) {
        int root = fac_root_new(
            s, (fac_root){ .kind = FAC_ROOT_ARENA, .bytes = work, .used = true, .own = own });
        if (root < 0) return FAC_E_NOMEM;
        step->work = root;
    }
    for (int i = 0; i < q->nin; i++) {
        const int root = step->in[i].root;
        const bool packed = i < FAC_OFFER_PACKED && step->packed >> i & 1;
        fac_root_touch(p, root, index);
        if (root >= 0)
            step->bytes += (double)(packed ? p->roots[root].bytes : fac_type_bytes(&q->in[i].type));
    }
    for (int k = 0; k < q->nout; k++) {
        fac_root_touch(p, step->out[k].root, index);
        if (step->out[k].root < 0) continue;
        step->halo |= step->out[k].layout.halo > 0;
        if (q->out[k].type.dtype != FAC_NONE)
            step->bytes += (double)fac_type_bytes(&q->out[k].type);
    }
    fac_cost cost = { 0 };
    char label[200] = "reorder";
    if (step->kind == FAC_STEP_RUN && q->node->op->cost && q->node->graph)
        q->node->op->cost(q->node, &cost);
    if (q->node->graph) fac_node_label(q->node, label, sizeof label);
    step->macs = cost.macs * (double)s->runs;
    step->bytes *= (double)s->runs;
    step->label = fac_arena_text(&p->memory, label);
    step->layouts = layouts(&p->memory, step);
    s->now = p->nsteps;
    return fac_step_count(p, step, s->runs) && step->label && step->layouts
               ? FAC_OK
               : fac_raise_memory(s->err, "a plan");
}
