/* Relays: consecutive steps that the backend does in one launch, level by level (fac_relay).
 *
 * The level of a step is above those of all earlier steps of its relay that it conflicts with: one
 * of the two writes memory that the other one reads or writes.  Slices of an image's channels, as
 * the parts of a concat are, do not conflict.  Steps are put in the order of their levels, and what
 * they touch lives for whole levels: then the arena lets no step of a level write where another one
 * of it reads or writes.
 *
 * The last reader in the order of the nodes may have a low level, and the first writer a high one,
 * so lives are found anew from all steps of the relay.  Where a root begins or ends for another
 * reason than these steps, it lives for the whole relay. */
#include <limits.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "plan/plan.h"

/* That a step of the relay at hand reads or writes a root. */
typedef struct use {
    int root, step, level; /* step: its number before */
    bool written;
    const fac_slot *slot; /* NULL: scratch */
    const fac_type *type;
    int next; /* an earlier one of the same memory, counted from 1; 0: none */
} use;

typedef struct planner {
    fac_plan *plan;
    use *uses;
    int nuses;
    int *last;           /* by memory: its last use in the relay at hand, counted from 1 */
    bool *held;          /* by root: a step that is aside needs it */
    int *level, *number; /* by step: its level; its new number */
    int *begin; /* by level of the relay at hand: its first step; one more after the last level */
    fac_step *moved; /* room for the steps of a relay */
    fac_error *err;
} planner;

/* ---- who conflicts with whom ---- */

/* Inputs, outputs, scratch; false: it is absent. */
static bool use_of(const fac_plan *p, int step, int k, use *to) {
    const fac_step *s = &p->steps[step];
    const fac_problem *q = s->problem;
    const bool in = k < q->nin, work = k == q->nin + q->nout;
    if (work) {
        *to = (use){ s->work, step, 0, true, NULL, NULL, 0 };
    } else {
        const fac_slot *slot = in ? &s->in[k] : &s->out[k - q->nin];
        const fac_operand *operand = in ? &q->in[k] : &q->out[k - q->nin];
        *to = (use){ slot->root, step, 0, !in, slot, &operand->type, 0 };
    }
    return to->root >= 0;
}

/* What may be the same memory has the same number: a caller may give one tensor as input and
 * output.  What a stage leaves is a part of a root that only the next stage reads. */
static int memory_of(const fac_plan *p, int root) {
    const fac_root_kind kind = p->roots[root].kind;
    return kind == FAC_ROOT_INPUT || kind == FAC_ROOT_OUTPUT ? p->nroots : root;
}

/* Other channels of the same image, whose pixels are a multiple of the strides: the channels of
 * either stay within a pixel. */
static bool are_slices(const use *x, const use *y) {
    if (!x->slot || !y->slot || x->type->dtype != y->type->dtype) return false;
    const fac_layout *a = &x->slot->layout, *b = &y->slot->layout;
    const fac_dims *d = &x->type->dims, *e = &y->type->dims;
    if (d->n < 3 || e->n != d->n || a->block || b->block || a->halo || b->halo) return false;
    if (a->stride[1] != 1 || b->stride[1] != 1 ||
        fac_dtype_get(x->type->dtype)->block_elements != 1)
        return false;
    const int64_t pixel = a->stride[d->n - 1];
    for (int k = 0; k < d->n; k++)
        if (k != 1 && (a->stride[k] != b->stride[k] || pixel <= 0 || a->stride[k] % pixel))
            return false;
    const int64_t i = a->offset % pixel, j = b->offset % pixel;
    if (i + d->d[1] > pixel || j + e->d[1] > pixel) return false;
    return i + d->d[1] <= j || j + e->d[1] <= i;
}

/* x and y: of one memory. */
static bool conflict(const fac_plan *p, const use *x, const use *y) {
    if (!x->written && !y->written) return false;
    if (x->root == y->root) return !are_slices(x, y);
    return p->roots[x->root].kind != FAC_ROOT_OUTPUT || p->roots[y->root].kind != FAC_ROOT_OUTPUT;
}

