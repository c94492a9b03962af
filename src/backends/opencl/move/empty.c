/* Solver "empty": a node whose results have no elements needs no kernel. */
#include "opencl_solvers.h"
#include "backends/opencl/device/opencl.h"
#include "backends/gpu/speed.h"

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_op *op = p->node->op;
    (void)d;
    /* what has no meaning of its own is expanded */
    if (op->is & FAC_OP_DYNAMIC || !(op->map || op->move || op->ref || op->is & FAC_OP_BODIES))
        return false;
    for (int k = 0; k < p->nout; k++)
        if (p->out[k].type.dtype != FAC_NONE && fac_dims_count(&p->out[k].type.dims)) return false;
    offer->seconds = fac_gpu_costs.nothing;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **plan, fac_error *err) {
    (void)d, (void)p, (void)err;
    *plan = NULL;
    return FAC_OK;
}

static fac_status run(const void *plan, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)plan, (void)d, (void)in, (void)out, (void)work, (void)err;
    return FAC_OK;
}

const fac_solver fac_cl_empty = {
    .name = "empty", .rank = 10, .offer = offer, .make = make, .run = run
};
