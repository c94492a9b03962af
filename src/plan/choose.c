/* Which solver: the one whose own estimate plus the price of bringing its inputs into the layouts
 * it wants is least. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "backends/cpu/device/speed.h"
#include "base/error.h"
#include "base/memory.h"
#include "ref/ref.h"
#include "plan/plan.h"

enum { OPERANDS = 64 };

double fac_reorder_seconds(const fac_device *d, const fac_type *type) {
    if (d->backend->reorder) return d->backend->reorder(d, type);
    return fac_cpu_speeds.reorder + 2 * (double)fac_type_bytes(type) / fac_cpu_speeds.reordered;
}

/* Bringing an input from `have` to `want`; parameters are brought there before the run. */
static double reorder_seconds(const fac_device *d, const fac_operand *have,
                              const fac_operand *want) {
    if (have->type.dtype == FAC_NONE || have->time != FAC_RUN) return 0;
    if (fac_layout_equal(&have->layout, &want->layout, &have->type.dims)) return 0;
    return fac_reorder_seconds(d, &have->type);
}

static bool consider(fac_device *d, const fac_solver *s, int variant, const fac_problem *p,
                     fac_operand *trial, fac_offer *offer, double *seconds) {
    int n = p->nin + p->nout;
    memcpy(trial, p->in, (size_t)p->nin * sizeof *trial);
    memcpy(trial + p->nin, p->out, (size_t)p->nout * sizeof *trial);
    fac_problem q = *p;
    q.in = trial;
    q.out = trial + p->nin;
    q.variant = variant;
    if (!fac_solver_offer(s, d, &q, offer)) return false;
    *seconds = offer->seconds;
    for (int i = 0; i < p->nin; i++) *seconds += reorder_seconds(d, &p->in[i], &q.in[i]);
    for (int i = p->nin; i < n; i++)
        if (!trial[i].layout.block)
            trial[i].layout.halo = 0; /* the wish of readers; a plain result has none */
    return true;
}

static bool solves(const fac_solver *s, const fac_node *n) { return !s->op || s->op == n->op; }

bool fac_is_last_solver(const fac_device *d, const char *name) {
    return !strcmp(name, fac_solver_ref.name) || !strcmp(name, fac_last_solver(d)->name);
}

static const fac_solver *named(const fac_device *d, const char *name) {
    if (fac_is_last_solver(d, name)) return fac_last_solver(d);
    for (const fac_solver *const *s = d->backend->solvers; *s; s++)
        if (!strcmp(name, (*s)->name)) return *s;
    return NULL;
}

fac_status fac_solver_known(const fac_device *d, const char *name, fac_error *err) {
    return !name || named(d, name)
               ? FAC_OK
               : fac_raise(err, FAC_E_ARGUMENT, "%s has no solver \"%s\"", d->name, name);
}

static const fac_solver *find(const fac_device *d, const char *name, const fac_node *n) {
    const fac_solver *s = named(d, name);
    return s && solves(s, n) ? s : NULL;
}

/* The best offer so far, and room for the next. */
typedef struct contest {
    fac_operand *trial, *best_trial;
    const fac_solver *best;
    int variant;
    fac_offer offer;
    double least;
    bool lost; /* a solver had no memory for its draft */
    const fac_layout_cost *cost;
} contest;

static bool lies_as(const fac_operand *x, const fac_layout *l) {
    return fac_layout_equal(&x->layout, l, &x->type.dims);
}

/* What its first output costs the readers. */
static double layout_cost_of(const fac_layout_cost *t, const fac_operand *y) {
    if (t->seconds <= 0) return 0;
    if (t->blocked) return y->layout.block ? 0 : t->seconds;
    return lies_as(y, &t->layout) ? 0 : t->seconds;
}

