/* The steps of a plan: for each node that has to run, in order, where its inputs lie, a solver, the
 * reorders that it wants, and where its outputs go: a view of an input, an input's own memory (in
 * place), or a root of their own. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/families.h"
#include "graph/attr.h"
#include "plan/schedule.h"

static bool unread(const fac_node *n, int i) {
    unsigned is = fac_port_flags(n, i);
    return (is & FAC_SHAPE_ONLY) || ((is & FAC_HOST) && n->in[i]->known);
}

static void read_done(fac_scheduler *s, const fac_node *n) {
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && s->at[n->in[i]->id].set)
            s->plan->roots[s->at[n->in[i]->id].slot.root].pending--;
}

/* No data moves: the outputs lie in the input's root.  False when data must move. */
static bool as_view(fac_scheduler *s, const fac_node *n) {
    enum { VIEWS = 64 };
    const fac_value *x = n->nin ? n->in[0] : NULL;
    fac_layout out[VIEWS], scratch[VIEWS], in;
    if (!n->op->view || n->body[0] || !x || n->nout > VIEWS || s->plan->observed) return false;
    in = s->at[x->id].slot.layout;
    fac_layout_settle(&in, &x->type.dims);
    if (in.block) {
        if (!fac_view_blocked(n, &in, out, scratch)) return false;
    } else {
        for (int k = 0; k < n->nout; k++) out[k] = fac_layout_plain(&n->out[k]->type.dims);
        if (!n->op->view(n, &in, out)) return false;
    }
    int root = s->at[x->id].slot.root;
    for (int k = 0; k < n->nout; k++) fac_lay(s, n->out[k], root, &out[k]);
    read_done(s, n);
    return true;
}

static bool is_packed(const fac_node *n, const fac_offer *offer, int i) {
    return i < FAC_OFFER_PACKED && n->in[i] && offer->packed[i];
}

/* A packed input: before the run for parameters, as a step of each run for what this program
 * changes. */
static fac_status pack_input(fac_scheduler *s, const fac_node *n, int i, const fac_solver *solver,
                             void *plan, size_t bytes, fac_slot *out) {
    fac_layout plain = fac_layout_plain(&n->in[i]->type.dims);
    fac_slot from;
    FAC_TRY(fac_slot_in(s, n->in[i], &plain, &from));
    fac_problem *q = fac_problem_new(s, n, 1, 1);
    fac_step *step = q ? fac_step_new(s, q, solver, plan) : NULL;
    if (!step) return FAC_E_NOMEM;
    step->kind = FAC_STEP_PACK;
    step->input = i;
    q->in[0] = (fac_operand){ n->in[i]->type, plain, FAC_RUN, NULL };
    step->in[0] = from;
    step->out[0].root = out->root =
        fac_root_new(s, (fac_root){ .kind = FAC_ROOT_ARENA, .bytes = bytes });
    return out->root < 0 ? FAC_E_NOMEM : fac_step_done(s, step, 0, false);
}

/* Where every input of an accepted problem lies, after the reorders and packs that it takes. */
static fac_status bring_inputs(fac_scheduler *s, const fac_node *n, const fac_problem *q,
                               const fac_offer *offer, const fac_solver *solver, void *plan,
                               fac_slot *in) {
    for (int i = 0; i < n->nin; i++) {
        in[i].root = -1;
        if (!n->in[i] || unread(n, i)) continue;
        if (!is_packed(n, offer, i))
            FAC_TRY(fac_slot_in(s, n->in[i], &q->in[i].layout, &in[i]));
        else if (n->in[i]->time == FAC_RUN)
            FAC_TRY(pack_input(s, n, i, solver, plan, offer->packed[i], &in[i]));
    }
    for (int i = 0; i < n->nin;
         i++) { /* last: an item names the step it belongs to, which is the next one */
        if (!is_packed(n, offer, i) || n->in[i]->time == FAC_RUN) continue;
        const fac_item item = { .value = n->in[i],
                                .solver = solver,
                                .step = s->plan->nsteps,
                                .input = i,
                                .layout = fac_layout_plain(&n->in[i]->type.dims),
                                .bytes = offer->packed[i] };
        in[i].root = fac_item_root(s, item);
        if (in[i].root < 0) return FAC_E_NOMEM;
    }
    return FAC_OK;
}

