/* Solvers "bit_cast" and "resize": elements in their row-major order, as another dtype of as many
 * bits where that is no view, or as many as fit under other dims. */
#include "backends/opencl/device/calls.h"
#include "backends/opencl/move/copy.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_flat.h"
#include "op_list.h"

enum { GROUP = 64 };

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!fac_cl_settle_plain(o, p)) return false;
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const int64_t count = fac_dims_count(&p->out[0].type.dims);
    const size_t bytes = (size_t)fac_dtype_get(p->in[0].type.dtype)->block_bytes;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    if (!count) return FAC_OK;
    fac_text_print(&options, "-DV=1 -DT=float -DM=%s", fac_cl_bits(bytes));
    if (p->out[0].type.dtype == FAC_BOOL) fac_text_add(&options, " -DBOOL");
    fac_cl_option_wide(p, &options);
    const fac_status status = fac_cl_call_new(o, plan, fac_kernel_flat, &options, "flat", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, count);
    fac_cl_call_number(c, fac_dims_count(&p->in[0].type.dims));
    fac_cl_call_items(c, (size_t)count, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

#define SOLVER(of)                                                                                 \
    .name = #of, .op = &fac_op_##of, .offer = offer, .make = make, .done = fac_cl_plan_done,       \
    .run = fac_cl_plan_run
const fac_solver fac_cl_bit_cast = { SOLVER(bit_cast), .rank = 133 };
const fac_solver fac_cl_resize = { SOLVER(resize), .rank = 135 };
