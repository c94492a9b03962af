/* The backends of this build. */
#include "facula/backend.h"

extern const fac_backend fac_backend_cpu;
#ifdef FAC_HAVE_OPENCL
extern const fac_backend fac_backend_opencl;
#endif

const fac_backend *const fac_backends[] = { &fac_backend_cpu,
#ifdef FAC_HAVE_OPENCL
                                            &fac_backend_opencl,
#endif
                                            NULL };
