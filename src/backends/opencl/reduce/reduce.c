/* Solver "reduce": sum, mean, reduce_max, reduce_min, reduce_prod over any axes, and sum_like, of
 * any type and layout.
 *
 * A line of many elements is cut into parts whose results a second launch folds; everything is in a
 * fixed order.  Folds of f32, f16 and bf16 run in f32, in blocks, so that the error of a sum grows
 * like that of a pairwise one. */
#include <math.h>
#include <string.h>
#include "backends/problem.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/reduce/fold.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_reduce.h"
#include "cl_team.h"
#include "op_list.h"
#include "ops/order.h"

enum { MOST_AHEAD = 8, SECTOR = 32 }; /* SECTOR: bytes of memory that come together */

typedef struct rule {
    const fac_op *op;
    const char *fold;
} rule;
static const rule rules[] = { { &fac_op_sum, "PLUS" },          { &fac_op_mean, "PLUS" },
                              { &fac_op_sum_like, "PLUS" },     { &fac_op_reduce_prod, "TIMES" },
                              { &fac_op_reduce_max, "LARGER" }, { &fac_op_reduce_min, "SMALLER" } };

static const char *fold_of(const fac_node *n) {
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
        if (rules[k].op == n->op) return rules[k].fold;
    return NULL;
}

static bool fold_problem(const fac_opencl *o, const fac_problem *p, fac_cl_fold *f) {
    const fac_operand *x = &p->in[0], *y = &p->out[0];
    const bool like = FAC_IS(p->node, sum_like);
    unsigned mask;
    int next = 0;
    *f = (fac_cl_fold){ .parts = 1 };
    if (!fac_problem_axes(p, &mask)) return false;
    for (int k = 0; k < x->type.dims.n; k++) {
        const bool reduced = mask >> k & 1;
        const int to = like                               ? k - (x->type.dims.n - y->type.dims.n)
                       : y->type.dims.n == x->type.dims.n ? k
                                                          : next;
        if (reduced)
            fac_cl_axes_put(&f->reduced, x->type.dims.d[k], x->layout.stride[k], 0);
        else
            fac_cl_axes_put(&f->kept, x->type.dims.d[k], x->layout.stride[k], y->layout.stride[to]);
        next += !reduced;
    }
    f->near = fac_cl_near(o, (const fac_operand *const[]){ x }, 1);
    fac_cl_fold_settle(o, f, fac_cl_folding(x->type.dtype));
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    fac_cl_fold f;
    if (!fold_of(p->node) || !fac_cl_settle(o, p) || !fold_problem(o, p, &f)) return false;
    offer->work = f.parts > 1 ? (size_t)(f.lines * f.parts) * sizeof(int64_t) : 0;
    offer->seconds = fac_cl_price(o, p, f.parts > 1 ? 2 : 1);
    *FAC_DRAFT(offer, fac_cl_fold) = f;
    return true;
}

/* What a fold begins with, as the bits of the type computed in. */
static void add_start(fac_cl_call *c, const char *fold, fac_dtype t) {
    const bool real = fac_dtype_get(t)->kind == 'f', larger = !strcmp(fold, "LARGER"),
               smaller = !strcmp(fold, "SMALLER");
    if (real)
        fac_cl_call_real(c,
                         larger    ? -INFINITY
                         : smaller ? INFINITY
                                   : !strcmp(fold, "TIMES"),
                         fac_cl_folding(t));
    else
        fac_cl_call_number(c, larger    ? fac_int_lowest(t)
                              : smaller ? fac_int_highest(t)
                                        : !strcmp(fold, "TIMES"));
}

/* Vectors that an item of a GPU asks for at once: as many as 32 registers hold. */
static int ahead_of(const fac_opencl *o, const fac_cl_fold *f, fac_dtype computing) {
    const int registers = f->width * fac_dtype_get(computing)->block_bytes / 4,
              most = 32 / registers;
    if (!o->limits.gpu || most < 1) return 1;
    return most < MOST_AHEAD ? most : MOST_AHEAD;
}