static void enter(contest *c, fac_device *d, const fac_solver *s, int variant,
                  const fac_problem *p) {
    fac_offer o;
    double seconds;
    if (!consider(d, s, variant, p, c->trial, &o, &seconds)) {
        c->lost |= o.lost;
        return;
    }
    if (p->nout) seconds += layout_cost_of(c->cost, &c->trial[p->nin]);
    if (c->best && seconds >= c->least) {
        fac_offer_drop(&o);
        return;
    }
    fac_offer_drop(&c->offer);
    fac_operand *swap = c->trial;
    c->trial = c->best_trial;
    c->best_trial = swap;
    c->best = s;
    c->variant = variant;
    c->offer = o;
    c->least = seconds;
}

static bool is_relayed(const fac_plan *plan, const fac_node *n) {
    return plan->relayed && n->graph == plan->graph && plan->relayed[n->out[0]->id];
}

static bool for_relays(const fac_device *d, const fac_solver *s) {
    return d->backend->relay && d->backend->relay->takes(s);
}

/* All solvers, or one, with results as p has them and as their readers would rather have them: many
 * write either. */
static void enter_all(contest *c, const fac_plan *plan, fac_problem *p, const fac_solver *one,
                      int variant, bool relayed) {
    const fac_layout_cost *t = c->cost;
    const bool again = p->nout && t->seconds > 0 && !t->blocked && !lies_as(&p->out[0], &t->layout);
    const fac_layout given = p->nout ? p->out[0].layout : (fac_layout){ 0 };
    for (int turn = 0; turn <= again; turn++) {
        if (turn) p->out[0].layout = t->layout;
        if (one) enter(c, plan->device, one, variant, p);
        for (const fac_solver *const *s = plan->device->backend->solvers; *s && !one; s++)
            if (solves(*s, p->node) && for_relays(plan->device, *s) == relayed)
                enter(c, plan->device, *s, 0, p);
    }
    if (again) p->out[0].layout = given;
}

/* What was measured, if it still is what was measured and can be had here. */
static void remember(contest *c, const fac_plan *plan, fac_problem *p) {
    fac_wisdom_entry e;
    char *key = plan->wisdom ? fac_problem_key(p) : NULL;
    const bool known = key && fac_wisdom_find(plan->wisdom, fac_device_key(plan->device), key, &e);
    const fac_solver *s = known ? find(plan->device, e.solver, p->node) : NULL;
    fac_release(key);
    if (!s) return;
    enter_all(c, plan, p, s, e.variant, false);
    if (c->best && c->offer.version != e.version) c->best = NULL;
}

const fac_solver *fac_choose(const fac_plan *plan, fac_problem *p, const fac_layout_cost *cost,
                             fac_offer *offer, fac_error *err) {
    fac_operand few[2 * OPERANDS], *many = NULL;
    size_t n = (size_t)p->nin + (size_t)p->nout;
    if (n > OPERANDS && !(many = fac_alloc(2 * n, sizeof *many))) {
        fac_raise_memory(err, "%zu operands", n);
        return NULL;
    }
    fac_operand *const trials = many ? many : few;
    contest c = { .trial = trials, .best_trial = trials + n, .cost = cost };
    const fac_solver *forced = plan->only ? find(plan->device, plan->only, p->node) : NULL;
    if (forced)
        enter_all(&c, plan, p, forced, 0, false);
    else if (is_relayed(plan, p->node))
        enter_all(&c, plan, p, NULL, 0, true); /* what was measured was alone */
    else
        remember(&c, plan, p);
    if (!c.best && !(forced && forced->op)) {
        enter_all(&c, plan, p, NULL, 0, false);
        if (!c.best) enter(&c, plan->device, fac_last_solver(plan->device), 0, p);
    }
    if (c.lost) c.best = NULL;
    fac_offer_drop(offer);
    if (!c.best) fac_offer_drop(&c.offer);
    if (c.lost) {
        fac_raise(err, FAC_E_NOMEM, "%s: no memory for an offer", p->node->op->name);
    } else if (c.best) {
        memcpy(p->in, c.best_trial, (size_t)p->nin * sizeof *p->in);
        memcpy(p->out, c.best_trial + p->nin, (size_t)p->nout * sizeof *p->out);
        p->variant = c.variant;
        *offer = c.offer;
    } else {
        char text[384];
        fac_problem_print(p, text, sizeof text);
        if (forced)
            fac_raise(err, FAC_E_UNSUPPORTED, "%s: solver %s makes no offer for %s",
                      plan->device->name, forced->name, text);
        else
            fac_raise(err, FAC_E_UNSUPPORTED, "%s: no solver for %s", plan->device->name, text);
    }
    fac_release(many);
    return c.best;
}

