/* The steps of a plan: for each node that has to run, in order, where its inputs lie, a solver, the reorders that it wants,
 * and where its outputs go: a view of an input, an input's own memory (in place), or a root of their own. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "run/plan.h"

/* Another place where the same value lies, in another layout. */
typedef struct copy { struct copy *next; fac_slot slot; } copy;
typedef struct where { fac_slot slot; copy *copies; bool set; } where;

typedef struct schedule {
    fac_plan        *plan;
    const fac_graph *original;
    where           *at;            /* by value id */
    int             *wish;          /* by value id: the halo that readers would like */
    int              now;           /* the step at hand, or the next one             */
    fac_error       *err;
} schedule;

static bool plain_here(const fac_layout *l, const fac_type *t) { return fac_layout_is_plain(l, &t->dims); }

/* ---- roots, items, steps ------------------------------------------------------------------------------------------------------ */

static int root_new(schedule *s, fac_root root) {
    fac_plan *p = s->plan;
    if (!fac_reserve(&p->roots, &p->room_roots, (size_t)p->nroots + 1, sizeof *p->roots)) {
        fac_raise(s->err, FAC_E_NOMEM, "no memory for a plan of %d roots", p->nroots);
        return -1;
    }
    root.first = root.last = s->now;
    p->roots[p->nroots] = root;
    return p->nroots++;
}

static void touch(fac_plan *p, int root, int step) {
    if (root < 0) return;
    if (step < p->roots[root].first) p->roots[root].first = step;
    if (step > p->roots[root].last) p->roots[root].last = step;
}

/* A root of the arena for a value in this layout. */
static int arena_root(schedule *s, const fac_type *type, const fac_layout *layout) {
    size_t bytes = fac_layout_bytes(layout, type);
    if (bytes == SIZE_MAX) {
        fac_raise(s->err, FAC_E_NOMEM, "a value of more bytes than fit in memory");
        return -1;
    }
    s->plan->values_bytes += bytes;
    return root_new(s, (fac_root){ .kind = FAC_ROOT_ARENA, .bytes = bytes });
}

static int item_root(schedule *s, fac_item item) {
    fac_plan *p = s->plan;
    for (int i = 0; i < p->nroots; i++) {
        const fac_root *r = &p->roots[i];
        if (r->kind != FAC_ROOT_PREPARED || item.solver || p->items[r->index].solver || p->items[r->index].value != item.value) continue;
        if (fac_layout_equal(&p->items[r->index].layout, &item.layout, &item.value->type.dims)) return i;
    }
    if (!fac_reserve(&p->items, &p->room_items, (size_t)p->nitems + 1, sizeof *p->items)) {
        fac_raise(s->err, FAC_E_NOMEM, "no memory for a plan of %d prepared values", p->nitems);
        return -1;
    }
    p->items[p->nitems] = item;
    return root_new(s, (fac_root){ .kind = FAC_ROOT_PREPARED, .index = p->nitems++, .bytes = item.bytes });
}

/* In the plan's memory, where solvers may keep it. */
static fac_problem *problem_new(schedule *s, const fac_node *node, int nin, int nout) {
    fac_arena *a = &s->plan->memory;
    fac_problem *p = fac_arena_alloc(a, 1, sizeof *p);
    fac_operand *o = fac_arena_alloc(a, (size_t)nin + (size_t)nout + 1, sizeof *o);
    if (!p || !o) {
        fac_raise(s->err, FAC_E_NOMEM, "no memory for a plan");
        return NULL;
    }
    *p = (fac_problem){ node, s->plan->exact, nin, nout, o, o + nin };
    return p;
}