/* Lies somewhere without a step. */
static bool early_or_leaf(const fac_value *v) {
    return v->time != FAC_RUN || v->leaf != FAC_NOT_LEAF;
}

/* The operands of n as they are. */
static void describe(const fac_scheduler *s, const fac_node *n, fac_problem *q) {
    for (int i = 0; i < n->nin; i++) {
        const fac_value *v = n->in[i];
        if (!v) continue;
        q->in[i] = (fac_operand){ v->type, s->at[v->id].slot.layout, v->time, v->known };
        fac_layout_settle(&q->in[i].layout, &v->type.dims);
    }
    for (int k = 0; k < n->nout; k++) {
        const fac_value *v = n->out[k];
        if (k > 0 && !fac_reads_of(v)) continue; /* unused: costs nothing */
        q->out[k] = (fac_operand){ v->type, fac_layout_plain(&v->type.dims), FAC_RUN, NULL };
        q->out[k].layout.halo = s->wish[v->id];
    }
}

/* Would this reader rather have channels in blocks? */
static bool wants_blocks(const fac_node *n) {
    if (FAC_IS(n, max_pool2d) || FAC_IS(n, avg_pool2d) || FAC_IS(n, fused_conv)) return true;
    if (!FAC_IS(n, conv2d) && !FAC_IS(n, conv2d_max_pool)) return false;
    const int64_t groups = fac_attr_int(n, "groups", 1);
    return groups == 1 || groups == n->in[0]->type.dims.d[1];
}

/* A reorder: for a plain result when most of its readers want blocks, or for one that does not lie
 * as the whole graph would have it. */
static fac_layout_cost layout_cost_of(const fac_scheduler *s, const fac_node *n) {
    const fac_value *y = n->out[0],
                    *read = y->uses && fac_gathers(y->uses->node) ? y->uses->node->out[0] : y;
    int blocks = 0, plain = (int)y->roots, readers = 0;
    const fac_form form = s->form ? s->form[y->id] : FAC_FORM_ANY;
    fac_layout_cost cost = { .layout = fac_layout_plain(&y->type.dims) };
    if (form == FAC_FORM_LAST) cost.layout = fac_layout_channels_last(&y->type.dims);
    if (form) cost.seconds = fac_reorder_seconds(s->plan->device, &y->type);
    if (s->form || y->type.dims.n != 4) return cost;
    cost.blocked = true;
    for (const fac_use *u = read->uses; u; u = u->next) {
        blocks += wants_blocks(u->node);
        readers++;
    }
    plain += readers - blocks;
    if (blocks > plain) cost.seconds = fac_reorder_seconds(s->plan->device, &y->type);
    return cost;
}

/* A solver, its layouts in q; the first output as a slice of the concat that reads it, at *part, if
 * there is one and a solver writes there (else its root is -1). */
static fac_status choose(fac_scheduler *s, const fac_node *n, fac_problem *q, fac_offer *offer,
                         fac_slot *part, const fac_solver **solver) {
    const fac_value *y = n->out[0];
    fac_layout_cost cost = layout_cost_of(s, n);
    describe(s, n, q);
    FAC_TRY(fac_pick(s, q, &cost, offer, solver));
    part->root = -1;
    if (!fac_part_alike(s, y, &q->out[0].layout)) return FAC_OK;
    FAC_TRY(fac_part_slot(s, y, &q->out[0].layout, part));
    describe(s, n, q);
    q->out[0].layout = cost.layout = part->layout;
    FAC_TRY(fac_pick(s, q, &cost, offer, solver));
    if (fac_layout_equal(&q->out[0].layout, &part->layout, &y->type.dims)) return FAC_OK;
    part->root = -1;
    cost = layout_cost_of(s, n);
    describe(s, n, q);
    return fac_pick(s, q, &cost, offer, solver);
}

/* The root for output k: a dying input is reused in place, or a new root is made. */
static int root_for(fac_scheduler *s, const fac_node *n, const fac_step *step, int k) {
    const int root = fac_in_place(s, n, step, k);
    if (root < 0) return fac_arena_root(s, &n->out[k]->type, &step->problem->out[k].layout);
    s->plan->values_bytes += s->plan->roots[root].bytes;
    return root;
}

