/* facula/recompute.h: gradient checkpointing (Chen et al. 2016, https://arxiv.org/abs/1604.06174).
 *
 * The backward part of a training step reads values of the forward part, which therefore stay alive
 * for long.  Recomputing drops some of them and makes them again, from values that were kept, just
 * before the backward part reads them: memory for time. Results keep every bit; dropout makes the
 * same noise again, since noise is a function of its counter; running statistics are updated once,
 * by the forward part. */
#ifndef FACULA_RECOMPUTE_H
#define FACULA_RECOMPUTE_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* How much is dropped.  Of several ways that stay within `bytes` and `share` the one that computes
 * least is taken; when none does, or neither is given, the one that needs least memory.  All zero:
 * nothing is recomputed. */
typedef struct fac_recompute_opts {
    bool on;      /* recompute, as said above; implied by the others      */
    double share; /* of the forward bytes that are alive at one time without recomputing; 0 < share
                     < 1    */
    size_t bytes; /* forward bytes that may be alive at one time */
    const char *scopes; /* "layer1.*,layer2.*": instead, everything inside of these scopes
                           (fac_graph_push; each the shortest prefix that a pattern fits) is
                           dropped, and what others read of it is kept   */
} fac_recompute_opts;

typedef struct fac_recompute_stat {
    size_t before, after; /* forward bytes, made or made again, that are alive at one time: an
                             estimate from types */
    double macs, forward; /* multiply-adds that are done again; those of the forward part */
    int nodes;            /* that are done again            */
} fac_recompute_stat;

/* A copy of a graph with its gradients and updates (fac_grad, an optimizer).  Forward is what the
 * outputs need, so the gradients must not be outputs.  Sizes that are not known count as 1:
 * programs, which know them, do the same when their options say so (fac_program_opts.recompute).
 * stat may be NULL; NULL only when memory is gone. */
fac_graph *fac_graph_recompute(const fac_graph *g, const fac_recompute_opts *opts,
                               fac_recompute_stat *stat);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
