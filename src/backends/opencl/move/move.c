/* Solvers "copy" and "reshape": what changes only where elements lie and is affine in the
 * coordinates.
 *
 * copy: reorders between layouts, transpose, slice, split, expand, concat.  Every input index is
 * first_k + sum of step_k (output index), which one question for the first element and one for its
 * neighbour along each dim, put to the op's own index function, find out.  reshape: the order of
 * elements stays, so the input is copied to contiguous memory.  Copies move bits. */
#include <string.h>
#include "backends/opencl/move/copy.h"
#include "opencl_solvers.h"
#include "backends/problem.h"
#include "base/error.h"
#include "ops/reshapes.h"
#include "op_list.h"

static size_t element(const fac_problem *p) {
    return (size_t)fac_dtype_get(p->out[0].type.dtype)->block_bytes;
}

/* Movable: whole bytes that some integer type has. */
static bool takes(const fac_problem *p) {
    const fac_dtype_info *t = fac_dtype_get(p->out[0].type.dtype);
    return !p->node->body[0] && t->kind != 't' && t->block_elements == 1 &&
           *fac_cl_bits((size_t)t->block_bytes);
}

/* Output k as a strided window on the input; false when the op reads contents that are not known.
 */
static bool window(const fac_problem *p, int k, fac_cl_moved *to) {
    const fac_dims *y = &p->out[k].type.dims;
    const fac_layout *from = &p->in[0].layout, *into = &p->out[k].layout;
    int64_t at[FAC_DIMS] = { 0 }, first[FAC_DIMS] = { 0 };
    int input = 0;
    fac_known_move known;
    if (!fac_known_move_of(p, k, &known)) return false;
    *to = (fac_cl_moved){ .from_offset = from->offset, .to_offset = into->offset };
    if (!fac_dims_count(y)) {
        fac_cl_moved_dim(to, 0, 1, 1);
        return true;
    }
    if (!p->node->op->move(&known.move, at, &input, first)) return false;
    for (int j = 0; j < p->in[0].type.dims.n; j++) to->from_offset += first[j] * from->stride[j];
    for (int a = 0; a < y->n; a++) {
        int64_t next[FAC_DIMS] = { 0 }, step = 0;
        if (y->d[a] < 2) continue;
        at[a] = 1;
        if (!p->node->op->move(&known.move, at, &input, next)) return false;
        at[a] = 0;
        for (int j = 0; j < p->in[0].type.dims.n; j++)
            step += (next[j] - first[j]) * from->stride[j];
        fac_cl_moved_dim(to, y->d[a], step, into->stride[a]);
    }
    fac_cl_moved_settle(to);
    return true;
}

/* Input i of a concat as a window on the output, which counts `before` elements along the axis
 * already. */
static void part(const fac_problem *p, int i, int axis, int64_t before, fac_cl_moved *to) {
    const fac_dims *d = &p->in[i].type.dims;
    const fac_layout *from = &p->in[i].layout, *into = &p->out[0].layout;
    *to = (fac_cl_moved){ .from_offset = from->offset,
                          .to_offset = into->offset + before * into->stride[axis] };
    for (int k = 0; k < d->n; k++) fac_cl_moved_dim(to, d->d[k], from->stride[k], into->stride[k]);
    fac_cl_moved_settle(to);
}

/* Along which dim the inputs follow one another. */
static int axis_of(const fac_problem *p) {
    const fac_dims *y = &p->out[0].type.dims;
    for (int k = 0; k < y->n; k++) {
        int64_t sum = 0;
        bool differs = false;
        for (int i = 0; i < p->nin; i++) {
            sum += p->in[i].type.dims.d[k];
            differs |= p->in[i].type.dims.d[k] != y->d[k];
        }
        if (differs && sum == y->d[k]) return k;
    }
    return 0; /* one input */
}

/* ---- layouts ---- */

static void unblock(fac_problem *p) {
    for (int i = 0; i < p->nin + p->nout; i++) {
        fac_operand *x = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (x->type.dtype == FAC_NONE) continue;
        if (x->layout.block) x->layout = fac_layout_plain(&x->type.dims);
        x->layout.halo = 0;
    }
}

