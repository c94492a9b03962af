/* The backends of this build. */
#include "facula/backend.h"

extern const fac_backend fac_backend_cpu;

const fac_backend *const fac_backends[] = { &fac_backend_cpu, NULL };
