/* A plan: one graph with all sizes known, on one device, as a list of steps over one arena.
 * Immutable but for the profile; each run borrows a frame.  Made by compile.c from a specialized
 * graph, in this order:
 *   pipeline.c                fewer and larger nodes
 *   schedule.c                a solver for each node, and where each operand lies: a view, which
 *                             layout, in place
 *   prepack.c                 weights that the run changes, packed together
 *   side_queue.c              gradients by weights beside the rest
 *   relay.c                   consecutive steps in one launch, in the order of their levels
 *   arena.c                   an address for every root that needs one
 *   prepare.c                 packed parameters, made again when one was written
 *   execute.c                 runs it */
#ifndef FACULA_RUN_PLAN_H
#define FACULA_RUN_PLAN_H
#include "backends/device.h"
#include "facula/program.h"
#include "graph/graph_internal.h"

/* Memory that values lie in.  Several values share a root: views, and results written in place. */
typedef enum fac_root_kind {
    FAC_ROOT_ARENA,
    FAC_ROOT_INPUT,
    FAC_ROOT_OUTPUT,
    FAC_ROOT_TENSOR,
    FAC_ROOT_PREPARED,
    FAC_ROOT_PART /* of another root: what one run of a stage leaves for the next stage */
} fac_root_kind;
typedef struct fac_root {
    fac_root_kind kind;
    int index;          /* which input or output of the program, prepared item, or root */
    fac_tensor *tensor; /* parameters and constants, borrowed from the graph      */
    size_t bytes, at;   /* at: in the arena                                       */
    int first, last;    /* steps                                                  */
    int pending;        /* while scheduling: reads that are still to come         */
    bool used, written; /* by a step or as a result; a parameter that steps write over */
    bool own;           /* scratch, each thread's own                             */
} fac_root;

typedef struct fac_slot {
    int root;
    fac_layout layout;
} fac_slot; /* root -1: absent */

/* Something computed from parameters alone, before the run. */
typedef struct fac_item {
    const fac_value *value;
    const fac_solver *solver; /* NULL: just the value, in `layout` */
    int step, input;
    fac_layout layout;
    size_t bytes;
    int before; /* the root of the last item of the same value alone, counted from 1; 0: none */
} fac_item;

/* Consecutive steps that are one launch: jobs[k] is step first + k. */
typedef struct fac_relayed {
    int first, n;
    fac_relay_job *jobs;
    void *plan;
} fac_relayed;

typedef enum fac_step_kind { FAC_STEP_RUN, FAC_STEP_PACK, FAC_STEP_PACKS } fac_step_kind;
typedef struct fac_step {
    /* what a run reads, first and near each other: a device's driver leaves nothing of it in the
     * caches from one step to the next */
    fac_step_kind kind;
    bool aside, meet; /* done beside the steps that follow; after all that are (side_queue.c) */
    bool halo;        /* an output has zeros around its planes: written before the step */
    const fac_solver *solver;
    void *plan; /* the solver's, or packer's; a pack step borrows that of the step it packs for */
    const int *route; /* roots of the nin inputs, then of the nout outputs: those of in and out */
    int nin, nout;
    int work;           /* root of the scratch, or -1 */
    fac_relayed *relay; /* that it is a job of; NULL: the solver runs it */
    int input;          /* FAC_STEP_PACK: which input it packs */
    const char *label;  /* of the nodes it does */

    fac_pack_job *jobs;   /* FAC_STEP_PACKS: one for each output */
    fac_problem *problem; /* in the plan's memory: solvers may keep it */
    fac_slot *in, *out;
    fac_slot *from;  /* where a hook finds the inputs as they were before reorders and packs; NULL:
                        nobody looks */
    unsigned packed; /* bit i: input i is in the form of the solver's own */
    const char *layouts; /* see fac_step_stat */
    double
        estimate; /* seconds of a run, as the solver offered it; 0: a step of the planner's own */
    double macs, bytes; /* of all its runs for one of the program */
    fac_step_op *does;  /* see fac_step_stat */
    int ndoes;
    double seconds; /* profile, under the program's lock */
    int64_t runs;
} fac_step;

/* The steps from `first` to the next stage's; `times` runs of them make one of the next stage, or a
 * run of the program.  part: the root of what they leave for the next stage. */
typedef struct fac_stage {
    int first, part;
    int64_t times;
} fac_stage;

/* One generation of prepared items; old ones live on while a run uses them. */
typedef struct fac_prepared {
    int refs;
    uint64_t *versions; /* of plan->graph's parameters */
    fac_pack **packs;   /* one for each item           */
} fac_prepared;

/* The bodies around what runs, from the inside out; they live on the stacks of the runs that hold
 * them. */