void fac_choose_forms(const fac_plan *plan, fac_problem *p, double best[2]) {
    const fac_layout_cost none = { 0 };
    const fac_dims *d = &p->out[0].type.dims;
    const fac_layout plain = fac_layout_plain(d),
                     last = d->n > 2 ? fac_layout_channels_last(d) : plain;
    fac_operand few[2 * OPERANDS];
    best[0] = best[1] = INFINITY;
    if ((size_t)p->nin + (size_t)p->nout > OPERANDS) return;
    const fac_solver *forced = plan->only ? find(plan->device, plan->only, p->node) : NULL;
    contest c = { .trial = few, .best_trial = few + OPERANDS, .cost = &none };
    const bool relayed = is_relayed(plan, p->node);
    if (!relayed) remember(&c, plan, p);
    if (c.best && !forced) forced = c.best;
    const int variant = c.best ? c.variant : 0;
    for (int turn = 0; turn < (d->n > 2 ? 2 : 1); turn++) {
        p->out[0].layout = turn ? last : plain;
        for (const fac_solver *const *s = plan->device->backend->solvers; *s; s++) {
            fac_offer o;
            double seconds;
            if ((forced && *s != forced) || !solves(*s, p->node)) continue;
            if (!forced && for_relays(plan->device, *s) != relayed) continue;
            if (!consider(plan->device, *s, variant, p, few, &o, &seconds)) continue;
            fac_offer_drop(&o);
            const int form = lies_as(&few[p->nin], &plain)  ? 0
                             : lies_as(&few[p->nin], &last) ? 1
                                                            : -1;
            if (form >= 0 && seconds < best[form]) best[form] = seconds;
        }
    }
    fac_offer_drop(&c.offer);
}

/* The best of the solvers for relays, or of the others.  settled: no pass follows that reads more
 * results. */
static double seconds_of(fac_device *device, const char *only, fac_precision precision,
                         const fac_node *n, bool relayed, bool settled) {
    fac_operand few[2 * OPERANDS], *o = few;
    const size_t count = (size_t)n->nin + (size_t)n->nout;
    if (count > OPERANDS && !(o = fac_alloc(2 * count, sizeof *o))) return INFINITY;
    fac_problem p = { .node = n,
                      .precision = precision,
                      .nin = n->nin,
                      .nout = n->nout,
                      .in = o,
                      .out = o + n->nin };
    for (int i = 0; i < n->nin + n->nout; i++) {
        const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        if (settled && i > n->nin && !v->uses && !v->roots) v = NULL; /* which nothing reads */
        o[i] = v ? (fac_operand){ v->type, fac_layout_plain(&v->type.dims), v->time, v->known }
                 : (fac_operand){ 0 };
    }
    const fac_solver *forced = only ? find(device, only, n) : NULL;
    fac_offer offer;
    double seconds, least = INFINITY;
    bool taken = false; /* by the one asked for */
    if (forced) taken = consider(device, forced, 0, &p, o + count, &offer, &seconds);
    if (taken) fac_offer_drop(&offer);
    if (taken && forced != fac_last_solver(device)) least = offer.seconds;
    for (const fac_solver *const *s = device->backend->solvers;
         *s && !taken && !(forced && forced->op); s++) {
        if (!solves(*s, n) || for_relays(device, *s) != relayed ||
            !consider(device, *s, 0, &p, o + count, &offer, &seconds))
            continue;
        fac_offer_drop(&offer);
        if (offer.seconds < least) least = offer.seconds;
    }
    if (o != few) fac_release(o);
    return least;
}

