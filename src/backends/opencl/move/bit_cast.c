/* Solver "bit_cast": the same bits as another dtype, where that is no view. */
#include "backends/opencl/device/calls.h"
#include "backends/opencl/move/copy.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_bit_cast.h"
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
    const fac_status status =
        fac_cl_call_new(o, plan, fac_kernel_bit_cast, &options, "cast_bits", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, count);
    fac_cl_call_items(c, (size_t)count, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_bit_cast = { .name = "bit_cast",
                                     .op = &fac_op_bit_cast,
                                     .rank = 133,
                                     .offer = offer,
                                     .make = make,
                                     .done = fac_cl_plan_done,
                                     .run = fac_cl_plan_run };