/* The level of the next step of the relay, after all that were asked for before. */
static int find_level(planner *r, int step) {
    const fac_plan *p = r->plan;
    const int n = p->steps[step].problem->nin + p->steps[step].problem->nout + 1, before = r->nuses;
    int level = 0;
    for (int k = 0; k < n; k++) {
        use *u = &r->uses[r->nuses];
        if (!use_of(p, step, k, u)) continue;
        r->nuses++;
        for (int i = r->last[memory_of(p, u->root)]; i; i = r->uses[i - 1].next)
            if (r->uses[i - 1].level >= level && conflict(p, u, &r->uses[i - 1]))
                level = r->uses[i - 1].level + 1;
    }
    for (int i = before; i < r->nuses; i++) {
        int *last = &r->last[memory_of(p, r->uses[i].root)];
        r->uses[i].level = level;
        r->uses[i].next = *last;
        *last = i + 1;
    }
    return level;
}

/* ---- the order of the levels ---- */

/* The life of a root that begins or ends in the relay. */
static void find_life(const planner *r, int root, int first, int n) {
    fac_root *x = &r->plan->roots[root];
    const int end = first + n;
    const bool begins = x->first >= first && x->first < end,
               ends = x->last >= first && x->last < end;
    int lowest = INT_MAX, highest = -1, earliest = INT_MAX, latest = -1;
    if (begins && !x->used) {
        x->first = x->last = first;
        return;
    }
    for (int i = x->kind == FAC_ROOT_ARENA ? r->last[root] : 0; i; i = r->uses[i - 1].next) {
        const use *u = &r->uses[i - 1];
        if (u->level < lowest) lowest = u->level;
        if (u->level > highest) highest = u->level;
        if (u->step < earliest) earliest = u->step;
        if (u->step > latest) latest = u->step;
    }
    if (begins) x->first = x->first == earliest ? r->begin[lowest] : first;
    if (ends) x->last = x->last == latest && !r->held[root] ? r->begin[highest + 1] - 1 : end - 1;
}

/* A step that meets what is aside can only be the first: the relay does so whatever comes first
 * then. */
static void put_in_order(planner *r, int first, int n, int levels) {
    fac_plan *p = r->plan;
    fac_step *steps = &p->steps[first];
    const bool meet = steps->meet;
    int at = first;
    for (int l = 0; l < levels; l++) {
        r->begin[l] = at;
        for (int i = first; i < first + n; i++)
            if (r->level[i] == l) r->number[i] = at++;
    }
    r->begin[levels] = at;
    for (int i = 0; i < p->nroots; i++) find_life(r, i, first, n);
    steps->meet = false;
    for (int i = 0; i < n; i++) r->moved[r->number[first + i] - first] = steps[i];
    memcpy(steps, r->moved, (size_t)n * sizeof *steps);
    steps->meet = meet;
}

static fac_status form(planner *r, int first, int n) {
    fac_plan *p = r->plan;
    fac_relayed *to = fac_arena_alloc(&p->memory, 1, sizeof *to);
    fac_relay_job *jobs = fac_arena_alloc(&p->memory, (size_t)n, sizeof *jobs);
    int levels = 0, at = 0;
    if (!to || !jobs) return fac_raise_memory(r->err, "a plan");
    r->nuses = 0;
    memset(r->last, 0, ((size_t)p->nroots + 1) * sizeof *r->last);
    for (int i = first; i < first + n; i++) {
        r->level[i] = find_level(r, i);
        if (r->level[i] >= levels) levels = r->level[i] + 1;
    }
    put_in_order(r, first, n, levels);
    for (int i = 0, level = 0; i < n; i++) {
        fac_step *s = &p->steps[first + i];
        const fac_problem *q = s->problem;
        if (first + i == r->begin[level + 1]) level++;
        jobs[i] = (fac_relay_job){ s->solver, s->plan, level, at, q->nin, q->nout };
        at += q->nin + q->nout + 1;
        s->relay = to;
    }
    *to = (fac_relayed){ .first = first, .n = n, .jobs = jobs };
    if (at > p->most) p->most = at;
    return FAC_OK;
}

