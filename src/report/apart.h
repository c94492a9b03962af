/* How far two numbers of tensors are apart, where doubles do not hold them: integers of 64 bits. */
#ifndef FACULA_REPORT_APART_H
#define FACULA_REPORT_APART_H
#include <string.h>
#include "facula/tensor.h"

static inline bool fac_is_wide(fac_dtype d) { return d == FAC_I64 || d == FAC_U64; }

static inline uint64_t fac_wide_at(const void *data, int64_t at) {
    uint64_t x;
    memcpy(&x, (const char *)data + (size_t)at * sizeof x, sizeof x);
    return x;
}

/* Element `at` of each, both of the wide type d. */
static inline double fac_wide_apart(fac_dtype d, const void *a, const void *b, int64_t at) {
    const uint64_t x = fac_wide_at(a, at), y = fac_wide_at(b, at);
    const bool larger = d == FAC_I64 ? (int64_t)x > (int64_t)y : x > y;
    return (double)(larger ? x - y : y - x);
}
#endif
