/* Solvers "table" and "pad_grad": data movement where the place of an element is a sum of one
 * number for each coordinate.
 *
 * table: pad, tile, slice_grad, trilu, depth_to_space, space_to_depth.  The numbers, strides
 * included, stand in a table in device memory, so one kernel does all of them and every mode of
 * padding.  pad_grad: the other way round, lists of places. */
#include <stdint.h>
#include <string.h>
#include "graph/attr.h"
#include "backends/opencl/move/copy.h"
#include "backends/problem.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "cl_table.h"
#include "facula/ops.h"
#include "op_list.h"
#include "ops/pad.h"
#include "ops/slice.h"

enum { GROUP = 64, LONG_RUN = 1024 };
#define NOWHERE INT64_MIN

static int dims_of(const fac_problem *p) {
    return p->out[0].type.dims.n ? p->out[0].type.dims.n : 1;
}
static int64_t size_at(const fac_problem *p, int k) {
    return p->out[0].type.dims.n ? p->out[0].type.dims.d[k] : 1;
}

/* The entry of a list input, or `missing` when it is absent. */
static int64_t entry(const fac_problem *p, int input, int k, int64_t missing) {
    const fac_contents *c = input < p->nin ? p->in[input].known : NULL;
    return c && k < c->n ? c->v[k] : missing;
}

/* Which of the lists tells of axis a; -1: none. */
static int listed(const fac_problem *p, int axes, int count, int a, int rank) {
    for (int k = 0; k < count; k++)
        if (fac_axis(entry(p, axes, k, k), rank) == a) return k;
    return -1;
}

static int mode_of(const fac_problem *p) { return *(const int *)p->node->attrs; }

/* Elements in front of axis a. */
static int64_t pad_before(const fac_problem *p, int pads, int axes, int a) {
    int64_t before[FAC_DIMS] = { 0 };
    fac_known_pads(p, pads, axes, before); /* what steers shapes is known when a plan is made */
    return before[a];
}

/* Coordinate i of axis a in the moved input along the same axis; NOWHERE. */
static int64_t source(const fac_problem *p, int a, int64_t i) {
    const int rank = p->out[0].type.dims.n;
    if (FAC_IS(p->node, tile)) return i % p->in[0].type.dims.d[a];
    if (FAC_IS(p->node, pad)) {
        const int64_t size = p->in[0].type.dims.d[a], at = i - pad_before(p, 1, 3, a);
        if (at >= 0 && at < size) return at;
        return mode_of(p) == FAC_PAD_CONSTANT ? NOWHERE : fac_pad_from(mode_of(p), at, size);
    }
    if (FAC_IS(p->node, slice_grad)) {
        const int k = listed(p, 3, p->in[1].known->n, a, rank);
        if (k < 0) return i;
        const fac_slice_range r = fac_slice_range_of(size_at(p, a), entry(p, 1, k, 0),
                                                     entry(p, 2, k, 0), entry(p, 4, k, 1));
        const int64_t offset = i - r.first;
        return offset % r.step || offset / r.step < 0 || offset / r.step >= r.count
                   ? NOWHERE
                   : offset / r.step;
    }
    return i;
}

/* Ops that mix axes are asked; they have all of x. */
static void ask(const fac_problem *p, int64_t *table, const int64_t *first) {
    const fac_array in[1] = { { .type = p->in[0].type } };
    const fac_move m = { p->node->attrs, 1, 0, in, p->out[0].type.dims };
    for (int a = 0; a < m.out.n; a++) {
        int64_t to[FAC_DIMS] = { 0 };
        for (to[a] = 0; to[a] < m.out.d[a]; to[a]++) {
            int64_t from[FAC_DIMS] = { 0 }, at = 0;
            int input = 0;
            p->node->op->move(&m, to, &input, from);
            for (int j = 0; j < in[0].type.dims.n; j++) at += from[j] * p->in[0].layout.stride[j];
            table[first[a] + to[a]] = at;
        }
    }
}

