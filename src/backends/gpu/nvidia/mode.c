/* Which arithmetic the matrix units do a product in, and how fast it is. */
#include "backends/gpu/nvidia/mode.h"
#include "backends/gpu/nvidia/speed.h"

bool fac_nv_mode_of(fac_dtype t, fac_precision precision, fac_nv_mode *out) {
    if (t == FAC_BF16)
        *out = FAC_NV_BF16;
    else if (t == FAC_F16)
        *out = FAC_NV_F16;
    else if (t != FAC_F32)
        return false;
    else
        *out = precision == FAC_PRECISION_HIGH     ? FAC_NV_TF32
               : precision == FAC_PRECISION_MEDIUM ? FAC_NV_BF16
                                                   : FAC_NV_3XTF32;
    return true;
}

double fac_nv_rate(const fac_gpu_limits *l, fac_nv_mode mode) {
    return l->units * fac_nv_speeds.unit[mode];
}
