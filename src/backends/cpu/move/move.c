/* Solvers "move" and "reshape": what changes only where elements lie, when the planner could not
 * make a view of it.
 *
 * move: transpose, slice, split, expand.  Every input index is  first_k + step_k (one output index)
 * or fixed, which one question for the first element and one for its neighbour along each dim, put
 * to the op's own index function, find out.  So an output is a strided window on the input, a copy.
 * A blocked axis of the input is kept when it is cut at whole blocks. reshape: reshape, flatten,
 * squeeze, unsqueeze: the order of elements stays, so the input is copied to contiguous memory.
 * Copies move bits: exact, any element type of whole bytes. */
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "cpu_solvers.h"
#include "backends/problem.h"
#include "base/error.h"
#include "ops/reshapes.h"
#include "op_list.h"
#include <string.h>

typedef struct plan {
    int n;
    fac_copy copy[];
} plan;

/* The input as output k sees it; false when its layout cannot say that. */
static bool window(const fac_problem *p, int k, fac_layout *out) {
    const fac_dims *x = &p->in[0].type.dims, *y = &p->out[k].type.dims;
    const fac_layout *l = &p->in[0].layout;
    int64_t to[FAC_DIMS] = { 0 }, first[FAC_DIMS] = { 0 };
    int input = 0;
    fac_known_move known;
    if (!fac_known_move_of(p, k, &known) || !p->node->op->move(&known.move, to, &input, first))
        return false;
    *out = (fac_layout){ .offset = l->offset };
    if (l->block > 0) {
        out->axis = -1;
        out->block = l->block;
    }
    for (int j = 0; j < x->n; j++) {
        if (l->block == 0 || l->axis != j)
            out->offset += first[j] * l->stride[j];
        else if (first[j] % l->block)
            return false;
        else
            out->offset += first[j] / l->block * l->stride[j];
    }
    for (int a = 0; a < y->n; a++) {
        int64_t from[FAC_DIMS] = { 0 };
        if (y->d[a] < 2) continue;
        to[a] = 1;
        if (!p->node->op->move(&known.move, to, &input, from)) return false;
        to[a] = 0;
        for (int j = 0; j < x->n; j++) {
            int64_t step = from[j] - first[j];
            if (step == 0) continue;
            if (l->block > 0 && l->axis == j) {
                if (step != 1 || out->axis >= 0) return false;
                out->axis = a;
                out->stride[a] = l->stride[j];
            } else
                out->stride[a] += step * l->stride[j];
        }
    }
    if (l->block > 0 && out->axis < 0)
        out->axis = out->block = 0; /* one element of the blocked axis */
    return true;
}

static const fac_op *const moves[] = { &fac_op_transpose, &fac_op_slice, &fac_op_split,
                                       &fac_op_expand, NULL };

static double price(const fac_device *d, const fac_problem *p) {
    double bytes = 0;
    for (int k = 0; k < p->nout; k++) bytes += (double)fac_type_bytes(&p->out[k].type);
    return fac_cpu_speeds.step * p->nout + 2 * bytes / fac_cpu_of(d)->bandwidth;
}

static bool offer_move(fac_device *d, fac_problem *p, fac_offer *o) {
    if (!fac_op_is_one_of(p->node->op, moves) || p->node->body[0] ||
        fac_copy_size(p->in[0].type.dtype) == 0)
        return false;
    fac_layout *from = fac_offer_keep(o, (size_t)p->nout * sizeof *from, NULL); /* windows */
    if (!from) return false;
    for (int pass = 0; pass < 2; pass++) {
        int k = 0;
        for (; k < p->nout; k++) {
            fac_operand *y = &p->out[k];
            if (fac_dims_count(&y->type.dims) == 0) continue;
            if (!window(p, k, &from[k]) || !fac_copy_fits(&from[k], &y->layout)) break;
            if (from[k].block > 0 && from[k].axis == 1 && y->type.dims.n == 4 &&
                fac_layout_is_plain(&y->layout, &y->type.dims))
                y->layout = fac_layout_blocked(&y->type.dims, 1, from[k].block, y->layout.halo);
        }
        if (k == p->nout) {
            o->seconds = price(d, p);
            return true;
        }
        if (pass == 0) p->in[0].layout = fac_layout_plain(&p->in[0].type.dims);
    }
    return false;
}

static bool offer_reshape(fac_device *d, fac_problem *p, fac_offer *o) {
    if (!fac_node_reshapes(p->node) || p->node->body[0] || fac_copy_size(p->in[0].type.dtype) == 0)
        return false;
    if (!fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims)) return false;
    o->seconds = price(d, p);
    return true;
}

static fac_status new_plan(const fac_problem *p, plan **out, fac_error *err) {
    plan *r = fac_solver_plan(p, sizeof *r + (size_t)p->nout * sizeof *r->copy, err);
    if (!r) return FAC_E_NOMEM;
    r->n = p->nout;
    *out = r;
    return FAC_OK;
}

static fac_status make_move(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    const fac_layout *from = p->draft;
    plan *r;
    FAC_TRY(new_plan(p, &r, err));
    for (int k = 0; k < p->nout; k++)
        if (fac_dims_count(&p->out[k].type.dims))
            fac_copy_plan(&r->copy[k], &p->out[k].type.dims, &from[k], &p->out[k].layout,
                          fac_copy_size(p->in[0].type.dtype));
    *out = r;
    return FAC_OK;
}

static fac_status make_reshape(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    plan *r;
    FAC_TRY(new_plan(p, &r, err));
    fac_layout to = fac_layout_plain(&p->in[0].type.dims);
    to.offset = p->out[0].layout.offset;
    fac_copy_plan(&r->copy[0], &p->in[0].type.dims, &p->in[0].layout, &to,
                  fac_copy_size(p->in[0].type.dtype));
    *out = r;
    return FAC_OK;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *r = arg;
    const fac_cpu *cpu = fac_cpu_of(d);
    for (int k = 0; k < r->n; k++)
        if (out[k].memory)
            fac_copy_run(&r->copy[k], cpu, fac_span_bytes(in[0]), fac_span_bytes(out[k]));
    return FAC_OK;
}

const fac_solver fac_cpu_move = { .name = "move",
                                  .rank = 880,
                                  .offer = offer_move,
                                  .make = make_move,
                                  .done = fac_solver_done,
                                  .run = run };
const fac_solver fac_cpu_reshape = { .name = "reshape",
                                     .rank = 890,
                                     .offer = offer_reshape,
                                     .make = make_reshape,
                                     .done = fac_solver_done,
                                     .run = run };
