/* A cpu with relays for tests: its solvers, or some of them, have no run of their own, and a relay
 * does their jobs one after the other, those of one level in any order.  One solver more writes
 * images with their channels last, so that parts of a concat are slices of channels.  What is aside
 * may be put off until it is met. */
#ifndef FACULA_TESTS_RELAY_CHECK_H
#define FACULA_TESTS_RELAY_CHECK_H
#include <stdatomic.h>
#include "net_check.h"
#include "run/program_internal.h"

enum { RELAY_SOLVERS = 160, RELAY_LATE = 8, RELAY_SPANS = 4096 };
typedef enum relay_order { RELAY_FORWARD, RELAY_REVERSED, RELAY_RANDOM, RELAY_ORDERS } relay_order;

static fac_backend relay_backend;
static fac_solver relay_own[RELAY_SOLVERS]; /* what the planner sees of inner[] */
static const fac_solver *relay_inner[RELAY_SOLVERS], *relay_list[2 * RELAY_SOLVERS + 1];
static relay_order relay_by;
static atomic_int relay_made, relay_done, relay_runs, relay_jobs;
static atomic_ulong relay_draws;

/* ---- channels last ---- */

static inline bool relay_last_offer(fac_device *d, fac_problem *p, fac_offer *o) {
    static const char *const ops[] = { "relu", "neg", "add", "mul" };
    bool good = false;
    (void)d;
    for (int k = 0; k < 4; k++) good |= !strcmp(p->node->op->name, ops[k]);
    if (!good || p->node->body[0] || p->out[0].type.dims.n != 4 || p->out[0].type.dtype != FAC_F32)
        return false;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].layout.block || !fac_dims_equal(&p->in[i].type.dims, &p->out[0].type.dims))
            return false;
    if (p->out[0].layout.block || p->out[0].layout.stride[1] != 1)
        p->out[0].layout = fac_layout_channels_last(&p->out[0].type.dims);
    p->out[0].layout.halo = 0;
    o->seconds = 1e-9;
    return true;
}

static inline fac_status relay_last_make(fac_device *d, const fac_problem *p, void **plan,
                                         fac_error *e) {
    (void)d, (void)e;
    *plan = (void *)(uintptr_t)p;
    return FAC_OK;
}

static inline float *relay_at(fac_span s, const fac_layout *l, const int64_t i[4]) {
    int64_t at = l->offset;
    for (int k = 0; k < 4; k++) at += i[k] * l->stride[k];
    return (float *)(void *)((char *)s.memory + s.at) + at;
}

static inline fac_status relay_last_run(const void *plan, fac_device *d, const fac_span *in,
                                        const fac_span *out, fac_span work, fac_error *e) {
    const fac_problem *p = plan;
    const int64_t *n = p->out[0].type.dims.d;
    const char *op = p->node->op->name;
    (void)d, (void)work, (void)e;
    for (int64_t k = 0; k < n[0] * n[1] * n[2] * n[3]; k++) {
        const int64_t i[4] = { k / (n[3] * n[2] * n[1]), k / (n[3] * n[2]) % n[1], k / n[3] % n[2],
                               k % n[3] };
        const float a = *relay_at(in[0], &p->in[0].layout, i),
                    b = p->nin > 1 ? *relay_at(in[1], &p->in[1].layout, i) : 0;
        *relay_at(out[0], &p->out[0].layout, i) = *op == 'a'   ? a + b
                                                  : *op == 'm' ? a * b
                                                  : *op == 'n' ? -a
                                                  : a > 0      ? a
                                                               : 0;
    }
    return FAC_OK;
}

static const fac_solver relay_last = {
    .name = "test/last", .offer = relay_last_offer, .make = relay_last_make, .run = relay_last_run
};

/* ---- the relay ---- */

typedef struct relay_plan {
    const fac_relay_job *jobs;
    int n;
} relay_plan;

static inline bool relay_takes(const fac_solver *s) { return !s->run; }

static inline fac_status relay_make(fac_device *d, const fac_relay_job *jobs, int n, void **plan,
                                    fac_error *e) {
    int at = 0, level = 0;
    relay_plan *p = malloc(sizeof *p);
    (void)d, (void)e;
    assert_true(n > 0 && n <= relay_backend.relay->most && jobs[0].level == 0);
    for (int k = 0; k < n; k++) {
        assert_true(jobs[k].at == at && jobs[k].level >= level && jobs[k].level <= level + 1 &&
                    relay_takes(jobs[k].solver));
        at += jobs[k].nin + jobs[k].nout + 1;
        level = jobs[k].level;
    }
    *p = (relay_plan){ jobs, n };
    *plan = p;
    relay_made++;
    return FAC_OK;
}

