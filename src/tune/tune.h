/* Internal to tuning: tune.c measures, tune_check.c looks whether results are right. */
#ifndef FACULA_RUN_TUNE_H
#define FACULA_RUN_TUNE_H
#include "run/program_internal.h"

/* Does the solver give what the judge gives, a device with solvers of its own, or, when that is
 * NULL, the reference kernels, on random contents?  key: of fac_problem_key.  A problem that cannot
 * be posed alone, or that the solver refuses alone, counts as wrong: nothing unproven is learnt. */
fac_status fac_tune_check(fac_device *d, fac_device *judge, const char *key, const char *solver,
                          int variant, int version, bool *right, fac_error *err);
#endif