typedef struct fac_within {
    const struct fac_within *outer;
    const char *name;  /* of the node that holds the body */
    int64_t iteration; /* -1: no loop                     */
} fac_within;

typedef struct fac_frame {
    struct fac_frame *next;
    const fac_within *within; /* of the run at hand              */
    void *arena;
    fac_span *roots, *spans; /* spans: operands of the step or relay at hand */
    double *seconds;         /* for the profile                     */
    fac_command
        *commands; /* of the last run, where the device's clock was watched: ncommands of them */
    size_t ncommands;
    struct fac_loan *params; /* by root, on a device out of sight   */
    bool wrote;              /* a step of the run at hand wrote over a parameter */
} fac_frame;

struct fac_cut;
typedef struct fac_plan {
    fac_hash key;
    uint64_t used; /* tick of the last use */
    int busy;      /* runs of it now; under the program's lock, as used is */
    fac_arena memory;
    fac_device *device;
    fac_graph *graph; /* specialized and rewritten */
    struct fac_cut
        *cut; /* flow.h: it runs in parts, and has no steps of its own; NULL: all sizes are known */
    int64_t slices;    /* of the batch, done one after the other: the graph is that of one */
    fac_stage *stages; /* nstages of them: stages.c */
    int nstages;
    fac_precision precision;
    bool no_inplace, observed; /* observed: nothing is written over, fused or a view */
    bool anomalies, dry;       /* looked for; not to be run */
    const char *only;          /* opts.solver */
    bool *relayed; /* by id of the first result of a node: to be a step of a relay; NULL: none is */
    const fac_wisdom *wisdom; /* of the options, else the device's; NULL: none */
    fac_root *roots;
    int nroots;
    size_t room_roots;
    fac_step *steps;
    int nsteps, most; /* most: operands of the step or relay that has most */
    size_t room_steps;
    fac_item *items;
    int nitems;
    size_t room_items;
    fac_slot *outputs, *updates; /* where results lie; updates: one for each parameter, root -1 if
                                    there is nothing to copy */
    bool *written;               /* by parameter: a step writes its next contents over it */
    bool updating;               /* one does */
    fac_recompute_stat recompute;
    double macs; /* of the graph before any pass */
    size_t arena_bytes, values_bytes, bound_bytes, packed_bytes, copied_bytes;
    fac_prepared *prepared; /* the newest, under the program's lock */
    fac_frame *frames;      /* free ones, under the program's lock  */
    fac_command *commands;  /* of the last run that was profiled, under the program's lock */
    size_t ncommands;
} fac_plan;

/* specialize.c: g with inputs bound to the tensors' sizes, and inputs that steer shapes to their
 * contents.  Leaves keep their names; bound inputs become constants.  Symbols that remain are an
 * error that names the value. */
fac_graph *fac_specialize(const fac_graph *g, const bool *steers, fac_tensor *const in[],
                          fac_error *err);

/* step_ops.c: fills step->does for the step of a node; false: no memory. */
bool fac_step_count(fac_plan *p, fac_step *s, int64_t runs);

/* Absent, or there before the run. */
static inline bool fac_early(const fac_value *v) { return !v || v->time != FAC_RUN; }

/* slices.c: does every image of a batch (the first dim of all inputs) see only itself?  seen: room
 * by value id. */
bool fac_by_image(const fac_graph *g, int64_t images, bool *seen);
/* slice_size.c: how many images are done at once: all, or fewer when no image sees another one and
 * near, the bytes that the cores' own caches hold, are too few for what lies between two layers.  g
 * is specialized.  after: by number of the node; how many images are done at once after it, a
 * multiple of those before, or 0: as many. */
int64_t fac_batch_slice(const fac_graph *g, size_t near, int64_t *after);
/* stages.c: the graph of so many images, with more of them after some nodes, as after[] says; NULL
 * when that is nowhere, or not the same, or there is no memory. */
fac_graph *fac_stages(const fac_graph *g, const int64_t *after, int64_t images);
/* slices.c: the graph for so many images; NULL in *out when that is not the same for fewer images.
 */
fac_status fac_batch_cut(const fac_graph *original, const fac_graph *whole, fac_tensor *const in[],
                         int64_t images, fac_graph **out, fac_error *err);

/* compile.c: a plan up to its settled graph; in[] as for a run, original: the program's graph, for
 * the order of its inputs. dry: solvers are chosen, but make nothing: a plan to look at.  NULL in
 * *out after an error. */
fac_status fac_plan_begin(const fac_graph *original, const bool *steers, fac_tensor *const in[],
                          fac_device *device, const fac_program_opts *opts, bool dry,
                          fac_plan **out, fac_error *err);