static inline void relay_free(fac_device *d, void *plan) {
    (void)d;
    relay_done++;
    free(plan);
}

static inline fac_status relay_do(const relay_plan *p, fac_device *d, const fac_span *operands,
                                  int k, fac_error *e) {
    const fac_relay_job *j = &p->jobs[k];
    const fac_span *in = operands + j->at;
    relay_jobs++;
    return relay_inner[j->solver - relay_own]->run(j->plan, d, in, in + j->nin,
                                                   in[j->nin + j->nout], e);
}

/* Jobs of the level that begins at `first`: *end is after the last one. */
static inline fac_status relay_level(const relay_plan *p, fac_device *d, const fac_span *operands,
                                     int first, int n, fac_error *e) {
    int order[RELAY_SPANS];
    for (int k = 0; k < n; k++) order[k] = first + (relay_by == RELAY_REVERSED ? n - 1 - k : k);
    for (int k = n - 1; k > 0 && relay_by == RELAY_RANDOM; k--) {
        const int other = (int)(fac_random_bits(1, 2, relay_draws++) % (uint64_t)(k + 1)),
                  kept = order[k];
        order[k] = order[other];
        order[other] = kept;
    }
    for (int k = 0; k < n; k++) {
        const fac_status status = relay_do(p, d, operands, order[k], e);
        if (status) return status;
    }
    return FAC_OK;
}

/* What was begun aside, and is not met yet. */
static struct {
    bool on;
    int n;
    struct {
        const relay_plan *plan;
        fac_span operands[64];
    } at[RELAY_LATE];
} relay_late;

static inline fac_status relay_run(const void *plan, fac_device *d, const fac_span *operands,
                                   int first, int n, fac_error *e) {
    const relay_plan *p = plan;
    assert_true(first >= 0 && n > 0 && first + n <= p->n);
    relay_runs++;
    if (relay_late.on) {
        const fac_relay_job *j = &p->jobs[0];
        assert_true(p->n == 1 && relay_late.n < RELAY_LATE && j->nin + j->nout < 64);
        relay_late.at[relay_late.n].plan = p;
        memcpy(relay_late.at[relay_late.n++].operands, operands,
               (size_t)(j->nin + j->nout + 1) * sizeof *operands);
        return FAC_OK;
    }
    for (int k = first, end; k < first + n; k = end) {
        for (end = k + 1; end < first + n && p->jobs[end].level == p->jobs[k].level;) end++;
        const fac_status status = relay_level(p, d, operands, k, end - k, e);
        if (status) return status;
    }
    return FAC_OK;
}

static fac_relay relay_usual = { .takes = relay_takes,
                                 .most = 64,
                                 .gap = 1,
                                 .make = relay_make,
                                 .done = relay_free,
                                 .run = relay_run };

/* ---- aside ---- */

static inline bool relay_able(fac_device *d) { return d != NULL; }
static inline fac_status relay_begin(fac_device *d, fac_error *e) {
    (void)d, (void)e;
    relay_late.on = true;
    return FAC_OK;
}
static inline fac_status relay_end(fac_device *d, fac_error *e) {
    (void)d, (void)e;
    relay_late.on = false;
    return FAC_OK;
}
static inline fac_status relay_meet(fac_device *d, fac_error *e) {
    for (int i = 0; i < relay_late.n; i++) {
        const fac_status status =
            relay_do(relay_late.at[i].plan, d, relay_late.at[i].operands, 0, e);
        if (status) return status;
    }
    relay_late.n = 0;
    return FAC_OK;
}
static const fac_beside relay_beside = { relay_able, relay_begin, relay_end, relay_meet };
static inline bool relay_chooses(fac_device *d) { return d != NULL; }

/* ---- the device ---- */

/* A solver, as it is and for relays; each other step costs so much that all that can be are in
 * relays. */
static inline void relay_add(int *own, int *listed, const fac_solver *s, bool itself, bool taken) {
    assert_true(*own < RELAY_SOLVERS);
    if (itself) relay_list[(*listed)++] = s;
    if (taken) {
        relay_own[*own] = *s;
        relay_own[*own].run = NULL;
        relay_inner[*own] = s;
        relay_list[(*listed)++] = &relay_own[(*own)++];
    }
    relay_list[*listed] = NULL;
}

/* d has relays from now on, of so many jobs: of each solver, or with `some` of three in four that
 * it draws.  last: with images that have their channels last. */
