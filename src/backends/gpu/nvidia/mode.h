/* The arithmetic of NVIDIA's matrix units. */
#ifndef FACULA_GPU_NVIDIA_MODE_H
#define FACULA_GPU_NVIDIA_MODE_H
#include "backends/gpu/limits.h"
#include "facula/backend.h"

/* How a product of f32 operands is made, or of what else they are.
 *   3XTF32  a = high + low: high high + high low + low high, f32's accuracy as long as partial sums
 *           are short
 *   TF32, BF16, F16: operands rounded once; F16 only for tensors that are f16 */
typedef enum fac_nv_mode { FAC_NV_3XTF32, FAC_NV_TF32, FAC_NV_BF16, FAC_NV_F16 } fac_nv_mode;

/* Operands have 16 bits. */
static inline bool fac_nv_is_half(fac_nv_mode m) {
    return m == FAC_NV_BF16 || m == FAC_NV_F16;
}

/* By the type of the operands and the precision that f32 is asked for; false: another type. */
bool fac_nv_mode_of(fac_dtype t, fac_precision precision, fac_nv_mode *out);
/* Multiply-adds a second of the whole device in this mode, counted as those of the definition. */
double fac_nv_rate(const fac_gpu_limits *l, fac_nv_mode mode);
#endif
