/* Division of 31-bit numbers by a number that is the same for all, as a multiplication (Granlund
 * and Montgomery 1994). */
#include "backends/gpu/nvidia/divide.h"

fac_nv_divisor fac_nv_divide(uint32_t d) {
    uint32_t bits = 0;
    while ((UINT64_C(1) << bits) < d) bits++;
    if (!bits) return (fac_nv_divisor){ 0, 0 };
    return (fac_nv_divisor){ (uint32_t)(((UINT64_C(1) << (31 + bits)) + d - 1) / d), bits - 1 };
}

fac_nv_divisor fac_nv_divide_wide(uint32_t d) {
    const fac_nv_divisor by = fac_nv_divide(d);
    return d < 2 ? (fac_nv_divisor){ 1, 0 } : (fac_nv_divisor){ by.multiplier, by.shift + 32 };
}