static fac_step *step_new(schedule *s, fac_problem *problem, const fac_solver *solver, void *plan) {
    fac_plan *p = s->plan;
    size_t n = (size_t)problem->nin + (size_t)problem->nout;
    fac_slot *slots = fac_arena_alloc(&p->memory, n + 1, sizeof *slots);
    if (!slots || !fac_reserve(&p->steps, &p->room_steps, (size_t)p->nsteps + 1, sizeof *p->steps)) {
        fac_raise(s->err, FAC_E_NOMEM, "no memory for a plan of %d steps", p->nsteps);
        return NULL;
    }
    fac_step *step = &p->steps[p->nsteps];
    *step = (fac_step){ .solver = solver, .plan = plan, .problem = problem, .in = slots, .out = slots + problem->nin, .work = -1 };
    for (size_t i = 0; i < n; i++) slots[i].root = -1;
    if ((int)n > p->most) p->most = (int)n;
    s->now = p->nsteps++;           /* counted from now on, so that its plan is freed whatever happens */
    return step;
}

/* The step is complete: its operands count as used now. */
static fac_status step_done(schedule *s, fac_step *step, size_t work) {
    fac_plan *p = s->plan;
    const fac_problem *q = step->problem;
    const int index = (int)(step - p->steps);
    if (work) {
        int root = root_new(s, (fac_root){ .kind = FAC_ROOT_ARENA, .bytes = work });
        if (root < 0) return FAC_E_NOMEM;
        step->work = root;
    }
    for (int i = 0; i < q->nin; i++) {
        touch(p, step->in[i].root, index);
        if (step->in[i].root >= 0) step->bytes += (double)fac_type_bytes(&q->in[i].type);
    }
    for (int k = 0; k < q->nout; k++) {
        touch(p, step->out[k].root, index);
        if (step->out[k].root < 0) continue;
        step->halo |= step->out[k].layout.halo > 0;
        step->bytes += (double)fac_type_bytes(&q->out[k].type);
    }
    fac_cost cost = { 0 };
    char label[200] = "reorder";
    if (step->kind == FAC_STEP_RUN && q->node->op->cost && q->node->graph) q->node->op->cost(q->node, &cost);
    if (q->node->graph) fac_node_label(q->node, label, sizeof label);
    step->macs = cost.macs;
    step->label = fac_arena_text(&p->memory, label);
    s->now = p->nsteps;
    return step->label ? FAC_OK : fac_raise(s->err, FAC_E_NOMEM, "no memory for a plan");
}

/* ---- where values lie ---------------------------------------------------------------------------------------------------------- */

static int reads_of(const schedule *s, const fac_value *v) {
    int n = 0;
    for (const fac_use *u = v->uses; u; u = u->next) n++;
    const fac_graph *g = s->plan->graph;
    for (size_t i = 0; i < g->noutputs; i++) n += g->outputs[i].value == v;
    for (size_t i = 0; i < g->nparams; i++) n += g->params[i]->next == v;
    return n;
}

static void lay(schedule *s, const fac_value *v, int root, const fac_layout *layout) {
    s->at[v->id] = (where){ .slot = { root, *layout }, .set = true };
    s->plan->roots[root].pending += reads_of(s, v);
}

/* Inputs of the run and values made before it. */
static fac_status lay_early(schedule *s, const fac_value *v) {
    if (s->at[v->id].set) return FAC_OK;
    fac_layout plain = fac_layout_plain(&v->type.dims);
    int root;
    if (v->leaf == FAC_INPUT) {
        int index = 0;
        while (index < (int)s->original->ninputs && strcmp(s->original->inputs[index]->name, v->name)) index++;
        root = root_new(s, (fac_root){ .kind = FAC_ROOT_INPUT, .index = index, .bytes = fac_type_bytes(&v->type) });
    } else if (v->tensor && fac_tensor_contiguous(v->tensor) && s->plan->device->backend->host) {
        root = root_new(s, (fac_root){ .kind = FAC_ROOT_TENSOR, .tensor = v->tensor, .bytes = fac_type_bytes(&v->type) });
    } else {
        root = item_root(s, (fac_item){ .value = v, .layout = plain, .bytes = fac_type_bytes(&v->type) });
    }
    if (root < 0) return FAC_E_NOMEM;
    lay(s, v, root, &plain);
    return FAC_OK;
}

