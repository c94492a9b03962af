/* Solver "reorder": `identity` from one layout to another, for every element type of whole bytes.
 * A copy moves bits, so it is exact. */
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "cpu_solvers.h"
#include "op_list.h"

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_operand *x = &p->in[0], *y = &p->out[0];
    if (p->nin != 1 || p->nout != 1 || p->node->body[0] || x->type.dtype != y->type.dtype)
        return false;
    if (fac_copy_size(x->type.dtype) == 0 || !fac_dims_equal(&x->type.dims, &y->type.dims))
        return false;
    if (!fac_copy_fits(&x->layout, &y->layout)) return false;
    double bytes =
        2.0 * (double)fac_dims_count(&x->type.dims) * (double)fac_copy_size(x->type.dtype);
    o->seconds = fac_cpu_speeds.step + bytes / fac_cpu_of(d)->bandwidth;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    fac_copy *r = fac_solver_plan(p, sizeof *r, err);
    if (!r) return FAC_E_NOMEM;
    fac_copy_plan(r, &p->in[0].type.dims, &p->in[0].layout, &p->out[0].layout,
                  fac_copy_size(p->in[0].type.dtype));
    *out = r;
    return FAC_OK;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    fac_copy_run(arg, fac_cpu_of(d), fac_span_bytes(in[0]), fac_span_bytes(out[0]));
    return FAC_OK;
}

const fac_solver fac_cpu_reorder = { .name = "reorder",
                                     .op = &fac_op_identity,
                                     .rank = 700,
                                     .offer = offer,
                                     .make = make,
                                     .done = fac_solver_done,
                                     .run = run };
