/* Solvers "cross_entropy" and "cross_entropy_grad": lines of scores that lie one after the other,
 * and their labels, in one launch each.  Where classes are not neighbours, both do what the ops
 * expand to. */
#include <string.h>
#include "graph/attr.h"
#include "backends/problem.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/reduce/fold.h"
#include "backends/opencl/device/probe.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_cross_entropy.h"
#include "cl_last.h"
#include "cl_team.h"
#include "op_list.h"
#include "ops/class_loss.h"

/* So many lines the last group adds up without a launch of its own; items of the group of that
 * launch. */
enum { LAST_ADDS = 4096, SETTLE = 256 };

typedef struct lines {
    fac_cl_fold f;
    int64_t count, size;
    int held;
    bool settles;
} lines;

static fac_dtype type_of(const fac_problem *p) { return p->in[0].type.dtype; }
static size_t item(const fac_problem *p) {
    return (size_t)fac_dtype_get(fac_cl_folding(type_of(p)))->block_bytes;
}
static const fac_class_loss *attrs_of(const fac_problem *p) { return p->node->attrs; }

/* The outputs that the lines' sums make, as bits. */
static int totals_of(const fac_problem *p) {
    return (fac_has_out(p, 0) && attrs_of(p)->reduction != FAC_CLASS_EACH) |
           fac_has_out(p, 1) << 1 | fac_has_out(p, 2) << 2;
}

static bool lines_of(const fac_opencl *o, const fac_problem *p, bool grad, lines *l) {
    const fac_dims *d = &p->in[0].type.dims;
    const int axis = d->n > 1;
    int64_t inner = 1;
    for (int k = axis + 1; k < d->n; k++) inner *= d->d[k];
    *l = (lines){ .count = axis ? d->d[0] : 1, .size = d->d[axis] };
    if (inner != 1 || l->size < 2 || !l->count) return false;
    l->f.near = fac_cl_near(o, (const fac_operand *const[]){ &p->in[0], &p->out[0] }, grad ? 2 : 1);
    fac_cl_axes_put(&l->f.kept, l->count, l->size, l->size);
    fac_cl_axes_put(&l->f.reduced, l->size, 1, 0);
    fac_cl_fold_settle(o, &l->f, fac_cl_folding(type_of(p)));
    l->f.parts = 1;
    l->f.across = l->f.team;
    l->held = fac_cl_fold_held(o, &l->f, FAC_CL_FEW);
    return true;
}