static const fac_op *const copies[] = {
    &fac_op_identity, &fac_op_stop, &fac_op_transpose, &fac_op_slice, &fac_op_split,
    &fac_op_expand,   NULL
};

static bool offer_copy(fac_device *d, fac_problem *p, fac_offer *o) {
    if (!fac_op_is_one_of(p->node->op, copies) || !takes(p)) return false;
    unblock(p);
    fac_cl_moved *m = fac_offer_keep(o, (size_t)p->nout * sizeof *m, NULL);
    if (!m) return false;
    for (int k = 0; k < p->nout; k++)
        if (p->out[k].type.dtype != FAC_NONE && !window(p, k, &m[k])) return false;
    o->seconds = fac_cl_price(fac_opencl_of(d), p, p->nout);
    return true;
}

static bool offer_concat(fac_device *d, fac_problem *p, fac_offer *o) {
    if (!FAC_IS(p->node, concat) || !takes(p)) return false;
    unblock(p);
    fac_cl_lay_alike(&p->in[0], &p->out[0]);
    o->seconds = fac_cl_price(fac_opencl_of(d), p, p->nin);
    return true;
}

static bool offer_reshape(fac_device *d, fac_problem *p, fac_offer *o) {
    if (!fac_node_reshapes(p->node) || !takes(p)) return false;
    unblock(p);
    if (!fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims))
        p->out[0].layout = fac_layout_plain(&p->out[0].type.dims);
    o->seconds = fac_cl_price(fac_opencl_of(d), p, 1);
    return true;
}

/* ---- plans ---- */

static fac_status add_copies(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                             fac_error *err) {
    const fac_cl_moved *m = p->draft;
    for (int k = 0; k < p->nout; k++)
        if (p->out[k].type.dtype != FAC_NONE)
            FAC_TRY(fac_cl_copy_add(o, plan, p, 0, k, &m[k], element(p), err));
    return FAC_OK;
}

static fac_status add_parts(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                            fac_error *err) {
    fac_cl_moved m;
    const int axis = axis_of(p);
    int64_t before = 0;
    for (int i = 0; i < p->nin; i++) {
        part(p, i, axis, before, &m);
        FAC_TRY(fac_cl_copy_add(o, plan, p, i, 0, &m, element(p), err));
        before += p->in[i].type.dims.d[axis];
    }
    return FAC_OK;
}

static fac_status add_reshape(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                              fac_error *err) {
    const fac_dims *d = &p->in[0].type.dims;
    const fac_layout *from = &p->in[0].layout, to = fac_layout_plain(d);
    fac_cl_moved m = { .from_offset = from->offset, .to_offset = p->out[0].layout.offset };
    for (int k = 0; k < d->n; k++) fac_cl_moved_dim(&m, d->d[k], from->stride[k], to.stride[k]);
    fac_cl_moved_settle(&m);
    return fac_cl_copy_add(o, plan, p, 0, 0, &m, element(p), err);
}

static fac_status make_copy(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, p->nout, add_copies, out, err);
}
static fac_status make_concat(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, p->nin, add_parts, out, err);
}
static fac_status make_reshape(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add_reshape, out, err);
}

const fac_solver fac_cl_copy = { .name = "copy",
                                 .rank = 40,
                                 .offer = offer_copy,
                                 .make = make_copy,
                                 .done = fac_cl_plan_done,
                                 .run = fac_cl_plan_run };
const fac_solver fac_cl_concat = { .name = "concat",
                                   .op = &fac_op_concat,
                                   .rank = 50,
                                   .offer = offer_concat,
                                   .make = make_concat,
                                   .done = fac_cl_plan_done,
                                   .run = fac_cl_plan_run };
const fac_solver fac_cl_reshape = { .name = "reshape",
                                    .rank = 60,
                                    .offer = offer_reshape,
                                    .make = make_reshape,
                                    .done = fac_cl_plan_done,
                                    .run = fac_cl_plan_run };
