/* facula/program.h: a graph made runnable.
 *
 * Work is done as early as its data allows.  There are three times:
 *   compile   constants and shapes       folding, fusing, choosing solvers, planning memory
 *   prepare   parameters                 packing and transforming weights, folding batch norm;
 *             again only when their version changed, and shared by all programs of the device
 *   run       inputs, and parameters that this program updates
 * A program holds one plan for each set of input shapes it has met.  A run allocates nothing when
 * every shape in it follows from the input shapes and all outputs are given. */
#ifndef FACULA_PROGRAM_H
#define FACULA_PROGRAM_H

#include "facula/device.h"
#include "facula/graph.h"
#include "facula/recompute.h"
#include "facula/tune.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_program fac_program;

/* Called after each node of a program compiled with it.  Such a program fuses nothing, writes over
 * nothing, makes no views, and does a batch whole: every node is a step with memory of its own.
 * value is borrowed for the call. */
typedef bool (*fac_observer)(void *self, const char *node,
                             const fac_tensor *value); /* false stops the run */

/* The same with all tensors of the node, which may be replaced: PyTorch's forward hooks.  Called
 * after each node that depends on the inputs of the run, in the order of execution, on the thread
 * of the run; inside of loops and branches each time a node runs there, but not for the node that
 * holds the body.  Loops are not unrolled then: every iteration runs the same nodes. Contents are
 * fetched when they are asked for, so nodes that a hook passes over cost nothing.  An error ends
 * the run. */
typedef struct fac_hooked
    fac_hooked; /* a node that has just run; it and its tensors are borrowed for the call */
typedef fac_status (*fac_hook)(void *self, fac_hooked *h, fac_error *err);

const struct fac_node *fac_hooked_node(
    const fac_hooked *h); /* op, attributes, types: facula/op.h */
/* Its own, else "scope.op_7"; inside of a body after that of the node that holds it:
 * "loop_3.mul_7", the same in each iteration. */
const char *fac_hooked_name(const fac_hooked *h);
const char *fac_hooked_path(const fac_hooked *h); /* with the iterations: "loop_3.0.mul_7" */
int64_t fac_hooked_iteration(
    const fac_hooked *h,
    int loop); /* of the loops around it, the innermost is 0; -1: no such loop */
/* NULL: absent; also an output that nothing reads and an input of which only the shape or the known
 * contents count. */
fac_status fac_hooked_input(fac_hooked *h, int i, const fac_tensor **out, fac_error *err);
/* What the node computed, or what replaced it; NULL: an output that nothing reads. */
fac_status fac_hooked_output(fac_hooked *h, int k, const fac_tensor **out, fac_error *err);
/* Output k becomes a copy of this, of the same type: for every later reader, updates and the
 * outputs of the program. */
fac_status fac_hooked_replace(fac_hooked *h, int k, const fac_tensor *with, fac_error *err);

typedef struct fac_program_opts {
    fac_precision precision; /* of products inside f32 ops */
    bool no_fuse;       /* every node its own step                                            */
    bool no_inplace;    /* no step writes over its own input                                  */
    const char *solver; /* only this one for nodes of its op; FAC_E_UNSUPPORTED when it makes no
                           offer, FAC_E_ARGUMENT when the device has none of that name */
    fac_observer observe;
    void *observe_self;
    fac_hook hook; /* before observe, which sees what it replaced                        */
    void *hook_self;
    bool detect_anomaly; /* a run stops at the first node that makes NaN or infinity, and its error
                            names it; as slow as with an observer, and parameters stay as they were
                          */
    fac_recompute_opts
        recompute; /* of every plan, for its own sizes; not with an observer or a hook   */
    const fac_wisdom *wisdom; /* instead of the device's; it must outlive the program */
    bool plan_only; /* for fac_program_plan alone: solvers are chosen and memory is laid out, but no
                       kernel is made, no weight is read or packed, and a run is refused */
} fac_program_opts;

/* Takes a snapshot: g may be changed or freed afterwards.  The parameter tensors are retained, and
 * shared with every other program that has them. */
fac_status fac_program_new(const fac_graph *g, fac_device *device, const fac_program_opts *opts,
                           fac_program **out, fac_error *err);