/* A layout that is blocked only in name (one pixel planes, whole blocks, no halo) is plain. */
static void settle(fac_layout *l, const fac_dims *d) {
    if (!l->block || l->halo || d->d[l->axis] % l->block) return;
    fac_layout plain = fac_layout_plain(d);
    for (int k = l->axis + 1; k < d->n; k++) if (d->d[k] != 1) return;
    if (l->stride[l->axis] != l->block && d->d[l->axis] > l->block) return;
    for (int k = 0; k < l->axis; k++) if (d->d[k] != 1 && l->stride[k] != plain.stride[k]) return;
    plain.offset = l->offset;
    *l = plain;
}

/* A step that copies v into another layout, and a note of where that copy lies. */
static fac_status reorder(schedule *s, const fac_value *v, const fac_layout *want, fac_slot *out) {
    static const fac_node identity = { .op = &fac_op_identity, .nin = 1, .nout = 1, .nports = 1 };
    fac_plan *p = s->plan;
    where *w = &s->at[v->id];
    copy *c = fac_arena_alloc(&p->memory, 1, sizeof *c);
    fac_problem *q = problem_new(s, &identity, 1, 1);
    if (!c || !q) return fac_raise(s->err, FAC_E_NOMEM, "no memory for a plan");
    const fac_operand from = { .type = v->type, .layout = w->slot.layout, .time = FAC_RUN };
    const fac_operand to = { .type = v->type, .layout = *want, .time = FAC_RUN };
    q->in[0] = from;
    q->out[0] = to;
    fac_offer offer = { 0 };
    const fac_solver *solver = fac_choose(p, q, &offer, s->err);
    if (!solver) return FAC_E_UNSUPPORTED;
    if (!fac_layout_equal(&q->in[0].layout, &from.layout, &v->type.dims) || !fac_layout_equal(&q->out[0].layout, want, &v->type.dims)) {
        /* it would rather copy something else: the reference copies anything */
        q->in[0] = from;
        q->out[0] = to;
        solver = &fac_solver_ref;
        if (!solver->offer(p->device, q, &offer)) return fac_raise(s->err, FAC_E_INTERNAL, "no reorder");
    }
    void *plan = NULL;
    FAC_TRY(solver->make(p->device, q, &plan, s->err));
    fac_step *step = step_new(s, q, solver, plan);
    if (!step) {
        if (plan && solver->done) solver->done(p->device, plan);
        return FAC_E_NOMEM;
    }
    step->in[0] = w->slot;
    *out = (fac_slot){ arena_root(s, &v->type, want), *want };
    step->out[0] = *out;
    FAC_TRY(step_done(s, step, offer.work));
    if (out->root < 0) return FAC_E_NOMEM;
    *c = (copy){ w->copies, *out };
    w->copies = c;
    return FAC_OK;
}

/* v in this layout, by a reorder step or, before the run, by an item. */
static fac_status slot_in(schedule *s, const fac_value *v, const fac_layout *want, fac_slot *out) {
    where *w = &s->at[v->id];
    if (fac_layout_equal(&w->slot.layout, want, &v->type.dims)) {
        *out = w->slot;
        return FAC_OK;
    }
    if (v->time != FAC_RUN) {
        out->layout = *want;
        out->root = item_root(s, (fac_item){ .value = v, .layout = *want, .bytes = fac_layout_bytes(want, &v->type) });
        return out->root < 0 ? FAC_E_NOMEM : FAC_OK;
    }
    for (copy *c = w->copies; c; c = c->next)
        if (fac_layout_equal(&c->slot.layout, want, &v->type.dims)) {
            *out = c->slot;
            return FAC_OK;
        }
    return reorder(s, v, want, out);
}

/* ---- one node ---------------------------------------------------------------------------------------------------------------------- */

static unsigned port_flags(const fac_node *n, int i) {
    int k = 0;
    if (i >= n->nports) return 0;
    while (k < i && n->op->in[k + 1].name) k++;
    return n->op->in[k].is;
}

static bool unread(const fac_node *n, int i) {
    unsigned is = port_flags(n, i);
    return (is & FAC_SHAPE_ONLY) || ((is & FAC_HOST) && n->in[i]->known);
}

