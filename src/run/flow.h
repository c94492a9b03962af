/* Where a run finds out what the plan could not know: bodies that run as often as data says, and
 * sizes that data makes.
 *
 *   flow.c   one node with bodies, run by programs of them
 *   host_op.c  one node whose op works on tensors of the host
 *   cut.c    a plan in three parts: what comes before such nodes, these, and the rest, which is
 *            planned when the sizes are there */
#ifndef FACULA_RUN_FLOW_H
#define FACULA_RUN_FLOW_H
#include "plan/plan.h"

/* Runs at a cut. */
static inline bool fac_cuts(const fac_op *op) { return op->is & FAC_OP_FLOW || op->host; }
/* in[], out[]: as for fac_op.host, wherever the inputs lie. */
fac_status fac_host_op_run(const fac_node *n, fac_tensor *const in[], fac_tensor *out[],
                           fac_error *err);

/* call, if or loop: its bodies as programs; or an op of the host, which has none. */
typedef struct fac_bodies {
    const fac_node *n;
    fac_device *device;
    fac_program *program[2];
} fac_bodies;
fac_status fac_bodies_new(const fac_node *n, fac_device *device, const fac_program_opts *opts,
                          fac_bodies *out, fac_error *err);
void fac_bodies_free(fac_bodies *b);
/* in[] as the node's inputs, NULL where it has none; out[] receives new tensors.  All that changes
 * is in the tensors. */
fac_status fac_bodies_run(const fac_bodies *b, fac_tensor *const in[], fac_tensor *out[],
                          const fac_within *within, fac_error *err);

typedef struct fac_cut fac_cut;
/* *out stays NULL when nothing of g has to wait for data.  Names of g's inputs are those of
 * original's. */
fac_status fac_cut_new(const fac_graph *g, const fac_graph *original, fac_device *device,
                       const fac_program_opts *opts, fac_cut **out, fac_error *err);
void fac_cut_free(fac_cut *c);
/* in[], out[]: as for fac_program_run of original. */
fac_status fac_cut_run(const fac_cut *c, fac_tensor *const in[], fac_tensor *out[],
                       const fac_within *within, fac_error *err);
/* Steps of all its programs, as fac_program_steps. */
size_t fac_cut_steps(const fac_cut *c, fac_step_stat *to, size_t max);
void fac_cut_profile(const fac_cut *c, bool on);
#endif
