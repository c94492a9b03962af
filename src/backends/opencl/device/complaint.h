/* What kernels find wrong in data, told at the next wait: an index that is out of range.  Such a
 * kernel has a place in device memory to say so (index.cl), and goes on with zeros; the
 * device is as good as before once it was told. */
#ifndef FACULA_OPENCL_COMPLAINT_H
#define FACULA_OPENCL_COMPLAINT_H
#include "backends/opencl/device/opencl.h"

/* Four numbers that are zero until a kernel complains.  A kernel that may has been submitted: the
 * next wait looks. */
fac_status fac_cl_complaints(fac_opencl *o, fac_span *out, fac_error *err);
void fac_cl_may_complain(fac_opencl *o);

/* After a wait that was good: FAC_E_ARGUMENT with the step's name and the index, once; without err
 * it is kept for later. */
fac_status fac_cl_hear(fac_opencl *o, fac_error *err);
#endif
