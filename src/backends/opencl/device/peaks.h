/* The device at its best, measured by kernels. */
#ifndef FACULA_OPENCL_PEAKS_H
#define FACULA_OPENCL_PEAKS_H
#include "backends/opencl/device/opencl.h"

/* fac_backend.peaks */
fac_status fac_cl_peaks(fac_device *d, fac_peaks *out, fac_error *err);
#endif
