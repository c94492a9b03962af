/* code_limits/search: on devices that compute in 64 bits; see code_limits.cl. */
#include <limits.h>
#include "backends/opencl/device/calls.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_code_limits.h"
#include "op_list.h"
#include "ops/code_limits.h"

enum { GROUP = 64, INPUTS = 5 };

static bool read_problem(const fac_opencl *o, fac_problem *p) {
    if (!o->limits.fp64 || !fac_cl_settle_plain(o, p)) return false;
    for (int i = 0; i < INPUTS; i++) {
        const fac_dtype t = p->in[i].type.dtype;
        if (t != FAC_F32 && (t != FAC_NONE || i == 0)) return false;
    }
    return p->in[0].type.dims.d[1] > 0 && p->in[0].type.dims.d[1] < INT_MAX / 32;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (p->node->body[0] || !read_problem(o, p)) return false;
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    const fac_code_limits_attrs *a = p->node->attrs;
    const fac_operand *basis = &p->in[INPUTS - 1];
    const bool sign = basis->type.dtype == FAC_NONE;
    const fac_operand *x = &p->in[1];
    fac_text_print(&options, "-DT=float -DV=1 -DX_PLANES=%d -DY_PLANES=%d",
                   x->type.dtype == FAC_NONE ? 1 : (int)x->type.dims.d[0],
                   sign ? 1 : (int)basis->type.dims.d[0]);
    if (sign) fac_text_add(&options, " -DY_SIGNS");
    if (a->relu) fac_text_add(&options, " -DRELU");
    fac_cl_option_wide(p, &options);
    const fac_status status =
        fac_cl_call_new(o, plan, fac_kernel_code_limits, &options, "limits", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    for (int i = 0; i < INPUTS; i++) fac_cl_call_in(c, p, i);
    fac_cl_call_out(c, p, 0);
    const int64_t K = p->in[0].type.dims.d[1];
    fac_cl_call_number(c, K);
    fac_cl_call_number(c, a->reach);
    for (int i = 1; i < INPUTS - 1; i++) fac_cl_call_number(c, p->in[i].type.dtype != FAC_NONE);
    fac_cl_call_items(c, (size_t)K, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_code_limits = { .name = "code_limits/search",
                                        .op = &fac_op_code_limits,
                                        .rank = 143,
                                        .offer = offer,
                                        .make = make,
                                        .done = fac_cl_plan_done,
                                        .run = fac_cl_plan_run };