/* Its steps.  A plan that is run in parts (run/cut.c) needs none. */
fac_status fac_plan_finish(fac_plan *plan, const fac_graph *original, const fac_program_opts *opts,
                           fac_error *err);
/* What the two have made; frames, prepared parameters and parts are the run's (fac_plan_free). */
void fac_plan_drop(fac_plan *plan);
/* pipeline.c: constants and expansions; then as many passes of its table. */
fac_status fac_plan_settle(fac_plan *plan, const fac_program_opts *opts, fac_error *err);
fac_status fac_plan_rewrite(fac_plan *plan, const fac_program_opts *opts, int passes,
                            fac_error *err);
fac_type fac_plan_output(const fac_plan *plan, size_t i); /* the type of a result: of all slices */

fac_status fac_plan_schedule(fac_plan *plan, const fac_graph *original,
                             fac_error *err); /* schedule.c */
void fac_plan_place(fac_plan *plan);          /* arena.c    */

/* What a layout of the first output costs its readers: `seconds` when it is plain and blocked says
 * that they want blocks, or when it is not `layout`. */
typedef struct fac_layout_cost {
    double seconds;
    bool blocked;
    fac_layout layout;
} fac_layout_cost;
/* prepack.c, once roots have their places: the plans of steps that pack many weights. */
fac_status fac_plan_packs(fac_plan *plan, fac_error *err);

/* side_queue.c, before roots have places: steps that others need not wait for. */
fac_status fac_plan_aside(fac_plan *plan, fac_error *err);

/* relay_choice.c, before solvers are chosen: fills plan->relayed, on devices that have relays. */
fac_status fac_plan_relay_wishes(fac_plan *plan, fac_error *err);
/* relay.c.  Before roots have places: which steps are a relay, and their order, where the backend
 * has relays.  After fac_plan_packs: the backend's plans of them. */
fac_status fac_plan_relays(fac_plan *plan, fac_error *err);
fac_status fac_plan_make_relays(fac_plan *plan, fac_error *err);

/* choose.c: a solver for a problem whose operands are filled in as they are; the winner's layouts
 * are written back. NULL after an error.  offer: zero, or an earlier one, which is dropped; on
 * success the caller's, for fac_solver_make or fac_offer_drop.  The reference kernels are the last
 * resort; only: see fac_program_opts.solver. */
const fac_solver *fac_choose(const fac_plan *plan, fac_problem *p, const fac_layout_cost *cost,
                             fac_offer *offer, fac_error *err);
/* The solver that takes what no other takes: the reference kernels, on a device out of sight those
 * of the cpu. */
const fac_solver *fac_last_solver(const fac_device *d);
/* cpu_fallback.c: a node of a device out of sight, solved by the cpu with copies there and back. */
extern const fac_solver fac_solver_away;
/* Is this a name of the solver that takes what no other takes? */
bool fac_is_last_solver(const fac_device *d, const char *name);
/* Whether opts.solver is one of the device's, or what does all that they leave; NULL: none was
 * asked for. */
fac_status fac_solver_known(const fac_device *d, const char *name, fac_error *err);
/* An estimate, of a value from one layout to another. */
double fac_reorder_seconds(const fac_device *d, const fac_type *type);
/* What the best solvers for these operands estimate, with the reorders that they want, by where
 * they put the first output: in [0] plain, in [1] with channels last; INFINITY: none does. */
void fac_choose_forms(const fac_plan *plan, fac_problem *p, double best[2]);
/* Everything that could solve a problem: solvers, their variants, and their estimates in the
 * layouts that are there or in plain ones, whichever is less, which they are sorted by.  How many
 * there are; those beyond max are only counted. */
typedef struct fac_candidate {
    const fac_solver *solver;
    int variant, version;
    double seconds;
} fac_candidate;
int fac_candidates(fac_device *d, const fac_problem *p, fac_candidate *to, int max);
/* arena_listing.c: what lies where, as fac_program_arena says it. */
size_t fac_plan_arena(const fac_plan *plan, fac_arena_part *to, size_t max);
/* What wisdom calls a problem (facula/tune.h); NULL when memory is gone. */
char *fac_problem_key(const fac_problem *p);
/* What the best fast solver says that this node of plain operands takes, reorders not counted;
 * INFINITY when none offers. */
double fac_solver_seconds(fac_device *device, const char *only, fac_precision precision,
                          const fac_node *n);
/* The same once all passes are done, of solvers for relays alone, which are not counted above, or
 * of the others. */
double fac_step_seconds(fac_device *device, fac_precision precision, const fac_node *n,
                        bool relayed);
/* A fast solver would take this node of plain operands, body included: for the epilogue pass. */
bool fac_would_solve(fac_device *device, const char *only, fac_precision precision,
                     const fac_node *n);
#endif
