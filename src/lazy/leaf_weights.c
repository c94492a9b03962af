/* Weights: leaves that come unchanged to a segment again and again.  Its program is bound to them,
 * so what is made from them alone, such as packed weights, is made once. */
#include "base/error.h"
#include "base/memory.h"
#include "lazy/lazy_internal.h"

enum { UNCHANGED = 2, MOST_SEGMENTS = 512 };

/* A leaf of a segment as it was last: by its own number, since memory is used again. */
typedef struct fac_place {
    uint64_t serial, version;
    unsigned unchanged; /* flushes one after the other */
} fac_place;

static fac_place *places_of(fac_recorder *r, fac_hash structure) {
    fac_place *p = fac_keys_get(&r->weights, structure);
    if (p) return p;
    if (r->weights.n >= MOST_SEGMENTS) fac_keys_clear(&r->weights, fac_release);
    p = fac_alloc(r->nleaves + 1, sizeof *p);
    if (p && fac_keys_put(&r->weights, structure, p)) return p;
    fac_release(p);
    return NULL;
}

static bool may_change(const fac_lazy *x) {
    const fac_made_kind kind = x->made->kind;
    if (kind == FAC_MADE_NUMBER || kind == FAC_MADE_INTS || !x->tensor) return true;
    return !fac_tensor_contiguous(x->tensor);
}

/* What comes to one place in turns, such as batches that are held in a list, is no weight. */
static bool is_weight(fac_recorder *r, fac_lazy *x, fac_place *p) {
    if (x->made->kind == FAC_MADE_STATE) return true;
    if (may_change(x)) {
        *p = (fac_place){ 0 };
        return false;
    }
    if (!x->serial) x->serial = ++r->serials;
    const uint64_t version = fac_tensor_version(x->tensor);
    const bool same = p->serial == x->serial && p->version == version;
    p->unchanged = same ? p->unchanged + (p->unchanged < UNCHANGED) : 0;
    p->serial = x->serial;
    p->version = version;
    return p->unchanged == UNCHANGED;
}

fac_status fac_leaf_find_weights(fac_recorder *r, fac_hash structure, fac_error *err) {
    fac_place *p = places_of(r, structure);
    if (!p) return fac_raise_memory(err, "a flush");
    for (size_t i = 0; i < r->nleaves; i++) {
        fac_lazy *x = r->leaves[i];
        x->weight = is_weight(r, x, &p[i]);
        x->bound = x->bound || x->weight;
    }
    return FAC_OK;
}