static bool offer_any(fac_device *d, fac_problem *p, bool grad, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    lines l;
    if (!fac_cl_settle_plain(o, p) || !lines_of(o, p, grad, &l)) return false;
    if (!grad) offer->work = 3 * (size_t)l.count * item(p);
    *FAC_DRAFT(offer, lines) = l;
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static fac_status add_kernel(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                             fac_text *options, const char *name, fac_cl_call **out,
                             fac_error *err) {
    fac_text source = { 0 };
    fac_text_print(options, " -DT=%s -DX=%s -DL=%s -DY=%s", fac_cl_computing(type_of(p)),
                   fac_cl_tag(type_of(p)), fac_cl_tag(p->in[1].type.dtype), fac_cl_tag(type_of(p)));
    fac_cl_option_wide(p, options);
    fac_text_add(&source, fac_kernel_team);
    fac_text_add(&source, fac_kernel_last);
    fac_text_add(&source, fac_kernel_cross_entropy);
    options->failed |= source.failed;
    const fac_status status = fac_cl_call_new(o, plan, source.s, options, name, out, err);
    fac_text_free(options);
    fac_text_free(&source);
    return status;
}

static void line_options(fac_opencl *o, lines *l, fac_text *options) {
    fac_cl_fold_options(&l->f, options);
    fac_cl_fold_held_options(o, &l->f, l->held, false, options);
}

/* An absent result is replaced by one that is there and not touched. */
static void add_results(fac_cl_call *c, const fac_problem *p) {
    int there = 0;
    while (!fac_has_out(p, there)) there++;
    for (int k = 0; k < 3; k++) fac_cl_call_out(c, p, fac_has_out(p, k) ? k : there);
}

static void add_attrs(fac_cl_call *c, const fac_problem *p, const lines *l) {
    const fac_class_loss *a = attrs_of(p);
    fac_cl_call_number(c, l->f.units);
    fac_cl_call_number(c, l->size);
    fac_cl_call_number(c, fac_class_ignored(a));
    fac_cl_call_real(c, a->smoothing, fac_cl_folding(type_of(p)));
}

static void settle_options(const fac_problem *p, fac_text *options) {
    fac_text_print(options, " -DOUTPUTS=%d%s", totals_of(p),
                   attrs_of(p)->reduction == FAC_CLASS_MEAN ? " -DMEAN" : "");
}

static fac_status add_losses(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, lines *l,
                             fac_error *err) {
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    fac_text_add(&options, "-DLINES");
    line_options(o, l, &options);
    if (attrs_of(p)->reduction == FAC_CLASS_EACH && fac_has_out(p, 0))
        fac_text_add(&options, " -DEACH");
    if (l->settles) {
        fac_status status = fac_cl_plan_counters(o, plan, 1, err);
        if (status) {
            fac_text_free(&options);
            return status;
        }
        fac_text_add(&options, " -DSETTLES");
        settle_options(p, &options);
    }
    FAC_TRY(add_kernel(o, p, plan, &options, "losses", &c, err));
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    fac_cl_call_work(c, 0, item(p));
    add_results(c, p);
    if (l->settles) fac_cl_call_table(c, sizeof(uint32_t));
    add_attrs(c, p, l);
    fac_cl_fold_items(&l->f, c);
    return FAC_OK;
}

static fac_status add_totals(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const lines *l,
                             fac_error *err) {
    const size_t items = o->limits.group < SETTLE ? 1 : SETTLE;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    fac_text_print(&options, "-DSETTLE=%d -DV=1 -DG=1 -DC=1", (int)items);
    settle_options(p, &options);
    FAC_TRY(add_kernel(o, p, plan, &options, "totals_of", &c, err));
    fac_cl_call_work(c, 0, item(p));
    add_results(c, p);
    fac_cl_call_number(c, l->count);
    fac_cl_call_items(c, items, items);
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    lines l = *(const lines *)p->draft;
    if (!fac_has_out(p, 0) && !totals_of(p)) return FAC_OK;
    l.settles = totals_of(p) && l.count <= LAST_ADDS && fac_cl_has_path(o, FAC_CL_FENCES);
    FAC_TRY(add_losses(o, p, plan, &l, err));
    return totals_of(p) && !l.settles ? add_totals(o, p, plan, &l, err) : FAC_OK;
}

static fac_status add_grad(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const bool divided = p->nin > 3 && p->in[3].type.dtype != FAC_NONE;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    lines l = *(const lines *)p->draft;
    fac_text_print(&options, "-DGRAD%s", divided ? " -DCOUNT" : "");
    line_options(o, &l, &options);
    FAC_TRY(add_kernel(o, p, plan, &options, "cross_entropy_grad", &c, err));
    for (int i = 0; i < 4; i++) fac_cl_call_in(c, p, i == 3 && !divided ? 2 : i);
    fac_cl_call_out(c, p, 0);
    add_attrs(c, p, &l);
    fac_cl_call_number(c, p->in[2].type.dims.n > 0);
    fac_cl_fold_items(&l.f, c);
    return FAC_OK;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *to) {
    return offer_any(d, p, false, to);
}
static bool offer_grad(fac_device *d, fac_problem *p, fac_offer *to) {
    return offer_any(d, p, true, to);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 2, add, out, err);
}
static fac_status make_grad(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add_grad, out, err);
}

const fac_solver fac_cl_cross_entropy = { .name = "cross_entropy",
                                          .op = &fac_op_cross_entropy,
                                          .rank = 290,
                                          .offer = offer,
                                          .make = make,
                                          .done = fac_cl_plan_done,
                                          .run = fac_cl_plan_run };
const fac_solver fac_cl_cross_entropy_grad = { .name = "cross_entropy_grad",
                                               .op = &fac_op_cross_entropy_grad,
                                               .rank = 300,
                                               .offer = offer_grad,
                                               .make = make_grad,
                                               .done = fac_cl_plan_done,
                                               .run = fac_cl_plan_run };