static void read_done(schedule *s, const fac_node *n) {
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && s->at[n->in[i]->id].set) s->plan->roots[s->at[n->in[i]->id].slot.root].pending--;
}

/* No data moves: the outputs lie in the input's root.  False when data must move. */
static bool as_view(schedule *s, const fac_node *n) {
    enum { VIEWS = 64 };
    const fac_value *x = n->nin ? n->in[0] : NULL;
    fac_layout out[VIEWS], in;
    if (!n->op->view || n->body[0] || !x || n->nout > VIEWS || s->plan->observed) return false;
    in = s->at[x->id].slot.layout;
    settle(&in, &x->type.dims);
    if (in.block) {
        /* only what keeps the shape can be a view of a blocked value */
        if (n->nout != 1 || !fac_dims_equal(&x->type.dims, &n->out[0]->type.dims) || !(n->op == &fac_op_identity || n->op == &fac_op_stop)) return false;
        out[0] = in;
    } else {
        for (int k = 0; k < n->nout; k++) out[k] = fac_layout_plain(&n->out[k]->type.dims);
        if (!n->op->view(n, &in, out)) return false;
    }
    int root = s->at[x->id].slot.root;
    for (int k = 0; k < n->nout; k++) lay(s, n->out[k], root, &out[k]);
    read_done(s, n);
    return true;
}

/* The root of an input that dies here, lies as the output would and may be written over; else -1. */
static int in_place(schedule *s, const fac_node *n, const fac_step *step) {
    const fac_problem *q = step->problem;
    const fac_operand *y = &q->out[0];
    if (!(n->op->is & FAC_OP_INPLACE) || s->plan->no_inplace || s->plan->observed) return -1;
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i] || step->in[i].root < 0) continue;
        const fac_operand *x = &q->in[i];
        int root = step->in[i].root;
        const fac_root *r = &s->plan->roots[root];
        if (r->kind != FAC_ROOT_ARENA || r->pending != 0 || root != s->at[n->in[i]->id].slot.root || x->type.dtype != y->type.dtype) continue;
        if (!fac_dims_equal(&x->type.dims, &y->type.dims) || !fac_layout_equal(&x->layout, &y->layout, &y->type.dims)) continue;
        if (r->bytes < fac_layout_bytes(&y->layout, &y->type)) continue;
        bool other = false;         /* another operand in the same root would be read after it was written */
        for (int j = 0; j < n->nin; j++)
            other |= j != i && n->in[j] && step->in[j].root == root && !fac_layout_equal(&q->in[j].layout, &x->layout, &y->type.dims);
        if (!other) return root;
    }
    return -1;
}

enum { PACKED = 4 };        /* inputs that fac_offer.packed has room for */

static bool is_packed(const fac_node *n, const fac_offer *offer, int i) { return i < PACKED && n->in[i] && offer->packed[i]; }

/* A packed input: before the run for parameters, as a step of each run for what this program changes. */
static fac_status pack_input(schedule *s, const fac_node *n, int i, const fac_solver *solver, void *plan, size_t bytes, fac_slot *out) {
    fac_layout plain = fac_layout_plain(&n->in[i]->type.dims);
    fac_slot from;
    FAC_TRY(slot_in(s, n->in[i], &plain, &from));
    fac_problem *q = problem_new(s, n, 1, 1);
    fac_step *step = q ? step_new(s, q, solver, plan) : NULL;
    if (!step) return FAC_E_NOMEM;
    step->kind = FAC_STEP_PACK;
    step->input = i;
    q->in[0] = (fac_operand){ n->in[i]->type, plain, FAC_RUN, NULL };
    step->in[0] = from;
    step->out[0].root = out->root = root_new(s, (fac_root){ .kind = FAC_ROOT_ARENA, .bytes = bytes });
    return out->root < 0 ? FAC_E_NOMEM : step_done(s, step, 0);
}

