/* A program as src/run sees it. */
#ifndef FACULA_RUN_PROGRAM_INTERNAL_H
#define FACULA_RUN_PROGRAM_INTERNAL_H
#include "plan/plan.h"

struct fac_program {
    fac_device *device;
    fac_graph *graph; /* the snapshot */
    fac_program_opts opts;
    char *solver, *scopes; /* own opts.solver and opts.recompute.scopes */
    bool *steers;          /* by input: see fac_graph_steering */
    bool updates, timed;
    pthread_mutex_t lock; /* plans, frames, prepared parameters, profile */
    pthread_mutex_t turn; /* held through a run of a program with updates */
    int locks;            /* how many of the two exist */
    fac_plan **plans, *last;
    size_t nplans, room_plans;
    uint64_t tick;
};

/* fac_program_run, inside of bodies. */
fac_status fac_program_run_within(fac_program *p, fac_tensor *const in[], fac_tensor *out[],
                                  const fac_within *within, fac_error *err);
#endif
