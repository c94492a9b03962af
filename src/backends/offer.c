/* Drafts of offers that have memory of their own. */
#include "backends/draft.h"
#include <string.h>
#include "base/error.h"
#include "base/memory.h"

void *fac_offer_keep(fac_offer *o, size_t bytes, void (*drop)(void *kept)) {
    o->kept = fac_alloc(1, bytes);
    o->drop = drop;
    o->lost = !o->kept;
    return o->kept;
}

void fac_offer_drop(fac_offer *o) {
    if (o->kept && o->drop) o->drop(o->kept);
    fac_release(o->kept);
    o->kept = NULL;
}

void *fac_draft_take(const fac_problem *p) {
    void *kept = p->offered->kept;
    p->offered->kept = NULL;
    return kept;
}

void *fac_solver_plan(const fac_problem *p, size_t bytes, fac_error *err) {
    void *plan = fac_alloc(1, bytes);
    if (!plan) fac_raise(err, FAC_E_NOMEM, "%s: no memory for a plan", p->node->op->name);
    return plan;
}

void *fac_draft_copy(const fac_problem *p, size_t bytes, fac_error *err) {
    void *plan = fac_solver_plan(p, bytes, err);
    if (plan) memcpy(plan, p->draft, bytes);
    return plan;
}

fac_status fac_draft_plan(const fac_problem *p, size_t bytes, void **out, fac_error *err) {
    void *plan = fac_draft_copy(p, bytes, err);
    if (!plan) return FAC_E_NOMEM;
    *out = plan;
    return FAC_OK;
}

fac_status fac_solver_made(fac_status status, fac_device *d, void *plan,
                           void (*done)(fac_device *d, void *plan), void **out) {
    if (status)
        done(d, plan);
    else
        *out = plan;
    return status;
}

void fac_solver_done(fac_device *d, void *plan) {
    (void)d;
    fac_release(plan);
}
