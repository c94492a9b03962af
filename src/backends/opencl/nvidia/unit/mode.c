/* Which arithmetic the matrix units do a product in, and how fast it is. */
#include "backends/opencl/nvidia/unit/nvidia.h"

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

/* Measured on an H200 with operands in registers: 481 and 963 TFLOP/s on 132 units. */
double fac_nv_rate(const fac_opencl *o, fac_nv_mode mode) {
    static const double unit[] = { [FAC_NV_3XTF32] = 0.6e12,
                                   [FAC_NV_TF32] = 1.82e12,
                                   [FAC_NV_BF16] = 3.64e12,
                                   [FAC_NV_F16] = 3.64e12 };
    return o->limits.units * unit[mode];
}
