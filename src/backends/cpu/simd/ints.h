/* Vectors of whole numbers out of memory, for the templates of bytes and of blocks. */
#ifndef FACULA_SIMD_INTS_H
#define FACULA_SIMD_INTS_H
#include "backends/cpu/simd/vector.h"

INLINE ivec load_int(const void *p) {
    ivec v;
    memcpy(&v, p, sizeof v);
    return v;
}
/* The same four bytes in all lanes. */
INLINE ivec four_bytes(const void *p) {
    int32_t x;
    memcpy(&x, p, sizeof x);
    return x - (ivec){ 0 };
}
#endif
