/* Solvers "softmax" (and log_softmax) and "arg" (arg_max, arg_min, hardmax): what is done to each
 * line of a tensor along one axis. */
#include <string.h>
#include "graph/attr.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/reduce/fold.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_best.h"
#include "cl_softmax.h"
#include "cl_team.h"
#include "op_list.h"
#include "tensor/dtype.h"

typedef struct lines {
    fac_cl_fold f;
    int64_t size, step, out;
} lines;

static bool is_arg(const fac_node *n) { return FAC_IS(n, arg_max) || FAC_IS(n, arg_min); }

/* The lines of x along the node's axis; of y the dims may lack that axis.  near: vectors are of use
 * to the kernel. */
static void lines_of(const fac_opencl *o, const fac_problem *p, bool near, lines *l) {
    const fac_operand *x = &p->in[0], *y = &p->out[0];
    const int rank = x->type.dims.n;
    int64_t given = 0;
    fac_attr_get_int(p->node, "axis", &given);
    const int axis = fac_axis(given, rank ? rank : 1);
    *l = (lines){ .size = 1 };
    for (int k = 0, next = 0; k < rank; k++) {
        const int to = y->type.dims.n == rank ? k : next;
        if (k == axis) {
            l->size = x->type.dims.d[k];
            l->step = x->layout.stride[k];
            l->out = is_arg(p->node) ? 0 : y->layout.stride[k];
            fac_cl_axes_put(&l->f.reduced, l->size, l->step, 0);
        } else
            fac_cl_axes_put(&l->f.kept, x->type.dims.d[k], x->layout.stride[k],
                            y->layout.stride[to]);
        next += k != axis;
    }
    l->f.near = near ? fac_cl_near(o, (const fac_operand *const[]){ x, y }, 2) : 1;
    fac_cl_fold_settle(o, &l->f, fac_cl_folding(x->type.dtype));
    l->f.parts = 1;
    l->f.across = l->f.team;
    if (l->size == 1) l->f.unit = false;
    if (!l->f.unit && !l->f.columns && l->f.width > 1) l->f.width = 1;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!fac_cl_settle(o, p)) return false;
    if (!is_arg(p->node)) fac_cl_lay_alike(&p->in[0], &p->out[0]);
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static bool offer_softmax(fac_device *d, fac_problem *p, fac_offer *o) {
    return (FAC_IS(p->node, softmax) || FAC_IS(p->node, log_softmax)) && offer(d, p, o);
}
static bool offer_arg(fac_device *d, fac_problem *p, fac_offer *o) {
    return (is_arg(p->node) || FAC_IS(p->node, hardmax)) && offer(d, p, o);
}

static fac_status add_call(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const lines *l,
                           const char *kernel, const char *name, const char *more, fac_error *err) {
    const fac_dtype x = p->in[0].type.dtype, y = p->out[0].type.dtype;
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    fac_text_print(&options, "-DT=%s -DX=%s -DY=%s%s", fac_cl_computing(x), fac_cl_tag(x),
                   fac_cl_tag(y), more);
    fac_cl_fold_options(&l->f, &options);
    fac_cl_option_wide(p, &options);
    fac_text_add(&source, fac_kernel_team);
    fac_text_add(&source, kernel);
    options.failed |= source.failed;
    fac_status status = fac_cl_call_new(o, plan, source.s, &options, name, &c, err);
    fac_text_free(&options);
    fac_text_free(&source);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, l->f.units);
    fac_cl_call_number(c, l->size);
    fac_cl_call_number(c, l->step);
    fac_cl_call_number(c, l->out);
    fac_cl_call_number(c, l->f.kept.a[l->f.kept.n - 1].d);
    fac_cl_fold_numbers(&l->f, c);
    fac_cl_fold_items(&l->f, c);
    return FAC_OK;
}

static fac_status add_softmax(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                              fac_error *err) {
    const fac_dtype y = p->out[0].type.dtype;
    fac_text options = { 0 };
    lines l;
    if (!fac_dims_count(&p->out[0].type.dims)) return FAC_OK;
    lines_of(o, p, true, &l);
    const int held = fac_cl_fold_held(o, &l.f, FAC_CL_FEW);
    if (FAC_IS(p->node, log_softmax))
        fac_text_add(&options, " -DLOGARITHM");
    else if (y == FAC_F32 || y == FAC_F64)
        fac_text_add(&options, " -DKEEP");
    fac_cl_fold_held_options(o, &l.f, held, false, &options);
    if (!held && o->limits.gpu) fac_text_add(&options, " -DONLINE");
    if (o->limits.gpu && fac_dtype_is_half(y)) fac_text_add(&options, " -DROUGH");
    fac_status status =
        options.failed ? fac_raise(err, FAC_E_NOMEM, "softmax: no memory for options") : FAC_OK;
    if (!status)
        status = add_call(o, p, plan, &l, fac_kernel_softmax, "softmax", options.s ? options.s : "",
                          err);
    fac_text_free(&options);
    return status;
}

static fac_status add_arg(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    lines l;
    if (!fac_dims_count(&p->out[0].type.dims)) return FAC_OK;
    lines_of(o, p, false, &l);
    if (l.f.width > 1) { /* lines are items' own */
        l.f.units = l.f.lines;
        l.f.width = 1;
        l.f.beside = 16;
    }
    l.f.columns &= o->limits.gpu;
    if (!l.f.columns) l.f.units = l.f.lines;
    return add_call(o, p, plan, &l, fac_kernel_best, "arg",
                    FAC_IS(p->node, hardmax)   ? " -DHOT"
                    : FAC_IS(p->node, arg_min) ? fac_attr_flag(p->node, "select_last_index")
                                                     ? " -DSMALLEST -DLAST"
                                                     : " -DSMALLEST"
                    : fac_attr_flag(p->node, "select_last_index") ? " -DLAST"
                                                                  : "",
                    err);
}

static fac_status make_softmax(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add_softmax, out, err);
}
static fac_status make_arg(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add_arg, out, err);
}

const fac_solver fac_cl_softmax = { .name = "softmax",
                                    .rank = 240,
                                    .offer = offer_softmax,
                                    .make = make_softmax,
                                    .done = fac_cl_plan_done,
                                    .run = fac_cl_plan_run };
const fac_solver fac_cl_arg_index = { .name = "arg",
                                      .rank = 320,
                                      .offer = offer_arg,
                                      .make = make_arg,
                                      .done = fac_cl_plan_done,
                                      .run = fac_cl_plan_run };
