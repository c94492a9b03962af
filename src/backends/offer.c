/* Drafts of offers that have memory of their own. */
#include "facula/backend.h"
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
