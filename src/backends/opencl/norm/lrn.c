/* Solver "lrn": local response normalization over channels. */
#include "graph/attr.h"
#include "backends/opencl/device/calls.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "base/optional.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_lrn.h"
#include "op_list.h"

enum { GROUP = 64 };

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!fac_cl_settle(o, p)) return false;
    if (!fac_cl_channels_last(&p->in[0]) && !fac_cl_settle_plain(o, p)) return false;
    fac_cl_lay_alike(&p->in[0], &p->out[0]);
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_dtype t = p->in[0].type.dtype;
    const fac_dims *d = &p->in[0].type.dims;
    const bool last = fac_cl_channels_last(&p->in[0]);
    int64_t size = 1, plane = 1;
    double alpha = 0, beta = 0, bias = 0;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    if (!fac_dims_count(d)) return FAC_OK;
    fac_attr_get_int(p->node, "size", &size);
    fac_attr_get_real(p->node, "alpha", &alpha);
    fac_attr_get_real(p->node, "beta", &beta);
    fac_attr_get_real(p->node, "bias", &bias);
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    const int width = last || plane < 4 ? 1 : fac_cl_width(o, t);
    const int64_t units =
        last ? fac_dims_count(d) : d->d[0] * d->d[1] * ((plane + width - 1) / width);
    fac_text_print(&options, "-DV=%d -DT=%s -DX=%s%s%s", width, fac_cl_computing(t), fac_cl_tag(t),
                   fac_text_if(last, " -DLAST"), fac_text_if(beta == 0.75, " -DTHREE_QUARTERS"));
    fac_cl_option_wide(p, &options);
    fac_status status = fac_cl_call_new(o, plan, fac_kernel_lrn, &options, "lrn", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    const int64_t before = (size - 1) / 2,
                  numbers[] = { units, d->d[1], plane, before, size - 1 - before };
    for (int k = 0; k < 5; k++) fac_cl_call_number(c, numbers[k]);
    fac_cl_call_real(c, alpha / (double)size, t);
    fac_cl_call_real(c, bias, t);
    fac_cl_call_real(c, beta, t);
    fac_cl_call_items(c, (size_t)units, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_lrn = { .name = "lrn",
                                .op = &fac_op_lrn,
                                .rank = 190,
                                .offer = offer,
                                .make = make,
                                .done = fac_cl_plan_done,
                                .run = fac_cl_plan_run };
