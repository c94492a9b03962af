/* Solvers "scan" (cum_sum, cum_prod) and "top_k": lines of contiguous operands, a group of work
 * items each. */
#include <string.h>
#include "graph/attr.h"
#include "backends/opencl/device/calls.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_scan.h"
#include "op_list.h"
#include "ops/lines.h"

enum { TEAM = 64, SHORT = 32 };

static bool is_scan(const fac_node *n) { return FAC_IS(n, cum_sum) || FAC_IS(n, cum_prod); }

static fac_lines lines_of(const fac_problem *p) {
    const fac_dims *x = &p->in[0].type.dims;
    int64_t axis = 0;
    if (is_scan(p->node))
        axis = p->in[1].known->v[0];
    else
        fac_attr_get_int(p->node, "axis", &axis);
    return fac_lines_of(x, fac_axis(axis, x->n ? x->n : 1));
}

/* Work items for lines of this size: a CPU takes one for each, but for few long ones. */
static int team_of(const fac_opencl *o, const fac_lines *l) {
    int team = 1;
    if (l->size < SHORT || (!o->limits.gpu && l->outer * l->inner > TEAM)) return 1;
    while (team < TEAM && (size_t)team * 2 <= o->limits.group && team * 4 < l->size) team *= 2;
    return team;
}

static bool offer_any(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!p->in[1].known || p->in[1].known->symbolic || !fac_cl_settle_plain(o, p)) return false;
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}
static bool offer_scan(fac_device *d, fac_problem *p, fac_offer *o) {
    return is_scan(p->node) && offer_any(d, p, o);
}

static fac_status add_scan(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_dtype t = p->in[0].type.dtype;
    const bool sum = FAC_IS(p->node, cum_sum);
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    if (!fac_dims_count(&p->in[0].type.dims)) return FAC_OK;
    const fac_lines l = lines_of(p);
    const int team = team_of(o, &l);
    fac_text_print(&options, "-DSCAN -DV=1 -DT=%s -DX=%s -DG=%d -DOPERATOR=%s -DSTART=%d",
                   fac_cl_computing(t), fac_cl_tag(t), team, sum ? "+" : "*", !sum);
    if (o->limits.gpu && team > 1) fac_text_add(&options, " -DRUN=16");
    if (fac_attr_flag(p->node, "exclusive")) fac_text_add(&options, " -DEXCLUSIVE");
    if (fac_attr_flag(p->node, "reverse")) fac_text_add(&options, " -DREVERSED");
    fac_cl_option_wide(p, &options);
    fac_status status = fac_cl_call_new(o, plan, fac_kernel_scan, &options, "scan", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, l.outer * l.inner);
    fac_cl_call_number(c, l.size);
    fac_cl_call_number(c, l.inner);
    fac_cl_call_items(c, (size_t)(l.outer * l.inner) * (size_t)team, (size_t)team);
    return FAC_OK;
}

static fac_status add_top(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_dtype t = p->in[0].type.dtype;
    const bool index = p->nout > 1 && p->out[1].type.dtype != FAC_NONE;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    if (!fac_dims_count(&p->out[0].type.dims)) return FAC_OK;
    const fac_lines l = lines_of(p);
    const int team = team_of(o, &l);
    fac_text_print(&options, "-DTOP -DV=1 -DT=%s -DX=%s -DG=%d%s", fac_cl_computing(t),
                   fac_cl_tag(t), team, fac_attr_flag(p->node, "smallest") ? " -DSMALLEST" : "");
    fac_cl_option_wide(p, &options);
    fac_status status = fac_cl_call_new(o, plan, fac_kernel_scan, &options, "top", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_out(c, p, index ? 1 : 0);
    fac_cl_call_number(c, l.outer * l.inner);
    fac_cl_call_number(c, l.size);
    fac_cl_call_number(c, l.inner);
    fac_cl_call_number(c, p->in[1].known->v[0]);
    fac_cl_call_number(c, 1 + 2 * index);
    fac_cl_call_items(c, (size_t)(l.outer * l.inner) * (size_t)team, (size_t)team);
    return FAC_OK;
}

static fac_status make_scan(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add_scan, out, err);
}
static fac_status make_top(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add_top, out, err);
}

const fac_solver fac_cl_scan = { .name = "scan",
                                 .rank = 330,
                                 .offer = offer_scan,
                                 .make = make_scan,
                                 .done = fac_cl_plan_done,
                                 .run = fac_cl_plan_run };
const fac_solver fac_cl_top_k = { .name = "top_k",
                                  .op = &fac_op_top_k,
                                  .rank = 340,
                                  .offer = offer_any,
                                  .make = make_top,
                                  .done = fac_cl_plan_done,
                                  .run = fac_cl_plan_run };