/* One launch.  x, y: tags of what is read and written. */
static fac_status add_call(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                           const fac_cl_fold *f, const char *x, const char *y, bool mean,
                           fac_cl_call **out, fac_error *err) {
    const fac_dtype t = p->in[0].type.dtype;
    fac_text options = { 0 }, source = { 0 };
    fac_text_print(&options, "-DT=%s -DX=%s -DY=%s -DOP=%s", fac_cl_computing(t), x, y,
                   fold_of(p->node));
    if (mean) fac_text_add(&options, fac_dtype_get(t)->kind == 'f' ? " -DMEAN=NAN" : " -DMEAN=0");
    fac_cl_fold_options(f, &options);
    if (f->parts == 1 && f->across == f->team) fac_text_add(&options, " -DWHOLE");
    fac_text_print(&options, " -DAHEAD=%d", ahead_of(o, f, fac_cl_folding(t)));
    fac_cl_option_wide(p, &options);
    fac_text_add(&source, fac_kernel_team);
    fac_text_add(&source, fac_kernel_reduce);
    options.failed |= source.failed;
    fac_status status = fac_cl_call_new(o, plan, source.s, &options, "reduce", out, err);
    fac_text_free(&options);
    fac_text_free(&source);
    return status;
}

static void add_numbers(fac_cl_call *c, const fac_problem *p, const fac_cl_fold *f, int64_t count) {
    const fac_cl_axis *inner = &f->reduced.a[f->reduced.n - 1];
    fac_cl_call_number(c, f->units);
    fac_cl_call_number(c, f->parts);
    fac_cl_call_number(c, f->across);
    add_start(c, fold_of(p->node), p->in[0].type.dtype);
    fac_cl_call_number(c, count);
    fac_cl_call_number(c, f->count ? f->count / inner->d : 0);
    fac_cl_call_number(c, inner->d);
    fac_cl_call_number(c, inner->in);
    fac_cl_call_number(c, f->kept.a[f->kept.n - 1].d);
    fac_cl_call_number(c, f->lines);
    fac_cl_fold_numbers(f, c);
    fac_cl_fold_items(f, c);
}

/* One group for 64 columns would take all parts a few at a time: more groups, of fewer columns, as
 * long as a sector is used whole. */
static void narrow(const fac_opencl *o, fac_cl_fold *f, fac_dtype computing) {
    if (!o->limits.gpu || !f->columns) return;
    while (f->beside * f->width * fac_dtype_get(computing)->block_bytes > SECTOR &&
           f->team * 2 <= f->count) {
        f->beside /= 2;
        f->team *= 2;
    }
    f->across = f->team;
}

/* Results of parts lie in scratch, those of a part side by side, in the order of the kept axes. */
static void second(const fac_opencl *o, const fac_cl_fold *f, fac_cl_fold *first, fac_cl_fold *rest,
                   fac_dtype t) {
    int64_t step = 1;
    *first = *f;
    *rest = (fac_cl_fold){ 0 };
    for (int k = f->kept.n - 1; k >= 0; k--) {
        first->kept.a[k].out = step;
        fac_cl_axes_put(&rest->kept, f->kept.a[k].d, step, f->kept.a[k].out);
        step *= f->kept.a[k].d;
    }
    fac_cl_axes_put(&rest->reduced, f->parts, f->lines, 0);
    fac_cl_fold_settle(o, rest, fac_cl_folding(t));
    rest->parts = 1;
    narrow(o, rest, fac_cl_folding(t));
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_dtype t = p->in[0].type.dtype;
    const bool mean = FAC_IS(p->node, mean);
    const char *x = fac_cl_tag(t), *y = fac_cl_tag(p->out[0].type.dtype),
               *between = fac_cl_tag(fac_cl_folding(t));
    const fac_cl_fold f = *(const fac_cl_fold *)p->draft;
    fac_cl_fold first, rest;
    fac_cl_call *c = NULL;
    if (!f.lines) return FAC_OK;
    const int64_t count = f.count;
    if (f.parts == 1) {
        FAC_TRY(add_call(o, p, plan, &f, x, y, mean, &c, err));
        fac_cl_call_in(c, p, 0);
        fac_cl_call_out(c, p, 0);
        add_numbers(c, p, &f, count);
        return FAC_OK;
    }
    second(o, &f, &first, &rest, t);
    FAC_TRY(add_call(o, p, plan, &first, x, between, false, &c, err));
    fac_cl_call_in(c, p, 0);
    fac_cl_call_work(c, 0, (size_t)fac_dtype_get(fac_cl_folding(t))->block_bytes);
    add_numbers(c, p, &first, count);
    FAC_TRY(add_call(o, p, plan, &rest, between, y, mean, &c, err));
    fac_cl_call_work(c, 0, (size_t)fac_dtype_get(fac_cl_folding(t))->block_bytes);
    fac_cl_call_out(c, p, 0);
    add_numbers(c, p, &rest, count);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 2, add, out, err);
}

const fac_solver fac_cl_reduce = { .name = "reduce",
                                   .rank = 310,
                                   .offer = offer,
                                   .make = make,
                                   .done = fac_cl_plan_done,
                                   .run = fac_cl_plan_run };
