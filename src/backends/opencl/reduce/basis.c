/* Solvers "pack_basis", "unpack_basis" and "fit_basis": planes of bits and levels, and the step of
 * a training that moves levels, so that networks of few bits train without the host.  They compute
 * in double, which devices without it leave to the host. */
#include "backends/opencl/device/calls.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_basis.h"
#include "cl_team.h"
#include "graph/attr.h"
#include "op_list.h"
#include "ops/basis.h"
#include "ops/pack_basis.h"

enum { TEAM = 256, PART = 1 << 14, MOST_PARTS = 64, GROUP = 64 };

static bool settle(const fac_opencl *o, fac_problem *p) {
    return fac_cl_has(o, FAC_F64) && fac_cl_settle_plain(o, p);
}

static int team_of(const fac_opencl *o) {
    return o->limits.gpu && o->limits.group >= TEAM ? TEAM : 1;
}

/* What both kinds of kernels are compiled with. */
static fac_status add_call(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const char *kind,
                           const char *name, fac_cl_call **c, fac_error *err) {
    const fac_operand *basis = &p->in[1];
    fac_text options = { 0 }, source = { 0 };
    fac_text_print(&options, "-DT=double -DV=1 -DC=1 -DWIDE -DG=%d -DX=%s -DBITS=%d -D%s",
                   team_of(o), fac_cl_tag(basis->type.dtype), (int)basis->type.dims.d[0], kind);
    if (basis->type.dtype != FAC_F64) fac_text_add(&options, " -DSINGLE");
    if (!FAC_IS(p->node, pack_basis) && !FAC_IS(p->node, unpack_basis) &&
        fac_attr_flag(p->node, "positive"))
        fac_text_add(&options, " -DPOSITIVE");
    fac_text_add(&source, fac_kernel_team);
    fac_text_add(&source, fac_kernel_basis);
    options.failed |= source.failed;
    const fac_status status = fac_cl_call_new(o, plan, source.s, &options, name, c, err);
    fac_text_free(&options);
    fac_text_free(&source);
    return status;
}

static void items(fac_cl_call *c, int64_t n) {
    fac_cl_call_items(c, (size_t)((n + GROUP - 1) / GROUP * GROUP), GROUP);
}

/* ---- planes of bits ---- */

static bool offer_planes(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!settle(o, p)) return false;
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static fac_status add_planes(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                             fac_error *err) {
    const bool packs = FAC_IS(p->node, pack_basis);
    const fac_dims *bits = packs ? &p->out[0].type.dims : &p->in[0].type.dims;
    const int64_t channels = bits->d[1], bytes = bits->d[2];
    const int64_t each = fac_pack_row(packs ? &p->in[0].type.dims : &p->out[0].type.dims);
    const int64_t count = channels * (packs ? bytes : each);
    fac_cl_call *c = NULL;
    if (!count) return FAC_OK;
    if (packs)
        FAC_TRY(add_call(o, p, plan, "PACK", "pack", &c, err));
    else
        FAC_TRY(add_call(o, p, plan, "UNPACK", "unpack", &c, err));
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, channels);
    fac_cl_call_number(c, each);
    fac_cl_call_number(c, bytes);
    items(c, count);
    return FAC_OK;
}

static fac_status make_planes(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add_planes, out, err);
}

/* ---- the step of a training ---- */

typedef struct shape {
    fac_basis_grid g;
    int64_t parts; /* of a channel's numbers */
    int levels;
} shape;

static shape shape_of(const fac_problem *p) {
    const int64_t axis = fac_attr_int(p->node, "axis", 0);
    shape s = { .g = fac_basis_grid_of(&p->in[0].type.dims, &p->in[1].type.dims, axis) };
    const int64_t parts = (s.g.outer * s.g.inner + PART - 1) / PART;
    s.parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    if (s.parts < 1) s.parts = 1;
    s.levels = 1 << s.g.bits;
    return s;
}

static bool offer_fit(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!settle(o, p)) return false;
    const shape s = shape_of(p);
    offer->work = ((size_t)(s.g.channels * s.parts * 2 * s.levels) + 1) * sizeof(double);
    offer->seconds = fac_cl_price(o, p, 2);
    return true;
}

static fac_status add_fit(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const shape s = shape_of(p);
    fac_cl_call *c = NULL;
    if (!s.g.channels) return FAC_OK;
    FAC_TRY(add_call(o, p, plan, "CELLS", "cells", &c, err));
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    fac_cl_call_work(c, 0, sizeof(double));
    fac_cl_call_number(c, s.g.channels);
    fac_cl_call_number(c, s.g.outer);
    fac_cl_call_number(c, s.g.inner);
    fac_cl_call_number(c, s.parts);
    const size_t team = (size_t)team_of(o);
    fac_cl_call_items(c, (size_t)(s.g.channels * s.parts) * team, team);
    FAC_TRY(add_call(o, p, plan, "FIT", "fit", &c, err));
    fac_cl_call_in(c, p, 1);
    fac_cl_call_work(c, 0, sizeof(double));
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, s.g.channels);
    fac_cl_call_number(c, s.parts);
    items(c, s.g.channels);
    return FAC_OK;
}

static fac_status make_fit(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 2, add_fit, out, err);
}

#define SOLVER(OP) .name = #OP, .op = &fac_op_##OP, .done = fac_cl_plan_done, .run = fac_cl_plan_run

const fac_solver fac_cl_pack_basis = { SOLVER(pack_basis), .offer = offer_planes,
                                       .make = make_planes, .rank = 352 };
const fac_solver fac_cl_unpack_basis = { SOLVER(unpack_basis), .offer = offer_planes,
                                         .make = make_planes, .rank = 354 };
const fac_solver fac_cl_fit_basis = { SOLVER(fit_basis), .offer = offer_fit, .make = make_fit,
                                      .rank = 356 };
