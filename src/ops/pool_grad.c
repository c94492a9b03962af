/* Gradients of pooling: see pool_grad.h.  Both are linear in dy, so each has the pooling's own
 * linear part as its gradient: the average, or the elements at the places of the maxima. */
#include <string.h>
#include "op_list.h"
#include "ops/cost.h"
#include "ops/pool_grad.h"

const fac_port fac_max_pool_grad_in[] = { { "x", FAC_FLOATS, 0 }, { "dy", FAC_FLOATS, 0 }, { 0 } };
const fac_port fac_avg_pool_grad_in[] = { { "x", FAC_FLOATS, FAC_SHAPE_ONLY },
                                          { "dy", FAC_FLOATS, 0 },
                                          { 0 } };
const fac_port fac_pool_grad_out[] = { { "dx", FAC_FLOATS, 0 }, { 0 } };

static bool is_max2d(const fac_node *n) {
    return n->op == &fac_op_max_pool2d_grad || n->op == &fac_op_max_pool2d_relu_grad;
}
static bool is_max(const fac_node *n) { return is_max2d(n) || n->op == &fac_op_max_pool3d_grad; }
static int rank_of(const fac_node *n) {
    if (is_max2d(n) || n->op == &fac_op_avg_pool2d_grad) return 2;
    return n->op == &fac_op_max_pool3d_grad || n->op == &fac_op_avg_pool3d_grad ? 3 : 0;
}

bool fac_pool_grad_geometry(const fac_node *n, fac_pool_geom *g) {
    int rank = rank_of(n);
    return rank && fac_pool_geometry_of(rank, n->attrs, &n->in[0]->type.dims, g);
}

bool fac_pool_grad_infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *dy = &n->in[1]->type;
    int rank = rank_of(n);
    fac_pool_geom g;
    if (x->dims.n != 2 + rank || dy->dims.n != 2 + rank)
        return fac_fail(n, FAC_E_SHAPE, "x and dy must have %d dims", 2 + rank);
    if (is_max(n) && x->dtype != dy->dtype)
        return fac_fail(n, FAC_E_DTYPE, "x and dy must have one dtype");
    bool numbers = true;
    for (int k = 0; k < 2 + rank; k++) numbers &= x->dims.d[k] >= 0;
    if (numbers && !fac_pool_grad_geometry(n, &g))
        return fac_fail(n, FAC_E_SHAPE, "no window fits into the padded x");
    for (int k = 0; k < 2 + rank; k++) {
        int64_t want = k < 2     ? x->dims.d[k]
                       : numbers ? g.window[1 - rank + k].out
                                 : -1,
                have = dy->dims.d[k];
        if (want >= 0 && have >= 0 && want != have)
            return fac_fail(n, FAC_E_SHAPE, "dim %d of dy must be %lld", k, (long long)want);
    }
    n->out[0]->type = (fac_type){ dy->dtype, x->dims };
    return true;
}

/* One comparison or addition for each tap. */
void fac_pool_grad_cost(const fac_node *n, fac_cost *cost) {
    const fac_pool2d_attrs *two = n->attrs;
    const fac_pool3d_attrs *three = n->attrs;
    const int64_t *kernel = rank_of(n) == 2 ? two->kernel : three->kernel;
    double taps = 1;
    for (int k = 0; k < rank_of(n); k++) taps *= (double)kernel[k];
    fac_cost_bytes(n, cost);
    if (!is_max(n)) cost->read -= fac_cost_operand(n->in[0]);
    cost->macs = 0;
    cost->other = fac_cost_count(n->in[1]) * taps;
}

/* ---- gradients ---- */

void fac_max_pool_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    if (!dy[0]) return;
    const fac_op *op =
        n->op == &fac_op_max_pool2d ? &fac_op_max_pool2d_grad : &fac_op_max_pool3d_grad;
    dx[0] = fac_emit(op, n->attrs, 2, (fac_value *[]){ n->in[0], dy[0] });
}