static bool mixes(const fac_problem *p) {
    return FAC_IS(p->node, depth_to_space) || FAC_IS(p->node, space_to_depth);
}
static int moved_input(const fac_problem *p) { return FAC_IS(p->node, slice_grad) ? 5 : 0; }

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    static const fac_op *const names[] = {
        &fac_op_pad,   &fac_op_tile,           &fac_op_slice_grad,
        &fac_op_trilu, &fac_op_depth_to_space, &fac_op_space_to_depth,
        NULL
    };
    const fac_dtype_info *t = fac_dtype_get(p->out[0].type.dtype);
    if (!fac_op_is_one_of(p->node->op, names) || !*fac_cl_bits((size_t)t->block_bytes) ||
        t->block_elements != 1 || t->kind == 't' || p->node->body[0])
        return false;
    for (int i = 0; i < p->nin + p->nout; i++) {
        fac_operand *x = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (x->type.dtype != FAC_NONE && x->layout.block)
            x->layout = fac_layout_plain(&x->type.dims);
        x->layout.halo = 0;
    }
    if (FAC_IS(p->node, pad)) fac_cl_lay_alike(&p->in[0], &p->out[0]);
    o->seconds = fac_cl_price(fac_opencl_of(d), p, 1);
    return true;
}

static fac_status fill_table(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, int64_t *first,
                             fac_error *err) {
    const int rank = dims_of(p);
    const fac_operand *x = &p->in[moved_input(p)];
    int64_t all = 0;
    for (int k = 0; k < rank; k++) {
        first[k] = all;
        all += size_at(p, k);
    }
    int64_t *table = fac_alloc((size_t)all + 1, sizeof *table);
    if (!table)
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for a table of %lld places",
                         p->node->op->name, (long long)all);
    if (mixes(p)) ask(p, table, first);
    for (int k = 0; k < rank && !mixes(p); k++)
        for (int64_t i = 0; i < size_at(p, k); i++) {
            const int64_t at = p->out[0].type.dims.n ? source(p, k, i) : 0;
            table[first[k] + i] = at == NOWHERE ? NOWHERE : at * x->layout.stride[k];
        }
    fac_status status = fac_cl_plan_table(o, plan, table, (size_t)all * sizeof *table, err);
    fac_release(table);
    return status;
}

