/* Solvers "softmax_grad", "log_softmax_grad", "layer_norm_grad" and "rms_norm_grad", for GPUs: one
 * pass over lines that stay in registers.  Longer ones, and other devices, do what the ops expand
 * to. */
#include <string.h>
#include "graph/attr.h"
#include "backends/problem.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/reduce/fold.h"
#include "backends/opencl/device/probe.h"
#include "base/optional.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_norm_grad.h"
#include "cl_softmax_grad.h"
#include "cl_team.h"
#include "op_list.h"

/* Few elements of a row in an item's registers, and at most; registers of a compute unit, and of an
 * item with few elements or more: all groups are there at once, since each leaves partial sums.
 * AHEAD: rows on their way. */
enum {
    GROUP = 256,
    WIDE_GROUP = 512,
    FEW = 8,
    HELD = 16,
    REGISTERS = 65536,
    FEW_REGISTERS = 80,
    MORE_REGISTERS = 128
};
enum { AHEAD = 2 };

static fac_dtype type_of(const fac_problem *p) { return p->in[0].type.dtype; }
static size_t item(const fac_problem *p) {
    return (size_t)fac_dtype_get(fac_cl_folding(type_of(p)))->block_bytes;
}

/* Adds a kernel of a text after team.cl; takes the options. */
static fac_status add_kernel(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                             const char *kernel, fac_text *options, const char *name,
                             fac_cl_call **out, fac_error *err) {
    fac_text source = { 0 };
    fac_text_print(options, " -DT=%s -DX=%s -DCOMPUTED=%s", fac_cl_computing(type_of(p)),
                   fac_cl_tag(type_of(p)), fac_cl_tag(fac_cl_folding(type_of(p))));
    fac_cl_option_wide(p, options);
    fac_text_add(&source, fac_kernel_team);
    fac_text_add(&source, kernel);
    options->failed |= source.failed;
    const fac_status status = fac_cl_call_new(o, plan, source.s, options, name, out, err);
    fac_text_free(options);
    fac_text_free(&source);
    return status;
}

/* ---- softmax_grad, log_softmax_grad ---- */

static void lines_of(const fac_opencl *o, const fac_problem *p, int axis, fac_cl_fold *f) {
    const fac_operand *y = &p->in[0];
    *f = (fac_cl_fold){ .near = fac_cl_near_all(o, p) };
    for (int k = 0; k < y->type.dims.n; k++)
        fac_cl_axes_put(k == axis ? &f->reduced : &f->kept, y->type.dims.d[k], y->layout.stride[k],
                        k == axis ? 0 : y->layout.stride[k]);
    fac_cl_fold_settle(o, f, fac_cl_folding(type_of(p)));
    f->parts = 1;
    f->across = f->team;
}

static int axis_of(const fac_problem *p) {
    int64_t axis = 0;
    fac_attr_get_int(p->node, "axis", &axis);
    return fac_axis(axis, p->in[0].type.dims.n ? p->in[0].type.dims.n : 1);
}

static bool offer_softmax(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    const fac_operand y = p->in[0];
    if (!o->limits.gpu || !fac_cl_settle_plain(o, p)) return false;
    if (fac_cl_channels_last(&y)) /* all three lie as y does */
        for (int i = 0; i < 3; i++) fac_cl_lay_alike(&y, i < 2 ? &p->in[i] : &p->out[0]);
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static fac_status add_softmax(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                              fac_error *err) {
    const fac_layout *l = &p->in[0].layout;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    fac_cl_fold f;
    if (!fac_dims_count(&p->out[0].type.dims)) return FAC_OK;
    lines_of(o, p, axis_of(p), &f);
    const int held = fac_cl_fold_held(o, &f, FAC_CL_FEW);
    fac_cl_fold_options(&f, &options);
    if (held && held * f.width <= 2 * HELD) fac_text_print(&options, " -DHELD=%d", held);
    if (FAC_IS(p->node, log_softmax_grad)) fac_text_add(&options, " -DLOGARITHM");
    FAC_TRY(add_kernel(o, p, plan, fac_kernel_softmax_grad, &options, "softmax_grad", &c, err));
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, f.units);
    fac_cl_call_number(c, f.count);
    fac_cl_call_number(c, p->in[0].type.dims.n ? l->stride[axis_of(p)] : 1);
    fac_cl_call_number(c, 0);
    fac_cl_call_number(c, f.kept.a[f.kept.n - 1].d);
    fac_cl_fold_numbers(&f, c);
    fac_cl_fold_items(&f, c);
    return FAC_OK;
}

/* ---- layer_norm_grad, rms_norm_grad ---- */

/* next: the next row is on its way while one is worked on: of 16 bits, other rows are as fast. */
typedef struct rows {
    int64_t count, size;
    int near, team, held, registers;
    int64_t groups;
    bool next;
} rows;

static void rows_of(const fac_opencl *o, const fac_problem *p, rows *r) {
    const fac_dims *x = &p->in[0].type.dims;
    *r = (rows){ .count = 1, .size = 1, .team = 32, .held = 1 };
    for (int k = 0; k < x->n; k++) *(k < axis_of(p) ? &r->count : &r->size) *= x->d[k];
    const fac_operand none = { 0 }, *const all[] = { &p->in[0], &p->in[1], &p->out[0],
                                                     p->nin > 2 ? &p->in[2] : &none };
    r->near = fac_cl_near(o, all, 4);
    if (r->size % r->near) r->near = 1;
    r->next = r->near > FEW / 2;
    if (r->next)
        while (r->team < WIDE_GROUP && (size_t)r->team * 2 <= o->limits.group &&
               r->team * HELD < r->size)
            r->team *= 2;
    else
        while (r->team < GROUP && r->team * r->near * 4 <= r->size) r->team *= 2;
    while (r->team * HELD < r->size && (size_t)r->team * 2 <= o->limits.group) r->team *= 2;
    while ((int64_t)r->held * r->team * r->near < r->size && r->held * r->near < HELD) r->held *= 2;
    r->registers = r->held * r->near > FEW ? MORE_REGISTERS : FEW_REGISTERS;
    if (r->registers > REGISTERS / r->team) r->registers = REGISTERS / r->team;
    r->groups = (int64_t)o->limits.units * (REGISTERS / r->registers / r->team);
    if (r->groups < o->limits.units) r->groups = o->limits.units;
    if (r->groups > r->count) r->groups = r->count;
}