/* Where every input of an accepted problem lies, after the reorders and packs that it takes. */
static fac_status bring_inputs(schedule *s, const fac_node *n, const fac_problem *q, const fac_offer *offer, const fac_solver *solver,
                               void *plan, fac_slot *in) {
    for (int i = 0; i < n->nin; i++) {
        in[i].root = -1;
        if (!n->in[i] || unread(n, i)) continue;
        if (!is_packed(n, offer, i)) FAC_TRY(slot_in(s, n->in[i], &q->in[i].layout, &in[i]));
        else if (n->in[i]->time == FAC_RUN) FAC_TRY(pack_input(s, n, i, solver, plan, offer->packed[i], &in[i]));
    }
    for (int i = 0; i < n->nin; i++) {      /* last: an item names the step it belongs to, which is the next one */
        if (!is_packed(n, offer, i) || n->in[i]->time == FAC_RUN) continue;
        const fac_item item = { n->in[i], solver, s->plan->nsteps, i, fac_layout_plain(&n->in[i]->type.dims), offer->packed[i] };
        in[i].root = item_root(s, item);
        if (in[i].root < 0) return FAC_E_NOMEM;
    }
    return FAC_OK;
}

static fac_status schedule_node(schedule *s, const fac_node *n) {
    fac_plan *p = s->plan;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && (n->in[i]->time != FAC_RUN || n->in[i]->leaf != FAC_NOT_LEAF)) FAC_TRY(lay_early(s, n->in[i]));
    if (as_view(s, n)) return FAC_OK;

    fac_problem *q = problem_new(s, n, n->nin, n->nout);
    fac_slot *in = fac_arena_alloc(&p->memory, (size_t)n->nin + 1, sizeof *in);
    if (!q || !in) return fac_raise(s->err, FAC_E_NOMEM, "no memory for a plan");
    for (int i = 0; i < n->nin; i++) {
        const fac_value *v = n->in[i];
        if (!v) continue;
        q->in[i] = (fac_operand){ v->type, s->at[v->id].slot.layout, v->time, v->known };
        settle(&q->in[i].layout, &v->type.dims);
    }
    for (int k = 0; k < n->nout; k++) {
        const fac_value *v = n->out[k];
        if (k > 0 && !reads_of(s, v)) continue;             /* unused: costs nothing */
        q->out[k] = (fac_operand){ v->type, fac_layout_plain(&v->type.dims), FAC_RUN, NULL };
        q->out[k].layout.halo = s->wish[v->id];
    }
    fac_offer offer = { 0 };
    void *plan = NULL;
    const fac_solver *solver = fac_choose(p, q, &offer, s->err);
    if (!solver) return FAC_E_UNSUPPORTED;
    FAC_TRY(solver->make(p->device, q, &plan, s->err));
    fac_status status = bring_inputs(s, n, q, &offer, solver, plan, in);
    fac_step *step = status ? NULL : step_new(s, q, solver, plan);
    if (!step) {
        if (plan && solver->done) solver->done(p->device, plan);
        return status ? status : FAC_E_NOMEM;
    }
    for (int i = 0; i < n->nin; i++) step->in[i] = in[i];
    read_done(s, n);
    for (int k = 0; k < n->nout; k++) {
        if (q->out[k].type.dtype == FAC_NONE) continue;
        const fac_layout *layout = &q->out[k].layout;
        int root = k == 0 ? in_place(s, n, step) : -1;
        if (root >= 0) p->values_bytes += p->roots[root].bytes;
        else root = arena_root(s, &n->out[k]->type, layout);
        if (root < 0) return FAC_E_NOMEM;
        step->out[k] = (fac_slot){ root, *layout };
        lay(s, n->out[k], root, layout);
    }
    return step_done(s, step, offer.work);
}

/* ---- results --------------------------------------------------------------------------------------------------------------------- */

/* The output's own root becomes the caller's memory when it holds nothing but that result. */
static bool direct(schedule *s, int index, const fac_slot *slot, const fac_type *type) {
    fac_root *r = &s->plan->roots[slot->root];
    if (r->kind != FAC_ROOT_ARENA || slot->layout.offset || !plain_here(&slot->layout, type) || r->bytes != fac_type_bytes(type)) return false;
    r->kind = FAC_ROOT_OUTPUT;
    r->index = index;
    return true;
}

