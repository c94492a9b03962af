/* What bytes.c and bytes_pack.c share. */
#ifndef FACULA_CPU_BYTES_INTERNAL_H
#define FACULA_CPU_BYTES_INTERNAL_H
#include "backends/cpu/bytes/bytes.h"

static inline size_t fac_byte_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Output channels with those that fill up vectors: of all groups, or of a depthwise convolution,
 * whose channels lie side by side. */
static inline int64_t fac_byte_outputs(const fac_byte_product *p) {
    const int64_t width = 2 * p->kernels->lanes;
    if (p->depthwise) return (p->groups + width - 1) / width * width;
    return p->groups * p->panels * width;
}

/* Where the sums of output channels are in packed weights. */
int32_t *fac_byte_sums(const fac_byte_product *p, void *packed);
#endif
