/* Internal to tuning: tune_subject.c lists what there is to choose, tune.c measures, tune_check.c
 * looks whether results are right. */
#ifndef FACULA_RUN_TUNE_H
#define FACULA_RUN_TUNE_H
#include "run/program_internal.h"

typedef struct fac_tune_candidate {
    fac_candidate is;
    double seconds; /* the least so far; infinite: never ran */
} fac_tune_candidate;
/* A problem of the program. */
typedef struct fac_tune_subject {
    char *key;
    int n, usual, best; /* candidates; the one that estimates chose; -1 while there is none */
    fac_tune_candidate *at;
    bool open;      /* best is not settled */
    double sum;     /* of the run at hand */
    int steps, ran; /* of the run at hand; which candidate they ran, -1: several */
} fac_tune_subject;

typedef struct fac_tuning {
    const fac_program *p;
    fac_tensor *const *in;
    const fac_tune_opts *o;
    fac_tune_subject *at;
    size_t n, room;
    fac_table places;  /* key -> place + 1 */
    double launch;     /* seconds of one command more: see price */
    fac_device *judge; /* once there is a winner to check; NULL: the reference kernels judge */
    fac_error *err;
} fac_tuning;

/* ---- tune_subject.c ---- */
/* Steps of relays are not: alone, as they would be timed, others are faster. */
bool fac_tune_is_subject(const fac_step *s);
/* By the key of its problem; NULL: it is none. */
fac_tune_subject *fac_tune_subject_of(const fac_tuning *t, const char *key);
/* Which candidate of the subject that is; -1: none. */
int fac_tune_place_of(const fac_tune_subject *s, const fac_solver *solver, int variant);
/* The problem of the step with its candidates, unless it is there. */
fac_status fac_tune_add(fac_tuning *t, const fac_step *step);
/* Frees what the tuning holds. */
void fac_tune_forget(fac_tuning *t);

/* ---- tune_check.c ---- */
/* Does the solver give what the judge gives, a device with solvers of its own, or, when that is
 * NULL, the reference kernels, on random contents?  key: of fac_problem_key.  A problem that cannot
 * be posed alone, or that the solver refuses alone, counts as wrong: nothing unproven is learnt. */
fac_status fac_tune_check(fac_device *d, fac_device *judge, const char *key, const char *solver,
                          int variant, int version, bool *right, fac_error *err);
#endif