static inline void relay_give(fac_device *d, const fac_backend *cpu, int most, bool some, bool last,
                              uint64_t seed) {
    int own = 0, listed = 0;
    if (last) relay_add(&own, &listed, &relay_last, false, true);
    for (int i = 0; cpu->solvers[i]; i++) /* "half" runs others itself */
        if (strcmp(cpu->solvers[i]->name, "half"))
            relay_add(&own, &listed, cpu->solvers[i], true,
                      !some || fac_random_bits(seed, 5, (uint64_t)i) % 4);
    relay_usual.most = most;
    relay_backend = *cpu;
    relay_backend.solvers = relay_list;
    relay_backend.relay = &relay_usual;
    if (last) relay_backend.channels_last = relay_chooses;
    d->backend = &relay_backend;
}

/* ---- plans ---- */

typedef struct relay_operand {
    int root;
    const fac_slot *slot;
    const fac_type *type;
    bool written;
} relay_operand;

static inline relay_operand relay_operand_of(const fac_step *s, int k) {
    const fac_problem *q = s->problem;
    if (k < q->nin) return (relay_operand){ s->in[k].root, &s->in[k], &q->in[k].type, false };
    k -= q->nin;
    if (k < q->nout) return (relay_operand){ s->out[k].root, &s->out[k], &q->out[k].type, true };
    return (relay_operand){ s->work, NULL, NULL, true };
}

/* Marks the elements of a plain or strided operand; does it meet one that is marked? */
static inline bool relay_mark(const relay_operand *o, char *seen, size_t n) {
    const fac_layout *l = &o->slot->layout;
    const fac_dims *d = &o->type->dims;
    bool met = false;
    for (int64_t i = 0, count = fac_dims_count(d); i < count; i++) {
        int64_t at = l->offset, rest = i;
        for (int k = d->n - 1; k >= 0; rest /= d->d[k], k--) at += rest % d->d[k] * l->stride[k];
        assert_true(at >= 0 && (size_t)at < n);
        met |= seen[at];
        seen[at] = 1;
    }
    return met;
}

static inline bool relay_meets(const fac_plan *p, const relay_operand *x, const relay_operand *y) {
    if (x->root < 0 || y->root < 0 || (!x->written && !y->written)) return false;
    const fac_root *a = &p->roots[x->root], *b = &p->roots[y->root];
    if (x->root != y->root)
        return a->kind == FAC_ROOT_ARENA && b->kind == FAC_ROOT_ARENA && a->at < b->at + b->bytes &&
               b->at < a->at + a->bytes;
    if (!x->slot || !y->slot || x->slot->layout.block || y->slot->layout.block ||
        x->type->dtype != y->type->dtype)
        return true;
    char *seen = calloc(a->bytes + 1, 1);
    relay_mark(x, seen, a->bytes);
    const bool met = relay_mark(y, seen, a->bytes);
    free(seen);
    return met;
}

/* What a relay has: jobs, levels, steps that have another one beside them, and pairs of these in
 * one root. */
typedef struct relay_tally {
    int relays, jobs, levels, beside, slices;
} relay_tally;

/* No step of a level writes where another one of it reads or writes. */
static inline void relay_check_plan(const fac_plan *p, relay_tally *t) {
    for (int i = 0; i < p->nsteps; i++) {
        const fac_step *s = &p->steps[i];
        const fac_relayed *r = s->relay;
        assert_true(!r == !(s->kind == FAC_STEP_RUN && relay_takes(s->solver)));
        if (!r) continue;
        for (int m = 1; m < p->nstages; m++)
            assert_true(r->first + r->n <= p->stages[m].first || r->first >= p->stages[m].first);
        const int k = i - r->first, level = r->jobs[k].level;
        assert_true(k >= 0 && k < r->n && r->jobs[k].plan == s->plan &&
                    r->jobs[k].solver == s->solver);
        if (r->n > 1) assert_true(!s->aside && !s->halo && !p->observed && (!s->meet || k == 0));
        t->relays += k == 0;
        t->jobs++;
        t->levels += k == 0 || r->jobs[k - 1].level != level;
        if (k) t->beside += r->jobs[k - 1].level == level;
        for (int j = i + 1; j < r->first + r->n && r->jobs[j - r->first].level == level; j++) {
            const fac_step *other = &p->steps[j];
            for (int a = 0; a <= s->problem->nin + s->problem->nout; a++)
                for (int b = 0; b <= other->problem->nin + other->problem->nout; b++) {
                    const relay_operand x = relay_operand_of(s, a), y = relay_operand_of(other, b);
                    if (relay_meets(p, &x, &y))
                        fail_msg("%s and %s meet in level %d", s->label, other->label, level);
                    t->slices += x.root >= 0 && x.root == y.root && x.written && y.written;
                }
        }
    }
}
#endif
