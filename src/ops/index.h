/* Indices that are data: gathers and scatters count from both ends, and what is outside is an error
 * of the run. */
#ifndef FACULA_OPS_INDEX_H
#define FACULA_OPS_INDEX_H
#include <stdint.h>
#include "base/error.h"

/* As every device says it. */
static inline fac_status fac_raise_index(int64_t index, int64_t size, fac_error *err) {
    if (!size) return fac_raise(err, FAC_E_ARGUMENT, "index %lld of no elements", (long long)index);
    return fac_raise(err, FAC_E_ARGUMENT, "index %lld is out of range (%lld to %lld)",
                     (long long)index, (long long)-size, (long long)size - 1);
}

/* Where index `given` of a dim of that size is. */
static inline fac_status fac_place_of_index(int64_t given, int64_t size, int64_t *place,
                                            fac_error *err) {
    *place = given < 0 ? given + size : given;
    return *place < 0 || *place >= size ? fac_raise_index(given, size, err) : FAC_OK;
}
#endif
