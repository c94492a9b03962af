/* Internal to the scheduler: steps.c makes the parts of a plan, placement.c says where values lie,
 * in_place.c which share memory, schedule.c goes through the nodes. */
#ifndef FACULA_RUN_SCHEDULE_H
#define FACULA_RUN_SCHEDULE_H
#include "plan/plan.h"

/* Another place where the same value lies, in another layout. */
typedef struct fac_copy {
    struct fac_copy *next;
    fac_slot slot;
} fac_copy;
typedef struct fac_where {
    fac_slot slot;
    fac_copy *copies;
    bool set;
    int item;
} fac_where; /* item: see fac_item.before */

/* Along the axis of the concat that makes `whole`; whole NULL: no part of anything. */
typedef struct fac_part {
    const fac_value *whole;
    int64_t start;
} fac_part;

/* How an image should lie: a wish, which the solvers' estimates may outweigh. */
typedef enum fac_form { FAC_FORM_ANY, FAC_FORM_PLAIN, FAC_FORM_LAST } fac_form;

typedef struct fac_scheduler {
    fac_plan *plan;
    const fac_graph *original;
    fac_where *at; /* by value id */
    int *wish;     /* by value id: the halo that readers would like */
    const fac_value *
        *becomes; /* by id of a value: a parameter whose next contents it is and that may be written
                     over; by that parameter's id: another one; NULL ends the list */
    fac_part *part; /* by value id: the result of a concat that it may be written to         */
    fac_slot *room; /* by id of a concat's result: where it lies when its parts do, or root -1 */
    fac_form *form; /* by value id; NULL on devices where images have one form only */
    int now;        /* the step at hand, or the next one             */
    int stage;      /* at hand                                       */
    int64_t runs;   /* of the steps at hand for one of the program   */
    fac_error *err;
} fac_scheduler;

/* ---- steps.c: roots, prepared items, steps; -1 and NULL after an error ---- */

int fac_root_new(fac_scheduler *s, fac_root root);
/* A root of the arena for a value in this layout. */
int fac_arena_root(fac_scheduler *s, const fac_type *type, const fac_layout *layout);
int fac_item_root(fac_scheduler *s, fac_item item);
/* In the plan's memory, where solvers may keep it. */
fac_problem *fac_problem_new(fac_scheduler *s, const fac_node *node, int nin, int nout);
fac_step *fac_step_new(fac_scheduler *s, fac_problem *problem, const fac_solver *solver,
                       void *plan);
/* The step is complete: its operands count as used now. */
fac_status fac_step_done(fac_scheduler *s, fac_step *step, size_t work, bool own);
void fac_root_touch(fac_plan *p, int root, int step);

/* ---- placement.c ---- */

/* fac_choose with a status of its own: of two reasons, no solver and no memory, the one that it
 * was. */
fac_status fac_pick(fac_scheduler *s, fac_problem *q, const fac_layout_cost *cost, fac_offer *offer,
                    const fac_solver **solver);

int fac_reads_of(const fac_value *v); /* outputs and updates count */
void fac_lay(fac_scheduler *s, const fac_value *v, int root, const fac_layout *layout);
/* Inputs of the run and values made before it. */
fac_status fac_lay_early(fac_scheduler *s, const fac_value *v);
/* A layout that is blocked only in name (one pixel planes, whole blocks, no halo) is plain. */
void fac_layout_settle(fac_layout *l, const fac_dims *d);
/* v in this layout, by a reorder step or, before the run, by an item. */
fac_status fac_slot_in(fac_scheduler *s, const fac_value *v, const fac_layout *want, fac_slot *out);

/* A step that copies v to a place that is there already. */
fac_status fac_copy_to(fac_scheduler *s, const fac_value *v, const fac_slot *to);

/* ---- views.c ---- */

/* Layouts of all outputs of n when they are views of its first input, which is blocked; scratch: as
 * many layouts. */
bool fac_view_blocked(const fac_node *n, const fac_layout *x, fac_layout *out, fac_layout *scratch);

/* ---- concat.c ---- */

/* Fills s->part, and makes the wishes of parts and wholes one. */
void fac_parts(fac_scheduler *s);
/* May v, made in this layout, be a slice of the concat that reads it?  Then where. */
bool fac_part_alike(const fac_scheduler *s, const fac_value *v, const fac_layout *like);
fac_status fac_part_slot(fac_scheduler *s, const fac_value *v, const fac_layout *like,
                         fac_slot *out);
/* A concat of channels whose parts can be written to their places when they have their channels
 * last. */
bool fac_joins_last(const fac_scheduler *s, const fac_node *n);
/* A concat whose parts, or some of them, lie in their places: copies the others, and its result is
 * there. */
fac_status fac_join_parts(fac_scheduler *s, const fac_node *n, bool *joined);

/* ---- stages.c ---- */

bool fac_gathers(const fac_node *n); /* images of several slices: a stage ends there */
fac_status fac_stages_begin(fac_scheduler *s);
fac_status fac_stage_end(fac_scheduler *s, const fac_node *n);

/* ---- layout_choice.c ---- */

/* Fills s->form for devices that have a choice. */
fac_status fac_forms(fac_scheduler *s);

/* ---- prepack.c ---- */

/* Steps that pack weights become few, on devices with a packer. */
fac_status fac_merge_packs(fac_scheduler *s);

/* ---- in_place.c ---- */

/* Fills s->becomes; false when memory is gone. */
bool fac_becomes(fac_scheduler *s);
/* The root that output k of the step may be written to: of an input that dies here and lies as the
 * output would, or of the parameter that it is the next contents of; else -1.  The step's own reads
 * are done. */
int fac_in_place(fac_scheduler *s, const fac_node *n, const fac_step *step, int k);
#endif
