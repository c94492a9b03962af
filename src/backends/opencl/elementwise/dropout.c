/* Solver "dropout": the noise of the host, bit for bit. */
#include <math.h>
#include "graph/attr.h"
#include "backends/opencl/device/calls.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/reduce/fold.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_dropout.h"
#include "op_list.h"

enum { GROUP = 128, AHEAD = 2, HOLDS = 2048 }; /* HOLDS: items of a compute unit */

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!fac_cl_settle_plain(o, p)) return false;
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_dtype t = p->in[0].type.dtype;
    const int64_t count = fac_dims_count(&p->in[0].type.dims);
    const bool training = fac_attr_flag(p->node, "training"),
               mask = p->nout > 1 && p->out[1].type.dtype != FAC_NONE;
    double ratio = 0;
    int64_t stream = 0;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    if (!count) return FAC_OK;
    fac_attr_get_real(p->node, "ratio", &ratio);
    fac_attr_get_int(p->node, "stream", &stream);
    const uint64_t below = ((uint64_t)ceil(ratio * 0x1p53) << 11) - 1;
    const int near = fac_cl_near_all(o, p);
    const int ahead =
        o->limits.gpu && count / near >= (int64_t)o->limits.units * HOLDS * AHEAD ? AHEAD : 1;
    fac_text_print(&options, "-DV=%d -DT=%s -DX=%s -DI=%s", near, fac_cl_computing(t),
                   fac_cl_tag(t), training ? fac_cl_tag(p->in[1].type.dtype) : "u8");
    if (near > 1) fac_text_add(&options, " -DALIGNED");
    if (training && ratio > 0) fac_text_add(&options, " -DNOISE");
    fac_text_print(&options, " -DAHEAD=%d", ahead);
    if (mask) fac_text_add(&options, " -DMASK");
    if (o->limits.gpu && (uint32_t)below == UINT32_MAX) fac_text_add(&options, " -DUPPER");
    if (o->limits.gpu)
        fac_cl_option_wide(p, &options);
    else
        fac_text_add(&options,
                     " -DWIDE"); /* compilers for CPUs see neighbours by numbers of 64 bits alone */
    fac_status status = fac_cl_call_new(o, plan, fac_kernel_dropout, &options, "dropout", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_out(c, p, mask ? 1 : 0);
    fac_cl_call_in(c, p, training ? 1 : 0);
    fac_cl_call_number(c, count);
    fac_cl_call_number(c, (int64_t)below);
    fac_cl_call_number(c, stream);
    fac_cl_call_real(c, training ? 1 / (1 - ratio) : 1, t);
    const int64_t each = (int64_t)GROUP * ahead;
    fac_cl_call_items(c, (size_t)((count / near + each - 1) / each * GROUP), GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_dropout = { .name = "dropout",
                                    .op = &fac_op_dropout,
                                    .rank = 100,
                                    .offer = offer,
                                    .make = make,
                                    .done = fac_cl_plan_done,
                                    .run = fac_cl_plan_run };
