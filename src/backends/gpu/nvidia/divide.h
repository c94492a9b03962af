/* Division by a number that is the same for all, as kernels do it. */
#ifndef FACULA_GPU_NVIDIA_DIVIDE_H
#define FACULA_GPU_NVIDIA_DIVIDE_H
#include <stdint.h>

/* x / d = (x * multiplier) >> 32 >> shift for 0 <= x < 2^31 and 1 <= d < 2^31: nv_divide.  d = 1
 * has no such numbers and must be left out by the caller's text, or its quotient be taken by d = 2
 * of 2 x. */
typedef struct fac_nv_divisor {
    uint32_t multiplier, shift;
} fac_nv_divisor;
fac_nv_divisor fac_nv_divide(uint32_t d);
/* x / d = (ulong)x * multiplier >> shift, also for d = 1: as nv_conv_rows.cl divides. */
fac_nv_divisor fac_nv_divide_wide(uint32_t d);
#endif
