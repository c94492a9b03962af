/* From what offer() left as its draft to a solver's plan: what most solvers do alike. */
#ifndef FACULA_BACKENDS_DRAFT_H
#define FACULA_BACKENDS_DRAFT_H
#include "facula/backend.h"

/* For make(): zeroed memory for a plan; NULL and an error when memory is gone. */
void *fac_solver_plan(const fac_problem *p, size_t bytes, fac_error *err);
/* The same with a copy of the draft's first bytes, the plan or the beginning of it. */
void *fac_draft_copy(const fac_problem *p, size_t bytes, fac_error *err);
/* The make() of solvers whose plan is a copy of the draft. */
fac_status fac_draft_plan(const fac_problem *p, size_t bytes, void **out, fac_error *err);
/* The end of a make(): *out is the plan, or after an error it is done with. */
fac_status fac_solver_made(fac_status status, fac_device *d, void *plan,
                           void (*done)(fac_device *d, void *plan), void **out);
/* The done() of solvers whose plan is one block of memory. */
void fac_solver_done(fac_device *d, void *plan);
#endif
