/* Solver "find_keys": numbers looked up in short lists of keys.  Elements that must be keys are
 * left to the cpu, which names the one that is none. */
#include "backends/opencl/device/calls.h"
#include "backends/gpu/speed.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_find_keys.h"
#include "graph/attr.h"
#include "op_list.h"

enum { GROUP = 64 };

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    int64_t must = 0;
    fac_attr_get_int(p->node, "must", &must);
    if (must || p->in[0].type.dtype == FAC_BOOL || !fac_cl_settle_plain(o, p)) return false;
    const double looks =
        (double)fac_dims_count(&p->out[0].type.dims) * (double)p->in[1].type.dims.d[0];
    offer->seconds = fac_cl_price(o, p, 1) + looks / fac_gpu_flops(&o->limits);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const int64_t count = fac_dims_count(&p->out[0].type.dims);
    const fac_dtype t = p->in[0].type.dtype;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    if (!count) return FAC_OK;
    fac_text_print(&options, "-DV=1 -DT=%s -DX=%s", fac_cl_computing(t), fac_cl_tag(t));
    fac_cl_option_wide(p, &options);
    const fac_status status =
        fac_cl_call_new(o, plan, fac_kernel_find_keys, &options, "find", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, count);
    fac_cl_call_number(c, p->in[1].type.dims.d[0]);
    fac_cl_call_items(c, (size_t)count, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_find_keys = { .name = "find_keys",
                                      .op = &fac_op_find_keys,
                                      .rank = 132,
                                      .offer = offer,
                                      .make = make,
                                      .done = fac_cl_plan_done,
                                      .run = fac_cl_plan_run };