double fac_solver_seconds(fac_device *device, const char *only, fac_precision precision,
                          const fac_node *n) {
    return seconds_of(device, only, precision, n, false, false);
}

double fac_step_seconds(fac_device *device, fac_precision precision, const fac_node *n,
                        bool relayed) {
    return seconds_of(device, NULL, precision, n, relayed, true);
}

bool fac_would_solve(fac_device *device, const char *only, fac_precision precision,
                     const fac_node *n) {
    return fac_solver_seconds(device, only, precision, n) < INFINITY;
}

/* ---- for tuning ---- */

char *fac_problem_key(const fac_problem *p) {
    const int n = fac_problem_print(p, NULL, 0);
    enum { TAIL = 16 };
    const size_t size = (size_t)(n < 0 ? 0 : n) + TAIL + 12 * (size_t)p->nin;
    char *key = n < 0 ? NULL : fac_alloc(size, 1);
    if (!key) return NULL;
    fac_problem_print(p, key, size);
    size_t at = (size_t)n;
    if (p->precision)
        at += (size_t)snprintf(key + at, size - at, " !%s", fac_precision_name(p->precision));
    const char *before = " !run=";
    for (int i = 1; i < p->node->nports && i < p->nin; i++) {
        if (p->in[i].type.dtype == FAC_NONE || p->in[i].time != FAC_RUN) continue;
        at += (size_t)snprintf(key + at, size - at, "%s%d", before, i);
        before = ",";
    }
    return key;
}

/* One more candidate, or a lower estimate of the last one. */
static int list(fac_candidate *to, int max, int n, fac_candidate c, bool again) {
    if (again && n > 0) {
        if (n <= max && c.seconds < to[n - 1].seconds) to[n - 1].seconds = c.seconds;
        return n;
    }
    if (n < max) to[n] = c;
    return n + 1;
}

/* By estimates, those alike in the order of the solvers. */
static void sort(fac_candidate *all, int n) {
    for (int i = 1; i < n; i++) {
        const fac_candidate c = all[i];
        int k = i;
        for (; k > 0 && all[k - 1].seconds > c.seconds; k--) all[k] = all[k - 1];
        all[k] = c;
    }
}

int fac_candidates(fac_device *d, const fac_problem *p, fac_candidate *to, int max) {
    const size_t count = (size_t)p->nin + (size_t)p->nout;
    fac_operand *plain = fac_alloc(2 * count + 1, sizeof *plain);
    int n = 0;
    if (!plain) return 0;
    fac_operand *trial = plain + count;
    fac_problem q = *p;
    q.in = plain;
    q.out = plain + p->nin;
    for (size_t i = 0; i < count; i++) {
        plain[i] = i < (size_t)p->nin ? p->in[i] : p->out[i - (size_t)p->nin];
        if (plain[i].type.dtype != FAC_NONE)
            plain[i].layout = fac_layout_plain(&plain[i].type.dims);
    }
    for (const fac_solver *const *s = d->backend->solvers; *s; s++) {
        if (for_relays(d, *s)) continue; /* alone they are slow */
        int variants = 0;
        for (int variant = 0; solves(*s, p->node) && variant <= variants; variant++) {
            bool again = false;
            for (int form = 0; form < 2; form++) {
                fac_offer o;
                double seconds;
                if (!consider(d, *s, variant, form ? &q : p, trial, &o, &seconds)) continue;
                fac_offer_drop(&o);
                n = list(to, max, n, (fac_candidate){ *s, variant, o.version, seconds }, again);
                again = true;
                if (variant == 0 && o.variants > variants) variants = o.variants;
            }
        }
    }
    fac_release(plain);
    sort(to, n < max ? n : max);
    return n;
}
