/* The solvers of the cpu backend, for its list in backend.c. */
#ifndef FACULA_CPU_SOLVERS_H
#define FACULA_CPU_SOLVERS_H
#include "facula/backend.h"

extern const fac_backend fac_backend_cpu;

extern const fac_solver fac_cpu_fused, fac_cpu_reorder;
#endif
