/* Gradients of convolutions: see conv_grad.h.  Inputs are (dy, w, x) for the gradient of x and (x,
 * dy, w) for that of w; of the last only the shape is used. */
#include <string.h>
#include "op_list.h"
#include "ops/conv_grad.h"
#include "ops/cost.h"
#include "ops/shape.h"

const fac_port fac_conv_grad_x_in[] = {
    { "dy", FAC_FLOATS, 0 }, { "w", FAC_FLOATS, 0 }, { "x", FAC_FLOATS, FAC_SHAPE_ONLY }, { 0 }
};
const fac_port fac_conv_grad_w_in[] = {
    { "x", FAC_FLOATS, 0 }, { "dy", FAC_FLOATS, 0 }, { "w", FAC_FLOATS, FAC_SHAPE_ONLY }, { 0 }
};
const fac_port fac_conv_grad_x_out[] = { { "dx", FAC_FLOATS, 0 }, { 0 } };
const fac_port fac_conv_grad_w_out[] = { { "dw", FAC_FLOATS, 0 }, { 0 } };

static int rank_of(const fac_node *n) {
    return n->op == &fac_op_conv2d_grad_x || n->op == &fac_op_conv2d_grad_w ? 2 : 3;
}
static bool is_grad_x(const fac_node *n) {
    return n->op == &fac_op_conv2d_grad_x || n->op == &fac_op_conv3d_grad_x;
}

/* Dims of the convolution's operands. */
typedef struct operands {
    const fac_dims *x, *w, *dy;
} operands;
static operands operands_of(const fac_node *n) {
    const fac_dims *a = &n->in[0]->type.dims, *b = &n->in[1]->type.dims,
                   *like = &n->in[2]->type.dims;
    return is_grad_x(n) ? (operands){ like, b, a } : (operands){ a, like, b };
}

bool fac_conv_grad_geometry(const fac_node *n, fac_conv_geom *g) {
    if (n->op != &fac_op_conv2d_grad_x && n->op != &fac_op_conv2d_grad_w &&
        n->op != &fac_op_conv3d_grad_x && n->op != &fac_op_conv3d_grad_w)
        return false;
    operands o = operands_of(n);
    for (int k = 0; k < o.dy->n; k++)
        if (o.dy->d[k] < 0) return false;
    return fac_conv_geometry_of(rank_of(n), n->attrs, o.x, o.w, g);
}

bool fac_conv_grad_infer(fac_node *n) {
    int rank = rank_of(n);
    operands o = operands_of(n);
    fac_dtype dtype = n->in[0]->type.dtype;
    if (o.x->n != 2 + rank || o.w->n != 2 + rank || o.dy->n != 2 + rank)
        return fac_fail(n, FAC_E_SHAPE, "x, w and dy must have %d dims", 2 + rank);
    if (n->in[1]->type.dtype != dtype)
        return fac_fail(n, FAC_E_DTYPE, "x, w and dy must have one dtype");
    int64_t groups = rank == 2 ? ((const fac_conv2d_opts *)n->attrs)->groups
                               : ((const fac_conv3d_opts *)n->attrs)->groups;
    int64_t C = o.x->d[1], K = o.w->d[0], c = o.w->d[1], all = 0;
    if ((c >= 0 && (__builtin_mul_overflow(c, groups, &all) || fac_differ(C, all))) ||
        (K >= 0 && K % groups))
        return fac_fail(n, FAC_E_SHAPE, "the channels of x and w do not fit with %lld groups",
                        (long long)groups);
    if (fac_differ(o.dy->d[0], o.x->d[0]) || fac_differ(o.dy->d[1], K))
        return fac_fail(n, FAC_E_SHAPE, "dy must have %lld images of %lld channels",
                        (long long)o.x->d[0], (long long)K);
    fac_conv_geom g;
    bool numbers = true;
    for (int k = 0; k < 2 + rank; k++) numbers &= o.x->d[k] >= 0 && o.w->d[k] >= 0;
    if (numbers && !fac_conv_geometry_of(rank, n->attrs, o.x, o.w, &g))
        return fac_fail(n, FAC_E_SHAPE, "the kernel exceeds the padded input");
    for (int k = 0; numbers && k < rank; k++)
        if (fac_differ(o.dy->d[2 + k], g.out[3 - rank + k]))
            return fac_fail(n, FAC_E_SHAPE, "dim %d of dy must be %lld", 2 + k,
                            (long long)g.out[3 - rank + k]);
    n->out[0]->type = (fac_type){ dtype, n->in[2]->type.dims };
    return true;
}

