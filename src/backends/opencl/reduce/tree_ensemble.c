/* Solver "tree_ensemble": decision trees in f32, one item for each row and target.  Weights are
 * added in f64 where the device has it. */
#include <math.h>
#include "backends/opencl/device/calls.h"
#include "backends/gpu/speed.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_index.h"
#include "cl_tree_ensemble.h"
#include "op_list.h"
#include "ops/ml/tree.h"

enum { GROUP = 64, X = 0, FEATURES, SPLITS, NEXT, ROOTS, TARGETS, WEIGHTS, INPUTS };

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    for (int k = 0; k < INPUTS; k++) {
        const bool whole = k == FEATURES || k == NEXT || k == ROOTS || k == TARGETS;
        if (p->in[k].type.dtype != (whole ? FAC_I32 : FAC_F32)) return false;
    }
    if (!fac_cl_settle_plain(o, p)) return false;
    const double trees = (double)p->in[ROOTS].type.dims.d[0],
                 nodes = (double)p->in[FEATURES].type.dims.d[0];
    const double depth = trees > 0 ? log2(nodes / trees + 1) : 0;
    offer->seconds = fac_cl_price(o, p, 1) + 20 * depth * trees *
                                                 (double)fac_dims_count(&p->out[0].type.dims) /
                                                 fac_gpu_flops(&o->limits);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    static const char *const joins[] = { "", " -DAVERAGE", " -DLEAST", " -DMOST" };
    const fac_tree_attrs *a = p->node->attrs;
    const int64_t count = fac_dims_count(&p->out[0].type.dims);
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    if (!count) return FAC_OK;
    fac_text_print(&options, "-DV=1 -DT=float -DSUMS=%s%s", o->limits.fp64 ? "double" : "float",
                   joins[a->aggregate]);
    fac_cl_option_wide(p, &options);
    fac_text_add(&source, fac_kernel_index);
    fac_text_add(&source, fac_kernel_tree_ensemble);
    options.failed |= source.failed;
    const fac_status status = fac_cl_call_new(o, plan, source.s, &options, "walk", &c, err);
    fac_text_free(&source);
    fac_text_free(&options);
    FAC_TRY(status);
    for (int k = 0; k < INPUTS; k++) fac_cl_call_in(c, p, k);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_complaint(c);
    fac_cl_call_number(c, count);
    fac_cl_call_number(c, p->in[X].type.dims.d[1]);
    fac_cl_call_number(c, p->in[FEATURES].type.dims.d[0]);
    fac_cl_call_number(c, p->in[ROOTS].type.dims.d[0]);
    fac_cl_call_number(c, p->in[WEIGHTS].type.dims.d[0]);
    fac_cl_call_number(c, a->targets);
    fac_cl_call_items(c, (size_t)count, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_tree_ensemble = { .name = "tree_ensemble",
                                          .op = &fac_op_tree_ensemble,
                                          .rank = 134,
                                          .offer = offer,
                                          .make = make,
                                          .done = fac_cl_plan_done,
                                          .run = fac_cl_plan_run };
