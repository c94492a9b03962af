/* Hooks and observers: they see the tensors of each node that has run, and a hook may put others in
 * their place.
 *
 * Every node of such a plan is a step whose results have memory of their own, in whatever layout
 * its solver chose.  What is put there after the step is what all later steps read (reorders and
 * packs included, which are steps before their reader). Bodies of loops and branches are programs
 * of their own (flow.c): a frame knows which ones it runs within. */
#include "base/error.h"
#include "base/memory.h"
#include "plan/plan.h"
#include "backends/transfer.h"
#include "run/run.h"
#include "tensor/tensor_internal.h"

struct fac_hooked {
    const fac_plan *plan;
    const fac_frame *frame;
    const fac_step *step;
    fac_tensor **held;   /* inputs and outputs, as far as somebody has asked for them; then what
                            outputs became */
    fac_text name, path; /* inside of bodies */
};

/* ---- names ---- */

bool fac_name_nodes(fac_graph *g) {
    for (fac_node *n = g->first; n; n = n->next) {
        char label[256];
        if (n->name) continue;
        if (!(n->name = fac_arena_text(&g->arena, fac_node_label(n, label, sizeof label))))
            return false;
        if (n->op->is & FAC_OP_FLOW) n->scope = NULL; /* what is inlined stands in scope and name */
    }
    return true;
}

static void say_within(fac_hooked *h, const fac_within *w) {
    if (!w) return;
    say_within(h, w->outer);
    fac_text_print(&h->name, "%s.", w->name);
    fac_text_print(&h->path, "%s.", w->name);
    if (w->iteration >= 0) fac_text_print(&h->path, "%lld.", (long long)w->iteration);
}

const char *fac_hooked_name(const fac_hooked *h) { return h->name.s ? h->name.s : h->step->label; }
const char *fac_hooked_path(const fac_hooked *h) { return h->path.s ? h->path.s : h->step->label; }

int64_t fac_hooked_iteration(const fac_hooked *h, int loop) {
    for (const fac_within *w = h->frame->within; w; w = w->outer)
        if (w->iteration >= 0 && loop-- == 0) return w->iteration;
    return -1;
}

/* ---- tensors ---- */

static fac_status fetch(const fac_hooked *h, const fac_type *type, const fac_slot *from,
                        fac_tensor **out, fac_error *err) {
    fac_tensor *t;
    void *data;
    FAC_TRY(fac_tensor_new_on(NULL, NULL, *type, true, &t, err));
    fac_status status = fac_tensor_begin_write(t, &data, err);
    if (!status)
        status =
            fac_fetch(h->plan->device, type, h->frame->roots[from->root], &from->layout, data, err);
    if (status)
        fac_tensor_free(t);
    else
        *out = t;
    return status;
}

/* Of operand `place`: fetched once a call. */
static fac_status hold(fac_hooked *h, int place, const fac_type *type, const fac_slot *from,
                       const fac_tensor **out, fac_error *err) {
    if (!h->held[place]) FAC_TRY(fetch(h, type, from, &h->held[place], err));
    *out = h->held[place];
    return FAC_OK;
}

const fac_node *fac_hooked_node(const fac_hooked *h) { return h->step->problem->node; }

fac_status fac_hooked_input(fac_hooked *h, int i, const fac_tensor **out, fac_error *err) {
    const fac_node *n = fac_hooked_node(h);
    if (i < 0 || i >= n->nin)
        return fac_raise(err, FAC_E_ARGUMENT, "%s has no input %d", h->step->label, i);
    const fac_value *v = n->in[i];
    if (v && !v->tensor && h->step->from[i].root >= 0)
        return hold(h, i, &v->type, &h->step->from[i], out, err);
    *out = v ? v->tensor : NULL;
    return FAC_OK;
}

static fac_status check_output(const fac_hooked *h, int k, fac_error *err) {
    if (k >= 0 && k < fac_hooked_node(h)->nout) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "%s has no output %d", h->step->label, k);
}

fac_status fac_hooked_output(fac_hooked *h, int k, const fac_tensor **out, fac_error *err) {
    const fac_problem *q = h->step->problem;
    FAC_TRY(check_output(h, k, err));
    *out = h->held[q->nin + q->nout + k];
    if (*out) return FAC_OK;
    if (h->step->out[k].root >= 0)
        return hold(h, q->nin + k, &q->out[k].type, &h->step->out[k], out, err);
    return FAC_OK;
}

fac_status fac_hooked_replace(fac_hooked *h, int k, const fac_tensor *with, fac_error *err) {
    const fac_problem *q = h->step->problem;
    fac_tensor *plain;
    FAC_TRY(check_output(h, k, err));
    const fac_slot *to = &h->step->out[k];
    const fac_type *want = &q->node->out[k]->type, have = fac_tensor_type(with);
    if (have.dtype != want->dtype || !fac_dims_equal(&have.dims, &want->dims))
        return fac_raise(err, FAC_E_SHAPE,
                         "output %d of %s cannot become a tensor of another type or size", k,
                         h->step->label);
    if (want->dtype == FAC_TEXT)
        return fac_raise(err, FAC_E_UNSUPPORTED, "texts of %s cannot be replaced", h->step->label);
    if (to->root < 0) return FAC_OK; /* nothing reads it */
    FAC_TRY(fac_tensor_copy_contiguous(with, &plain, err));
    fac_status status = fac_store(h->plan->device, want, fac_tensor_data(plain),
                                  h->frame->roots[to->root], &to->layout, err);
    fac_tensor **held = &h->held[q->nin + q->nout + k];
    fac_tensor_free(status ? plain : *held);
    if (!status) *held = plain;
    return status;
}

/* ---- the calls ---- */

static fac_status observe(fac_hooked *h, const fac_program_opts *o, fac_error *err) {
    const fac_step *s = h->step;
    for (int k = 0; k < s->problem->nout; k++) {
        const fac_tensor *t;
        const char *name = s->problem->node->out[k]->name;
        FAC_TRY(fac_hooked_output(h, k, &t, err));
        if (t &&
            !o->observe(o->observe_self, name && !h->frame->within ? name : fac_hooked_name(h), t))
            return fac_raise(err, FAC_E_ARGUMENT, "stopped by the observer after %s", s->label);
    }
    return FAC_OK;
}

fac_status fac_call_hooks(const fac_plan *plan, const fac_frame *f, const fac_step *s,
                          const fac_program_opts *o, fac_error *err) {
    const int n = s->problem->nin + 2 * s->problem->nout;
    if (s->kind != FAC_STEP_RUN || !s->problem->node->graph)
        return FAC_OK; /* a step of the planner's own */
    fac_hooked h = {
        .plan = plan, .frame = f, .step = s, .held = fac_alloc((size_t)n + 1, sizeof *h.held)
    };
    say_within(&h, f->within);
    if (f->within) fac_text_add(&h.name, s->label), fac_text_add(&h.path, s->label);
    const bool room = h.held && !h.name.failed && !h.path.failed;
    fac_status status =
        room ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "no memory to look at %s", s->label);
    if (!status && o->hook) status = o->hook(o->hook_self, &h, err);
    if (!status && o->observe) status = observe(&h, o, err);
    for (int i = 0; h.held && i < n; i++) fac_tensor_free(h.held[i]);
    fac_release(h.held);
    fac_text_free(&h.name);
    fac_text_free(&h.path);
    return status;
}