/* As many multiply-adds as the convolution has. */
void fac_conv_grad_cost(const fac_node *n, fac_cost *cost) {
    operands o = operands_of(n);
    double each = 1, outputs = fac_cost_count(n->in[is_grad_x(n) ? 0 : 1]);
    for (int k = 1; k < o.w->n; k++) each *= o.w->d[k] > 0 ? (double)o.w->d[k] : 0;
    fac_cost_bytes(n, cost);
    cost->read -= fac_cost_operand(n->in[2]);
    cost->macs = outputs * each;
    cost->other = 0;
}

/* ---- gradients of gradients ---- */

static fac_value *emit_conv(const fac_node *n, int rank, fac_value *x, fac_value *w) {
    return fac_emit(rank == 2 ? &fac_op_conv2d : &fac_op_conv3d, n->attrs, 3,
                    (fac_value *[]){ x, w, NULL });
}
static fac_value *emit_grad_x(const fac_node *n, int rank, fac_value *dy, fac_value *w,
                              fac_value *x) {
    return fac_emit(rank == 2 ? &fac_op_conv2d_grad_x : &fac_op_conv3d_grad_x, n->attrs, 3,
                    (fac_value *[]){ dy, w, x });
}
static fac_value *emit_grad_w(const fac_node *n, int rank, fac_value *x, fac_value *dy,
                              fac_value *w) {
    return fac_emit(rank == 2 ? &fac_op_conv2d_grad_w : &fac_op_conv3d_grad_w, n->attrs, 3,
                    (fac_value *[]){ x, dy, w });
}

/* Of the convolution itself; the bias was added to every image and place. */
void fac_conv_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    int rank = n->op == &fac_op_conv2d ? 2 : 3;
    if (fac_needs(n, 0)) dx[0] = emit_grad_x(n, rank, dy[0], n->in[1], n->in[0]);
    if (fac_needs(n, 1)) dx[1] = emit_grad_w(n, rank, n->in[0], dy[0], n->in[1]);
    if (fac_needs(n, 2))
        dx[2] = fac_sum(dy[0], rank == 2 ? fac_shape(0, 2, 3) : fac_shape(0, 2, 3, 4), false);
}

void fac_conv_grad_x_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    int rank = rank_of(n);
    if (fac_needs(n, 0)) dx[0] = emit_conv(n, rank, dy[0], n->in[1]);
    if (fac_needs(n, 1)) dx[1] = emit_grad_w(n, rank, dy[0], n->in[0], n->in[1]);
}

void fac_conv_grad_w_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    int rank = rank_of(n);
    if (fac_needs(n, 0)) dx[0] = emit_grad_x(n, rank, n->in[1], dy[0], n->in[0]);
    if (fac_needs(n, 1)) dx[1] = emit_conv(n, rank, n->in[0], dy[0]);
}

/* ---- references ---- */

static fac_status ref(int rank, bool of_x, const fac_ref *r) {
    const fac_dims *like = &r->out[0].type.dims;
    const fac_array *dy = &r->in[of_x ? 0 : 1];
    const fac_array *other = &r->in[of_x ? 1 : 0];
    double *to = r->out[0].f;
    fac_conv_geom g;
    const fac_dims *x = of_x ? like : &other->type.dims;
    const fac_dims *w = of_x ? &other->type.dims : like;
    if (!fac_conv_geometry_of(rank, r->attrs, x, w, &g)) return FAC_E_INTERNAL;
    int64_t plane = g.D * g.H * g.W, taps = g.T * g.R * g.S, image = g.O * g.P * g.Q,
            c = g.C / g.groups, each = g.K / g.groups;
    memset(to, 0, (size_t)fac_dims_count(like) * sizeof *to);
    for (int64_t n = 0; n < g.N; n++)
        for (int64_t k = 0; k < g.K; k++)
            for (int64_t i = 0; i < c; i++) {
                int64_t at_x = (n * g.C + k / each * c + i) * plane, at_w = (k * c + i) * taps;
                const double *from = dy->f + (n * g.K + k) * image;
                if (of_x)
                    fac_conv_planes(&g, FAC_CONV_X, NULL, other->f + at_w, from, to + at_x);
                else
                    fac_conv_planes(&g, FAC_CONV_W, other->f + at_x, NULL, from, to + at_w);
            }
    return FAC_OK;
}

fac_status fac_conv2d_grad_x_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(2, true, r);
}
fac_status fac_conv2d_grad_w_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(2, false, r);
}
fac_status fac_conv3d_grad_x_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(3, true, r);
}
fac_status fac_conv3d_grad_w_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(3, false, r);
}
