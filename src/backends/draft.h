/* From what offer() left as its draft to a solver's plan: what most solvers do alike. */
#ifndef FACULA_BACKENDS_DRAFT_H
#define FACULA_BACKENDS_DRAFT_H
#include "facula/backend.h"

/* For make(): a copy of the draft's first bytes, the plan or the beginning of it; NULL and an error
 * when memory is gone. */
void *fac_draft_copy(const fac_problem *p, size_t bytes, fac_error *err);
/* The done() of solvers whose plan is one block of memory. */
void fac_solver_done(fac_device *d, void *plan);
#endif