static bool offer_norm(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    rows r;
    if (!o->limits.gpu || o->limits.group < 32 || !fac_cl_settle_plain(o, p)) return false;
    rows_of(o, p, &r);
    if ((int64_t)r.held * r.team * r.near < r.size || !r.count || !r.size) return false;
    if (fac_has_out(p, 1) || fac_has_out(p, 2))
        offer->work = (size_t)(r.groups * 2 * r.size) * item(p);
    *FAC_DRAFT(offer, rows) = r;
    offer->seconds = fac_cl_price(o, p, 3);
    return true;
}

/* dscale and dbias, or one of them. */
static fac_status add_gather(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const rows *r,
                             fac_error *err) {
    enum { BESIDE = 32 };
    const int team = o->limits.group < 32 * BESIDE ? 8 : 32;
    const int first = fac_has_out(p, 1) ? 1 : 2;
    const int last = fac_has_out(p, 2) ? 2 : 1;
    const int64_t columns = (last - first + 1) * r->size;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    fac_text_print(&options, "-DV=1 -DG=%d -DC=%d -DCOLUMNS", team, BESIDE);
    FAC_TRY(add_kernel(o, p, plan, fac_kernel_norm_grad, &options, "gather", &c, err));
    fac_cl_call_work(c, 0, item(p));
    fac_cl_call_out(c, p, first);
    fac_cl_call_out(c, p, last);
    fac_cl_call_number(c, columns);
    fac_cl_call_number(c, r->size);
    fac_cl_call_number(c, r->groups);
    fac_cl_call_number(c, (first - 1) * r->size);
    fac_cl_call_items(c, (size_t)((columns + BESIDE - 1) / BESIDE * BESIDE * team),
                      (size_t)(BESIDE * team));
    return FAC_OK;
}

static fac_status add_norm(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const bool scaled = p->nin > 2 && p->in[2].type.dtype != FAC_NONE,
               sums = fac_has_out(p, 1) || fac_has_out(p, 2);
    double epsilon = 0;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    const rows *r = p->draft;
    fac_attr_get_real(p->node, "epsilon", &epsilon);
    fac_text_print(&options, "-DV=%d%s -DG=%d -DC=1 -DHELD=%d%s%s%s", r->near,
                   r->near > 1 ? " -DALIGNED" : "", r->team, r->held,
                   (int64_t)r->held * r->team * r->near == r->size ? " -DFULL" : "",
                   fac_text_if(scaled, " -DSCALED"), fac_text_if(sums, " -DSUMS"));
    if (FAC_IS(p->node, rms_norm_grad)) fac_text_add(&options, " -DRMS");
    if (r->next) fac_text_print(&options, " -DAHEAD=%d", AHEAD);
    if (fac_cl_has_path(o, FAC_CL_MMA) && item(p) == 4) /* where not the size of a group says it */
        fac_text_print(&options, "%s -cl-nv-maxrregcount=%d",
                       r->registers < REGISTERS / r->team ? " -DCAPPED" : "", r->registers);
    FAC_TRY(add_kernel(o, p, plan, fac_kernel_norm_grad, &options, "norm_grad", &c, err));
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    fac_cl_call_in(c, p, scaled ? 2 : 0);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_work(c, 0, item(p));
    fac_cl_call_number(c, r->count);
    fac_cl_call_number(c, r->size);
    fac_cl_call_number(c, r->groups);
    fac_cl_call_real(c, epsilon, fac_cl_folding(type_of(p)));
    fac_cl_call_items(c, (size_t)r->groups * (size_t)r->team, (size_t)r->team);
    return sums ? add_gather(o, p, plan, r, err) : FAC_OK;
}

static fac_status make_softmax(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add_softmax, out, err);
}
static fac_status make_norm(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 3, add_norm, out, err);
}

const fac_solver fac_cl_softmax_grad = { .name = "softmax_grad",
                                         .op = &fac_op_softmax_grad,
                                         .rank = 250,
                                         .offer = offer_softmax,
                                         .make = make_softmax,
                                         .done = fac_cl_plan_done,
                                         .run = fac_cl_plan_run };
const fac_solver fac_cl_log_softmax_grad = { .name = "log_softmax_grad",
                                             .op = &fac_op_log_softmax_grad,
                                             .rank = 260,
                                             .offer = offer_softmax,
                                             .make = make_softmax,
                                             .done = fac_cl_plan_done,
                                             .run = fac_cl_plan_run };
const fac_solver fac_cl_layer_norm_grad = { .name = "layer_norm_grad",
                                            .op = &fac_op_layer_norm_grad,
                                            .rank = 270,
                                            .offer = offer_norm,
                                            .make = make_norm,
                                            .done = fac_cl_plan_done,
                                            .run = fac_cl_plan_run };
const fac_solver fac_cl_rms_norm_grad = { .name = "rms_norm_grad",
                                          .op = &fac_op_rms_norm_grad,
                                          .rank = 280,
                                          .offer = offer_norm,
                                          .make = make_norm,
                                          .done = fac_cl_plan_done,
                                          .run = fac_cl_plan_run };