/* Dims of the result, those that move least last. */
static void order(const fac_problem *p, int *dim) {
    const int rank = dims_of(p);
    for (int k = 0; k < rank; k++) dim[k] = k;
    for (int k = 1; k < rank && p->out[0].type.dims.n; k++)
        for (int j = k;
             j > 0 && p->out[0].layout.stride[dim[j]] > p->out[0].layout.stride[dim[j - 1]]; j--) {
            const int t = dim[j];
            dim[j] = dim[j - 1];
            dim[j - 1] = t;
        }
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const int rank = dims_of(p);
    const bool triangle = FAC_IS(p->node, trilu),
               fill = FAC_IS(p->node, pad) && p->in[2].type.dtype != FAC_NONE;
    int64_t first[FAC_DIMS];
    int dim[FAC_DIMS];
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    const int64_t count = fac_dims_count(&p->out[0].type.dims);
    if (!count) return FAC_OK;
    FAC_TRY(fill_table(o, p, plan, first, err));
    order(p, dim);
    if (triangle)
        for (int k = 0; k < rank; k++) dim[k] = k;
    fac_text_print(&options, "-DV=1 -DT=float -DM=%s -DR=%d%s",
                   fac_cl_bits((size_t)fac_dtype_get(p->out[0].type.dtype)->block_bytes), rank,
                   fill ? " -DFILL" : "");
    if (triangle)
        fac_text_print(&options, " -DDIAGONAL=%d", fac_attr_flag(p->node, "lower") ? -1 : 1);
    fac_cl_option_wide(p, &options);
    fac_status status = fac_cl_call_new(o, plan, fac_kernel_table, &options, "moved", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    const int64_t size = size_at(p, dim[rank - 1]),
                  run = o->limits.gpu     ? 1
                        : size < LONG_RUN ? size
                                          : LONG_RUN,
                  runs = (size + run - 1) / run;
    fac_cl_call_in(c, p, moved_input(p));
    fac_cl_call_out(c, p, 0);
    fac_cl_call_table(c, sizeof(int64_t));
    fac_cl_call_in(c, p, fill ? 2 : moved_input(p));
    fac_cl_call_number(c, count / size * runs);
    fac_cl_call_number(c, runs);
    fac_cl_call_number(c, run);
    fac_cl_call_number(c, triangle ? entry(p, 1, 0, 0) : 0);
    for (int k = 0; k < rank; k++) fac_cl_call_number(c, size_at(p, dim[k]));
    for (int k = 0; k < rank; k++)
        fac_cl_call_number(c, p->out[0].type.dims.n ? p->out[0].layout.stride[dim[k]] : 0);
    for (int k = 0; k < rank; k++) fac_cl_call_number(c, first[dim[k]]);
    fac_cl_call_items(c, (size_t)(count / size * runs),
                      o->limits.gpu ? GROUP
                      : run > GROUP ? 1
                                    : GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

/* ---- pad_grad ---- */

static bool offer_grad(fac_device *d, fac_problem *p, fac_offer *o) {
    if (p->in[0].type.dtype != FAC_NONE && p->in[0].layout.block)
        p->in[0].layout = fac_layout_plain(&p->in[0].type.dims);
    if (!fac_cl_settle(fac_opencl_of(d), p)) return false;
    o->seconds = fac_cl_price(fac_opencl_of(d), p, 1);
    return true;
}

/* For each coordinate of dx along axis a, which coordinates of dy were read from there.  starts: d
 * + 1 numbers; list: one a coordinate of dy, times its stride. */
static void lists(const fac_problem *p, int a, int64_t *starts, int64_t *list) {
    const int64_t size = size_at(p, a), all = p->in[3].type.dims.d[a],
                  before = pad_before(p, 1, 2, a);
    for (int64_t i = 0; i <= size; i++) starts[i] = 0;
    for (int64_t k = 0; k < all; k++) starts[fac_pad_from(mode_of(p), k - before, size)]++;
    for (int64_t i = 0, n = 0; i <= size; i++) {
        n += starts[i]; /* their ends */
        starts[i] = n;
    }
    for (int64_t k = all - 1; k >= 0; k--)
        list[--starts[fac_pad_from(mode_of(p), k - before, size)]] = k * p->in[3].layout.stride[a];
}

static fac_status add_grad(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const int rank = p->out[0].type.dims.n;
    int64_t starts[FAC_DIMS], at[FAC_DIMS], all = 0;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    const int64_t count = fac_dims_count(&p->out[0].type.dims);
    if (!count) return FAC_OK;
    for (int k = 0; k < rank; k++) {
        starts[k] = all;
        all += size_at(p, k) + 1;
        at[k] = all;
        all += p->in[3].type.dims.d[k];
    }
    int64_t *table = fac_alloc((size_t)all + 1, sizeof *table);
    if (!table)
        return fac_raise(err, FAC_E_NOMEM, "pad_grad: no memory for a table of %lld places",
                         (long long)all);
    for (int k = 0; k < rank; k++) lists(p, k, table + starts[k], table + at[k]);
    fac_status status = fac_cl_plan_table(o, plan, table, (size_t)all * sizeof *table, err);
    fac_release(table);
    FAC_TRY(status);
    fac_text_print(&options, "-DV=1 -DSUMS -DT=%s -DX=%s -DR=%d",
                   fac_cl_computing(p->out[0].type.dtype), fac_cl_tag(p->out[0].type.dtype), rank);
    fac_cl_option_wide(p, &options);
    status = fac_cl_call_new(o, plan, fac_kernel_table, &options, "gathered", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 3);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_table(c, sizeof(int64_t));
    fac_cl_call_number(c, count);
    for (int k = 0; k < rank; k++) fac_cl_call_number(c, size_at(p, k));
    for (int k = 0; k < rank; k++) fac_cl_call_number(c, p->out[0].layout.stride[k]);
    for (int k = 0; k < rank; k++) fac_cl_call_number(c, at[k]);
    for (int k = 0; k < rank; k++) fac_cl_call_number(c, starts[k]);
    fac_cl_call_items(c, (size_t)count, GROUP);
    return FAC_OK;
}

static fac_status make_grad(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add_grad, out, err);
}

const fac_solver fac_cl_table = { .name = "table",
                                  .rank = 70,
                                  .offer = offer,
                                  .make = make,
                                  .done = fac_cl_plan_done,
                                  .run = fac_cl_plan_run };
const fac_solver fac_cl_pad_grad = { .name = "pad_grad",
                                     .op = &fac_op_pad_grad,
                                     .rank = 80,
                                     .offer = offer_grad,
                                     .make = make_grad,
                                     .done = fac_cl_plan_done,
                                     .run = fac_cl_plan_run };