/* Hooks read inputs as they are, and after the step, so they must lie there as long. */
static fac_status keep_inputs(fac_scheduler *s, const fac_node *n, fac_step *step) {
    step->from = fac_arena_alloc(&s->plan->memory, (size_t)n->nin + 1, sizeof *step->from);
    if (!step->from) return fac_raise_memory(s->err, "a plan");
    for (int i = 0; i < n->nin; i++) {
        step->from[i].root = -1;
        if (!n->in[i] || unread(n, i) || n->in[i]->tensor) continue;
        step->from[i] = s->at[n->in[i]->id].slot;
        fac_root_touch(s->plan, step->from[i].root, (int)(step - s->plan->steps));
    }
    return FAC_OK;
}

static fac_status schedule_node(fac_scheduler *s, const fac_node *n) {
    fac_plan *p = s->plan;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && early_or_leaf(n->in[i])) FAC_TRY(fac_lay_early(s, n->in[i]));
    if (as_view(s, n)) return FAC_OK;
    if (fac_gathers(n)) {
        read_done(s, n);
        return fac_stage_end(s, n);
    }
    bool joined;
    FAC_TRY(fac_join_parts(s, n, &joined));
    if (joined) {
        read_done(s, n);
        return FAC_OK;
    }

    fac_problem *q = fac_problem_new(s, n, n->nin, n->nout);
    fac_slot *in = fac_arena_alloc(&p->memory, (size_t)n->nin + 1, sizeof *in);
    if (!q || !in) return fac_raise_memory(s->err, "a plan");
    fac_offer offer = { 0 };
    fac_slot part;
    void *plan = NULL;
    const fac_solver *solver = NULL;
    fac_status status = choose(s, n, q, &offer, &part, &solver);
    if (!status) status = fac_device_go_on(p->device, s->err);
    if (!status && !p->dry) status = fac_solver_make(solver, p->device, q, &offer, &plan, s->err);
    fac_offer_drop(&offer);
    if (!status) status = bring_inputs(s, n, q, &offer, solver, plan, in);
    fac_step *step = status ? NULL : fac_step_new(s, q, solver, plan);
    if (!step) {
        if (plan && solver->done) solver->done(p->device, plan);
        return status ? status : FAC_E_NOMEM;
    }
    step->estimate = offer.seconds;
    for (int i = 0; i < n->nin; i++) {
        step->in[i] = in[i];
        if (is_packed(n, &offer, i)) step->packed |= 1u << i;
    }
    read_done(s, n);
    if (p->observed) FAC_TRY(keep_inputs(s, n, step));
    for (int k = 0; k < n->nout; k++) {
        if (q->out[k].type.dtype == FAC_NONE) continue;
        const fac_layout *layout = &q->out[k].layout;
        const int root = k == 0 && part.root >= 0 ? part.root : root_for(s, n, step, k);
        if (root < 0) return FAC_E_NOMEM;
        step->out[k] = (fac_slot){ root, *layout };
        fac_lay(s, n->out[k], root, layout);
    }
    return fac_step_done(s, step, offer.work, offer.own);
}

/* ---- results ---- */

/* Results and updates leave the plan plain: a last reorder, by all threads, brings them there, and
 * may write where they go. */
static fac_status settle(fac_scheduler *s, const fac_value *v, fac_slot *out) {
    const fac_layout plain = fac_layout_plain(&v->type.dims);
    FAC_TRY(early_or_leaf(v) ? fac_lay_early(s, v) : FAC_OK);
    *out = s->at[v->id].slot;
    fac_layout_settle(&out->layout, &v->type.dims);
    if (fac_layout_is_plain(&out->layout, &v->type.dims)) return FAC_OK;
    return fac_slot_in(s, v, &plain, out);
}

/* The output's own root becomes the caller's memory when it holds nothing but that result. */
static bool direct(fac_scheduler *s, int index, const fac_slot *slot, const fac_type *type) {
    fac_root *r = &s->plan->roots[slot->root];
    if (r->kind != FAC_ROOT_ARENA || slot->layout.offset || r->bytes != fac_type_bytes(type))
        return false;
    if (!fac_layout_is_plain(&slot->layout, &type->dims)) return false;
    r->kind = FAC_ROOT_OUTPUT;
    r->index = index;
    return true;
}