void fac_avg_pool_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const fac_op *op =
        n->op == &fac_op_avg_pool2d ? &fac_op_avg_pool2d_grad : &fac_op_avg_pool3d_grad;
    dx[0] = fac_emit(op, n->attrs, 2, (fac_value *[]){ n->in[0], dy[0] });
}

/* The places of the maxima come from the pooling itself; a window that saw nothing has index -1 and
 * takes nothing. */
void fac_max_pool_grad_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_pool2d_attrs a2;
    fac_pool3d_attrs a3;
    if (!fac_needs(n, 1)) return;
    bool flat = rank_of(n) == 2;
    if (flat) {
        a2 = *(const fac_pool2d_attrs *)n->attrs;
        a2.column_major = false;
    } else {
        a3 = *(const fac_pool3d_attrs *)n->attrs;
        a3.column_major = false;
    }
    const void *attrs = flat ? (const void *)&a2 : (const void *)&a3;
    fac_value *y = fac_emit(flat ? &fac_op_max_pool2d : &fac_op_max_pool3d, attrs, 1, n->in);
    fac_value *index = fac_value_other(y, 1), *zero = fac_number(n->graph, dy[0]->type.dtype, 0);
    fac_value *taken = fac_gather(fac_reshape(dy[0], fac_shape(-1)), index, 0);
    dx[1] = fac_where(fac_less(index, fac_number(n->graph, FAC_I64, 0)), zero, taken);
}

void fac_avg_pool_grad_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const fac_op *op = rank_of(n) == 2 ? &fac_op_avg_pool2d : &fac_op_avg_pool3d;
    if (fac_needs(n, 1)) dx[1] = fac_emit(op, n->attrs, 1, dy);
}

/* ---- references ---- */

/* dy of output (o, p, q) spread evenly over the plane dx, as the average was taken. */
static void share(const fac_pool_geom *g, double dy, double *dx, int64_t o, int64_t p, int64_t q) {
    const fac_window *d = &g->window[0], *h = &g->window[1], *w = &g->window[2];
    int64_t t0, t1, r0, r1, s0, s1;
    int64_t taps = fac_window_taps(d, o, &t0, &t1) * fac_window_taps(h, p, &r0, &r1) *
                   fac_window_taps(w, q, &s0, &s1);
    if (!g->count_include_pad) taps = (t1 - t0) * (r1 - r0) * (s1 - s0);
    for (int64_t t = t0; t < t1; t++)
        for (int64_t r = r0; r < r1; r++)
            for (int64_t s = s0; s < s1; s++) {
                int64_t z = o * d->stride + t * d->dilation - d->pad,
                        i = p * h->stride + r * h->dilation - h->pad;
                dx[(z * h->in + i) * w->in + q * w->stride + s * w->dilation - w->pad] +=
                    dy / (double)taps;
            }
}

static fac_status ref(int rank, bool max, const fac_ref *r) {
    fac_pool_geom g;
    if (!fac_pool_of_ref(r, rank, &g)) return FAC_E_INTERNAL;
    const double *dy = r->in[1].f;
    double *dx = r->out[0].f;
    int64_t size = g.window[0].in * g.window[1].in * g.window[2].in;
    memset(dx, 0, (size_t)fac_dims_count(&r->out[0].type.dims) * sizeof *dx);
    for (int64_t nc = 0; nc < g.N * g.C; nc++, dx += size)
        for (int64_t o = 0; o < g.window[0].out; o++)
            for (int64_t p = 0; p < g.window[1].out; p++)
                for (int64_t q = 0; q < g.window[2].out; q++, dy++) {
                    int64_t at = max ? fac_pool_largest(&g, &r->in[0], nc * size, o, p, q) : -1;
                    if (at >= 0)
                        dx[at] += *dy;
                    else if (!max)
                        share(&g, *dy, dx, o, p, q);
                }
    return FAC_OK;
}

fac_status fac_max_pool2d_grad_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(2, true, r);
}
fac_status fac_max_pool3d_grad_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(3, true, r);
}
fac_status fac_avg_pool2d_grad_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(2, false, r);
}
fac_status fac_avg_pool3d_grad_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return ref(3, false, r);
}
