/* Tensor maps that kernels make (nv_maps.cl): the device's kind, and where they lie. */
#include "backends/opencl/nvidia/unit/nvidia.h"

int fac_nv_maps_of(fac_opencl *o) {
    if (fac_cl_has_path(o, FAC_CL_MAPS)) return 1;
    return fac_cl_has_path(o, FAC_CL_MAPS_16) ? 2 : 0;
}

size_t fac_nv_maps_bytes(const fac_opencl *o, int maps) {
    return 128 + (size_t)o->limits.units * (size_t)maps * 128;
}
