/* Solver "random_bits": the numbers of the host, bit for bit. */
#include "graph/attr.h"
#include "backends/opencl/device/calls.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_random_bits.h"
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
    int64_t stream = 0;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    if (!count) return FAC_OK;
    fac_attr_get_int(p->node, "stream", &stream);
    fac_text_print(&options, "-DV=1 -DT=ulong -DI=%s", fac_cl_tag(p->in[0].type.dtype));
    fac_status status =
        fac_cl_call_new(o, plan, fac_kernel_random_bits, &options, "random_bits", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, count);
    fac_cl_call_number(c, stream);
    fac_cl_call_items(c, (size_t)((count + 1) / 2), GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_random_bits = { .name = "random_bits",
                                        .op = &fac_op_random_bits,
                                        .rank = 110,
                                        .offer = offer,
                                        .make = make,
                                        .done = fac_cl_plan_done,
                                        .run = fac_cl_plan_run };