static fac_status finish(fac_scheduler *s) {
    fac_plan *p = s->plan;
    const fac_graph *g = p->graph;
    p->outputs = fac_arena_alloc(&p->memory, g->noutputs + 1, sizeof *p->outputs);
    p->updates = fac_arena_alloc(&p->memory, g->nparams + 1, sizeof *p->updates);
    p->written = fac_arena_alloc(&p->memory, g->nparams + 1, sizeof *p->written);
    if (!p->outputs || !p->updates || !p->written) return fac_raise_memory(s->err, "a plan");
    for (size_t i = 0; i < g->noutputs; i++) {
        fac_value *v = g->outputs[i].value;
        FAC_TRY(settle(s, v, &p->outputs[i]));
        direct(s, (int)i, &p->outputs[i], &v->type);
    }
    for (size_t i = 0; i < g->nparams; i++) {
        fac_value *next = g->params[i]->next;
        p->updates[i].root = -1;
        if (!next) continue;
        FAC_TRY(settle(s, next, &p->updates[i]));
        fac_root *r = &p->roots[p->updates[i].root];
        p->written[i] = r->kind == FAC_ROOT_TENSOR && r->tensor == g->params[i]->tensor &&
                        fac_layout_is_plain(&p->updates[i].layout, &next->type.dims);
        r->written |= p->written[i];
        p->updating |= p->written[i];
        if (p->written[i])
            p->updates[i].root = -1;
        else
            p->copied_bytes += fac_type_bytes(&next->type);
    }
    /* all of them wait for the last step, which may be a reorder of one of them */
    for (size_t i = 0; i < g->noutputs; i++) fac_root_touch(p, p->outputs[i].root, p->nsteps);
    for (size_t i = 0; i < g->nparams; i++) fac_root_touch(p, p->updates[i].root, p->nsteps);
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
    if (automatic && kernel / 2 > widest)
        widest = kernel / 2; /* "same": at most that much on one side */
    return widest;
}

/* The halo that the readers of a value would like: the widest padding of a convolution that reads
 * it, or a part of its channels. Pools leave taps outside of an image out by their numbers. */
static void wishes(fac_scheduler *s) {
    for (const fac_node *n = s->plan->graph->last; n; n = n->prev) {
        if (!n->nin || !n->in[0] || n->in[0]->type.dims.n != 4) continue;
        int *wish = &s->wish[n->in[0]->id];
        if (n->op == &fac_op_slice || n->op == &fac_op_split || fac_gathers(n)) {
            for (int k = 0; k < n->nout; k++)
                if (s->wish[n->out[k]->id] > *wish) *wish = s->wish[n->out[k]->id];
        } else if (fac_op_convolves(n->op)) {
            int64_t pad = padding(n);
            if (pad > *wish && pad <= WIDEST) *wish = (int)pad;
        }
    }
}

fac_status fac_plan_schedule(fac_plan *plan, const fac_graph *original, fac_error *err) {
    fac_scheduler s = { .plan = plan, .original = original, .err = err };
    s.at = fac_alloc(plan->graph->ids + 1, sizeof *s.at);
    s.wish = fac_alloc(plan->graph->ids + 1, sizeof *s.wish);
    s.becomes = fac_alloc(plan->graph->ids + 1, sizeof *s.becomes);
    s.part = fac_alloc(plan->graph->ids + 1, sizeof *s.part);
    s.room = fac_alloc(plan->graph->ids + 1, sizeof *s.room);
    fac_status status = FAC_OK;
    if (!s.at || !s.wish || !s.becomes || !s.part || !s.room || !fac_becomes(&s))
        status = fac_raise_memory(err, "a plan");
    for (uint32_t i = 0; !status && i < plan->graph->ids; i++) s.room[i].root = -1;
    if (!status) {
        wishes(&s);
        fac_parts(&s);
        status = fac_forms(&s);
    }
    if (!status) status = fac_stages_begin(&s);
    for (const fac_node *n = plan->graph->first; n && !status; n = n->next) {
        char label[200];
        if (n->out[0]->time != FAC_RUN) continue;
        status = schedule_node(&s, n);
        if (status) fac_raise_in(err, status, "%s", fac_node_label(n, label, sizeof label));
    }
    if (!status) status = finish(&s);
    if (!status) status = fac_merge_packs(&s);
    fac_release(s.at);
    fac_release(s.wish);
    fac_release(s.becomes);
    fac_release(s.part);
    fac_release(s.room);
    fac_release(s.form);
    return status;
}
