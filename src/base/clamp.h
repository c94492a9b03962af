/* Numbers held within limits. */
#ifndef FACULA_BASE_CLAMP_H
#define FACULA_BASE_CLAMP_H
#include <stdint.h>

/* x, or the limit that it is beyond; of limits that cross, lo where x is below it, else hi. */
static inline int64_t fac_clamp(int64_t x, int64_t lo, int64_t hi) {
    if (x < lo) return lo;
    return x > hi ? hi : x;
}
#endif
