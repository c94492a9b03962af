/* Indices as gather and gather_grad read them: of any integer type, counted from both ends; of those out of range the first is told,
 * whichever thread found which. */
#ifndef FACULA_CPU_PICKS_H
#define FACULA_CPU_PICKS_H
#include <stdatomic.h>
#include "ops/index.h"
#include "tensor/tensor_internal.h"

typedef struct fac_picks {
    const char     *at;
    fac_dtype       dtype;
    int64_t         bytes, count, size;         /* of an index; how many; of the dim that they count */
    _Atomic int64_t bad;                        /* the first that is out of range; count: none */
} fac_picks;

static inline int64_t fac_pick_given(const fac_picks *p, int64_t i) {
    int64_t given;
    fac_convert(FAC_I64, &given, p->dtype, p->at + i * p->bytes, 1);
    return given;
}

/* A place, or -1 where the index is out of range. */
static inline int64_t fac_pick(fac_picks *p, int64_t i) {
    const int64_t given = fac_pick_given(p, i), place = given < 0 ? given + p->size : given;
    if (place >= 0 && place < p->size) return place;
    int64_t least = atomic_load(&p->bad);
    while (i < least && !atomic_compare_exchange_weak(&p->bad, &least, i)) {}
    return -1;
}

static inline fac_status fac_picks_check(const fac_picks *p, fac_error *err) {
    const int64_t bad = atomic_load(&p->bad);
    return bad < p->count ? fac_raise_index(fac_pick_given(p, bad), p->size, err) : FAC_OK;
}
#endif
