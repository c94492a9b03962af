/* cast/blocks: weights in blocks of few bits as floats, such as the rows of a table of tokens. */
#include "backends/opencl/product/blocks.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_cast_blocks.h"
#include "op_list.h"

enum { UNIT = 8, GROUP = 128 };

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    if (p->node->body[0] || p->out[0].type.dtype != FAC_F32 ||
        !fac_cl_blocks_name(p->in[0].type.dtype))
        return false;
    p->in[0].layout = fac_layout_plain(&p->in[0].type.dims);
    p->out[0].layout = fac_layout_plain(&p->out[0].type.dims);
    offer->seconds = fac_cl_price(fac_opencl_of(d), p, 1);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const int64_t units = fac_dims_count(&p->out[0].type.dims) / UNIT;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    if (!units) return FAC_OK;
    fac_cl_option_blocks(p->in[0].type.dtype, &options);
    const fac_status status =
        fac_cl_call_blocks(o, plan, fac_kernel_cast_blocks, &options, "floats", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_bytes(c, 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, units);
    fac_cl_call_items(c, (size_t)units, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_cast_blocks = { .name = "cast/blocks",
                                        .op = &fac_op_cast,
                                        .rank = 436,
                                        .offer = offer,
                                        .make = make,
                                        .done = fac_cl_plan_done,
                                        .run = fac_cl_plan_run };
