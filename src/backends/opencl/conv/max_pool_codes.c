/* max_pool_codes/levels: a max pool of bits on any device; see max_pool_codes.cl. */
#include <limits.h>
#include "backends/opencl/device/calls.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_max_pool_codes.h"
#include "op_list.h"
#include "ops/max_pool_codes.h"

enum { GROUP = 64 };

static bool read_problem(const fac_opencl *o, fac_problem *p, fac_pool_geom *g) {
    const fac_dtype basis = p->in[1].type.dtype;
    if (p->in[0].type.dtype != FAC_U32 || (basis != FAC_F32 && basis != FAC_NONE)) return false;
    if (!fac_cl_settle_plain(o, p) || !fac_max_pool_codes_geometry(p->node, g)) return false;
    const int64_t words = fac_dims_count(&p->out[0].type.dims);
    return words > 0 && words < INT_MAX && p->in[0].type.dims.d[0] > 0;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    fac_pool_geom g;
    if (p->node->body[0] || !read_problem(o, p, &g)) return false;
    offer->seconds = fac_cl_price(o, p, 1);
    *FAC_DRAFT(offer, fac_pool_geom) = g;
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    const fac_pool_geom *g = p->draft;
    const fac_window *h = &g->window[1], *w = &g->window[2];
    const fac_dims *y = &p->out[0].type.dims;
    fac_text_print(&options, "-DT=float -DV=1 -DPLANES=%d", (int)y->d[0]);
    if (p->in[1].type.dtype == FAC_NONE) fac_text_add(&options, " -DSIGNS");
    fac_cl_option_wide(p, &options);
    const fac_status status =
        fac_cl_call_new(o, plan, fac_kernel_max_pool_codes, &options, "pool", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    const int64_t units = fac_dims_count(y) / y->d[0];
    const int64_t numbers[] = { units,     y->d[1],     h->in,       w->in,     h->out,
                                w->out,    y->d[4],     h->kernel,   w->kernel, h->stride,
                                w->stride, h->dilation, w->dilation, h->pad,    w->pad };
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    fac_cl_call_items(c, (size_t)units, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_max_pool_codes = { .name = "max_pool_codes/levels",
                                           .op = &fac_op_max_pool_codes,
                                           .rank = 142,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_cl_plan_done,
                                           .run = fac_cl_plan_run };
