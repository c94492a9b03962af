/* facula/report/reduce.h: a model made small while something stays true of it: what makes a failing
 * network a failing test.
 *
 * Delta debugging (Zeller and Hildebrandt 2002): large steps first, then smaller ones, until no
 * single step is possible any more.  Steps: nodes leave (their results become inputs, what fed them
 * outputs) or are bypassed, outputs and optional inputs go, attributes fall back to their defaults,
 * sizes shrink, weights become zeros, ones or small random numbers.  Every graph that is tried is
 * valid. */
#ifndef FACULA_REDUCE_H
#define FACULA_REDUCE_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_reduce_stat {
    int runs, kept;      /* checks so far; of these, models that became the best        */
    int nodes, at_first; /* of the best model; of the one given                         */
    const char *step;    /* "nodes", "sizes"... that is tried now                       */
    int done, total;     /* of the steps of this kind and size                          */
    bool minimal;        /* at the end: no single step is possible any more             */
} fac_reduce_stat;

/* Is what is looked for still there in g?  STOP ends the search with the best model so far, an
 * error without one. */
typedef enum fac_reduce_answer { FAC_REDUCE_NO, FAC_REDUCE_YES, FAC_REDUCE_STOP } fac_reduce_answer;
typedef fac_status fac_reduce_check(void *self, const fac_graph *g, const fac_reduce_stat *stat,
                                    fac_reduce_answer *answer, fac_error *err);

typedef struct fac_reduce_opts {
    fac_reduce_check *check;
    void *self;
    int max_runs;  /* 0: no limit */
    uint64_t seed; /* of random weights */
} fac_reduce_opts;

/* FAC_E_ARGUMENT when the model as it was given does not pass the check.  stat may be NULL. */
fac_status fac_reduce(const fac_graph *g, const fac_reduce_opts *opts, fac_graph **out,
                      fac_reduce_stat *stat, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