static fac_status finish(schedule *s) {
    fac_plan *p = s->plan;
    const fac_graph *g = p->graph;
    p->outputs = fac_arena_alloc(&p->memory, g->noutputs + 1, sizeof *p->outputs);
    p->updates = fac_arena_alloc(&p->memory, g->nparams + 1, sizeof *p->updates);
    if (!p->outputs || !p->updates) return fac_raise(s->err, FAC_E_NOMEM, "no memory for a plan");
    for (size_t i = 0; i < g->noutputs; i++) {
        fac_value *v = g->outputs[i].value;
        FAC_TRY(v->time != FAC_RUN || v->leaf == FAC_INPUT ? lay_early(s, v) : FAC_OK);
        p->outputs[i] = s->at[v->id].slot;
        settle(&p->outputs[i].layout, &v->type.dims);
        touch(p, p->outputs[i].root, p->nsteps);
        direct(s, (int)i, &p->outputs[i], &v->type);
    }
    for (size_t i = 0; i < g->nparams; i++) {
        fac_value *next = g->params[i]->next;
        p->updates[i].root = -1;
        if (!next) continue;
        FAC_TRY(next->time != FAC_RUN || next->leaf == FAC_INPUT ? lay_early(s, next) : FAC_OK);
        p->updates[i] = s->at[next->id].slot;
        touch(p, p->updates[i].root, p->nsteps);
    }
    return FAC_OK;
}

enum { WIDEST = 8 };

/* The padding that a node wants around its first input's planes. */
static int64_t padding(const fac_node *n) {
    int64_t widest = 0, kernel = 0;
    bool automatic = false;
    for (const fac_attr *a = n->op->attrs; a && a->name; a++) {
        const void *field = (const char *)n->attrs + a->at;
        if (!strcmp(a->name, "auto_pad")) automatic = *(const int *)field > 0;
        if (a->kind != FAC_A_INT || (strcmp(a->name, "pad") && strcmp(a->name, "kernel"))) continue;
        int64_t *to = *a->name == 'p' ? &widest : &kernel;
        for (int k = 0; k < a->count; k++)
            if (((const int64_t *)field)[k] > *to) *to = ((const int64_t *)field)[k];
    }
    if (automatic && n->nin > 1 && n->in[1])
        for (int k = 2; k < n->in[1]->type.dims.n; k++)
            if (n->in[1]->type.dims.d[k] > kernel) kernel = n->in[1]->type.dims.d[k];
    if (automatic && kernel / 2 > widest) widest = kernel / 2;      /* "same": at most that much on one side */
    return widest;
}

/* The halo that the readers of a value would like: the widest padding of a convolution or pool that reads it. */
static void wishes(schedule *s) {
    for (const fac_node *n = s->plan->graph->first; n; n = n->next) {
        if (!n->nin || !n->in[0] || n->in[0]->type.dims.n != 4) continue;
        int64_t pad = padding(n);
        if (pad > s->wish[n->in[0]->id] && pad <= WIDEST) s->wish[n->in[0]->id] = (int)pad;
    }
}

fac_status fac_plan_schedule(fac_plan *plan, const fac_graph *original, fac_error *err) {
    schedule s = { .plan = plan, .original = original, .err = err };
    s.at = fac_alloc(plan->graph->ids + 1, sizeof *s.at);
    s.wish = fac_alloc(plan->graph->ids + 1, sizeof *s.wish);
    fac_status status = s.at && s.wish ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "no memory for a plan");
    if (!status) wishes(&s);
    for (const fac_node *n = plan->graph->first; n && !status; n = n->next)
        if (n->out[0]->time == FAC_RUN) {
            status = schedule_node(&s, n);
            char label[200];
            if (status) fac_raise_in(err, status, "%s", fac_node_label(n, label, sizeof label));
        }
    if (!status) status = finish(&s);
    fac_release(s.at);
    fac_release(s.wish);
    return status;
}
