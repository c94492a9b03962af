/* What becomes of plans: they are prepared, run, looked at, and given back. */
#ifndef FACULA_RUN_RUN_H
#define FACULA_RUN_RUN_H
#include "plan/plan.h"

/* plan_whole.c: all of a plan, in parts where it has to be (flow.h); arguments of fac_plan_begin.
 */
fac_status fac_plan_new(const fac_graph *original, const bool *steers, fac_tensor *const in[],
                        fac_device *device, const fac_program_opts *opts, bool dry, fac_plan **out,
                        fac_error *err);
void fac_plan_free(fac_plan *plan);

/* prepare.c, under the program's lock: plan->prepared is up to date afterwards, with one more
 * reference in *out. */
fac_status fac_prepare(fac_plan *plan, fac_prepared **out, fac_error *err);
void fac_prepared_put(fac_plan *plan, fac_prepared *p); /* under the program's lock; NULL is fine */

/* execute.c: in[] and out[] are memory of the program's inputs and outputs.  fac_frame_end: after
 * the last use of the roots. */
fac_status fac_frame_new(const fac_plan *plan, fac_frame **out, fac_error *err);
void fac_frame_free(const fac_plan *plan, fac_frame *f);
fac_status fac_execute(const fac_plan *plan, fac_frame *f, const fac_prepared *prepared,
                       const fac_span *in, const fac_span *out, bool timed,
                       const fac_program_opts *opts, fac_error *err);
void fac_frame_end(const fac_plan *plan, fac_frame *f);
/* Where the first element of a plain slot is. */
static inline fac_span fac_span_of(const fac_frame *f, const fac_slot *slot, const fac_type *type) {
    const fac_span s = f->roots[slot->root];
    return (fac_span){ s.memory, s.at + (size_t)slot->layout.offset *
                                            (size_t)fac_dtype_get(type->dtype)->block_bytes };
}

/* update.c: parameters that steps write over are made our own where they are borrowed.  They get a
 * new version when the first of these steps begins, so that nothing is prepared from the old
 * one, and another one at the end: after a run that failed earlier they have the version, and the
 * contents, that they had.  fac_copy_updates copies to the others. */
fac_status fac_begin_updates(const fac_plan *plan, fac_error *err);
void fac_touch_updates(const fac_plan *plan);
fac_status fac_copy_updates(const fac_plan *plan, const fac_frame *f, fac_error *err);

/* anomaly.c: an error that names the node when a step made NaN or infinity; meant: by id of a
 * value, infinities that a constant brought in, filled in as steps go by. */
fac_status fac_anomaly(const fac_plan *plan, const fac_step *s, const fac_span *in,
                       const fac_span *out, bool *meant, fac_error *err);

/* hook.c: opts->hook, then opts->observe, called for a step that has just run.  fac_name_nodes
 * gives every node without a name the one that it is known by, so that it keeps it through all
 * passes; false when memory is gone. */
bool fac_name_nodes(fac_graph *g);
fac_status fac_call_hooks(const fac_plan *plan, const fac_frame *f, const fac_step *s,
                          const fac_program_opts *opts, fac_error *err);
#endif