/* Frees the program and its plans; no run may be under way.  NULL is fine. */
void fac_program_free(fac_program *p);

/* Memory of one plan, bytes.  bound: the most that is alive at any one step, so no plan can be
 * smaller.  copied: what a run copies to parameters after its last step, because their next
 * contents could not be written over them. */
typedef struct fac_plan_stat {
    size_t arena, values, bound, packed;
    int steps;
    size_t copied;
    fac_recompute_stat recompute; /* zeros without */
    double macs;                  /* multiply-adds of a run, counted in the graph before any pass */
} fac_plan_stat;

/* Compiles and (unless opts.plan_only) prepares for these inputs now instead of at the first run:
 * in[] as in fac_program_run (only the types and, for small integer inputs that steer shapes, the
 * contents are used).  stat may be NULL. */
fac_status fac_program_plan(fac_program *p, fac_tensor *const in[], fac_plan_stat *stat,
                            fac_error *err);

/* Runs once: in[] and out[] in the order of the graph's inputs and outputs.  out[i] NULL: a new
 * tensor is put there, owned by the caller; else it is written and must have the output's type.
 * Returns when the work is submitted; reading an output waits for it.  When it fails no out[i] was
 * set. Parameters with an update are written by the steps themselves, as soon as everybody else has
 * read their old contents.  So when a run fails in its middle each parameter holds either its old
 * or its next contents, whole; a program with an observer or a hook writes none before all steps
 * are done, and one that fails before its first step (wrong inputs, no memory) has changed none.
 * Thread safe.  Runs of a program without updates overlap, each with memory of its own; runs with
 * updates take turns. */
fac_status fac_program_run(fac_program *p, fac_tensor *const in[], fac_tensor *out[],
                           fac_error *err);

/* One op of the graph that a step does: its own, and those of a fused body or an epilogue.
 * elements: of its result. */
typedef struct fac_step_op {
    const char *op;
    double macs, other, elements;
} fac_step_op;

/* Time and work of each step since fac_program_profile(p, true), for the plan that was used last.
 * Profiling synchronises after each step unless the device has timestamps; then times are kernel
 * times, and the run is not slowed. */
typedef struct fac_step_stat {
    const char *nodes, *solver;
    double seconds, macs, bytes; /* seconds: of all runs together; bytes: of operands, of weights as
                                    they are packed */
    int64_t runs;
    bool fallback;       /* the device has no kernel: its cpu runs the step, copying both ways */
    const char *op;      /* "conv2d", "fused"; "reorder" and "pack" are the planner's own   */
    const char *layouts; /* first input -> first output: "n16c+1 -> n16c" (halo after the +), "plain
                            -> last" (channels) */
    int variant;
    const fac_step_op *does; /* the ops merged into the step, one by one; the planner's own steps
                                have none */
    int ndoes;               /* how many does has */
} fac_step_stat;
void fac_program_profile(fac_program *p, bool on);

/* Returns how many steps there are, and writes at most max.  Strings live as long as p. */
size_t fac_program_steps(fac_program *p, fac_step_stat *to, size_t max);

/* What the device was told to do in the last profiled run of the plan used last, in order; none
 * where the device has no clock of its own.  How many there are.  Step: as fac_program_steps
 * counts, -1 after the last one; groups 0: a copy, no kernel. */
typedef struct fac_launch_stat {
    int step;
    char kernel[40];
    double start, seconds; /* start: after that of the first one */
    size_t groups, items;  /* items: of a group                   */
} fac_launch_stat;
size_t fac_program_launches(fac_program *p, fac_launch_stat *to, size_t max);

/* What lies in the arena of the plan used last: `bytes` from `at` on, from step `first` to step
 * `last`; several values may share a part, one written over the other.  By address; how many there
 * are; texts live as long as p. */
typedef struct fac_arena_part {
    const char *made_by; /* the nodes of the step that writes it first */
    size_t at, bytes;
    int first, last;
    bool scratch; /* of that step alone */
} fac_arena_part;
size_t fac_program_arena(fac_program *p, fac_arena_part *to, size_t max);

/* The eager convenience: computes v and what it needs.  All leaves must have data. */
fac_status fac_eval(fac_value *v, fac_device *device, fac_tensor **out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
