/* The best first; estimates decide between those that offer.  Behind them all stands the cpu (src/run/away.c). */
#include <stddef.h>
#include "backends/opencl/solvers.h"

const fac_solver *const fac_cl_solvers[] = {
    &fac_cl_elementwise,
    NULL };
