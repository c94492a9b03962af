/* Indices as gathers and scatters read them: of any integer type, counted from both ends; of those
 * out of range the first is told, whichever thread found which. */
#ifndef FACULA_CPU_PICKS_H
#define FACULA_CPU_PICKS_H
#include <stdatomic.h>
#include "ops/index.h"
#include "tensor/tensor_internal.h"

typedef struct fac_picks {
    const char *at;
    fac_dtype dtype;
    int64_t bytes, count, size; /* of an index; how many; of the dim that they count */
    _Atomic int64_t bad;        /* the first that is out of range; count: none */
} fac_picks;

static inline int64_t fac_pick_given(const fac_picks *p, int64_t i) {
    int64_t given;
    fac_convert(FAC_I64, &given, p->dtype, p->at + i * p->bytes, 1);
    return given;
}

static inline void fac_pick_is_bad(fac_picks *p, int64_t i) {
    int64_t least = atomic_load(&p->bad);
    while (i < least && !atomic_compare_exchange_weak(&p->bad, &least, i)) {}
}

/* A place, or -1 where the index is out of range. */
static inline int64_t fac_pick(fac_picks *p, int64_t i) {
    const int64_t given = fac_pick_given(p, i), place = given < 0 ? given + p->size : given;
    if (place >= 0 && place < p->size) return place;
    fac_pick_is_bad(p, i);
    return -1;
}

/* The places of n indices from `first` on, -1 where one is out of range; whether there is none of
 * those. */
static inline bool fac_pick_many(fac_picks *p, int64_t first, int64_t n, int64_t *to) {
    bool bad = false;
    fac_convert(FAC_I64, to, p->dtype, p->at + first * p->bytes, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        to[i] += to[i] < 0 ? p->size : 0;
        bad |= (uint64_t)to[i] >= (uint64_t)p->size;
    }
    for (int64_t i = 0; i < n && bad; i++) {
        if ((uint64_t)to[i] < (uint64_t)p->size) continue;
        fac_pick_is_bad(p, first + i);
        to[i] = -1;
    }
    return !bad;
}

static inline fac_status fac_picks_check(const fac_picks *p, fac_error *err) {
    const int64_t bad = atomic_load(&p->bad);
    return bad < p->count ? fac_raise_index(fac_pick_given(p, bad), p->size, err) : FAC_OK;
}
#endif