/* ---- which steps are a relay ---- */

static bool takes(const fac_plan *p, const fac_step *s) {
    return s->kind == FAC_STEP_RUN && p->device->backend->relay->takes(s->solver);
}

/* Something has to be done before or after it. */
static bool alone(const fac_plan *p, const fac_step *s) {
    return p->observed || s->aside || s->halo;
}

/* How many steps from the first on go together; 0: the first one is no relay. */
static int count(const fac_plan *p, int first, int end) {
    const fac_step *s = &p->steps[first];
    if (!takes(p, s)) return 0;
    const int rest = end - first, most = p->device->backend->relay->most;
    int n = 1;
    while (!alone(p, s) && n < rest && n < most && takes(p, &s[n]) && !alone(p, &s[n]) &&
           !s[n].meet)
        n++;
    return n;
}

/* What runs aside may still read what other steps have read for the last time. */
static void find_held(planner *r) {
    const fac_plan *p = r->plan;
    for (int i = 0; i < p->nsteps; i++) {
        r->number[i] = i;
        use u;
        for (int k = 0;
             p->steps[i].aside && k <= p->steps[i].problem->nin + p->steps[i].problem->nout; k++)
            if (use_of(p, i, k, &u)) r->held[u.root] = true;
    }
}

fac_status fac_plan_relays(fac_plan *p, fac_error *err) {
    if (!p->device->backend->relay) return FAC_OK;
    const size_t steps = (size_t)p->nsteps + 2, roots = (size_t)p->nroots + 1;
    size_t uses = 1;
    for (int i = 0; i < p->nsteps; i++)
        uses += (size_t)(p->steps[i].problem->nin + p->steps[i].problem->nout + 1);
    planner r = { .plan = p,
                  .err = err,
                  .uses = fac_alloc(uses, sizeof *r.uses),
                  .last = fac_alloc(roots, sizeof *r.last),
                  .held = fac_alloc(roots, sizeof *r.held),
                  .level = fac_alloc(steps, sizeof *r.level),
                  .number = fac_alloc(steps, sizeof *r.number),
                  .begin = fac_alloc(steps, sizeof *r.begin),
                  .moved = fac_alloc(steps, sizeof *r.moved) };
    const bool room = r.uses && r.last && r.held && r.level && r.number && r.begin && r.moved;
    fac_status status = room ? FAC_OK : fac_raise_memory(err, "a plan");
    if (!status) find_held(&r);
    for (int k = 0; k < p->nstages && !status; k++) {
        const int end = k + 1 < p->nstages ? p->stages[k + 1].first : p->nsteps;
        for (int i = p->stages[k].first, n; i < end && !status; i += n ? n : 1)
            if ((n = count(p, i, end)) > 0) status = form(&r, i, n);
    }
    for (int i = 0; i < p->nitems && !status; i++) p->items[i].step = r.number[p->items[i].step];
    fac_release(r.uses);
    fac_release(r.last);
    fac_release(r.held);
    fac_release(r.level);
    fac_release(r.number);
    fac_release(r.begin);
    fac_release(r.moved);
    return status;
}

fac_status fac_plan_make_relays(fac_plan *p, fac_error *err) {
    for (int i = 0; i < p->nsteps && !p->dry; i++) {
        fac_relayed *r = p->steps[i].relay;
        if (r && r->first == i)
            FAC_TRY(p->device->backend->relay->make(p->device, r->jobs, r->n, &r->plan, err));
    }
    return FAC_OK;
}
