/* The adjoint of slice; has no prototype. */
#include "ops/shape.h"
#include "ops/slice.h"

static const fac_port in[] = { { "x", FAC_ANY, FAC_SHAPE_ONLY },
                               { "starts", FAC_INTS, FAC_HOST },
                               { "ends", FAC_INTS, FAC_HOST },
                               { "axes", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { "steps", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { "dy", FAC_ANY, 0 },
                               { 0 } };

extern const fac_op fac_op_slice, fac_op_slice_grad;

static bool infer(fac_node *n) {
    const fac_dims *dy = &n->in[5]->type.dims;
    fac_dims y;
    if (!fac_slice_dims(n, &y)) return false;
    if (y.n != dy->n) return fac_fail(n, FAC_E_SHAPE, "dy and x differ in rank");
    for (int k = 0; k < y.n; k++)
        if (y.d[k] >= 0 && dy->d[k] >= 0 && y.d[k] != dy->d[k])
            return fac_fail(n, FAC_E_SHAPE, "dim %d of dy is %lld, the slice of x has %lld", k,
                            (long long)dy->d[k], (long long)y.d[k]);
    n->out[0]->type = (fac_type){ n->in[5]->type.dtype, n->in[0]->type.dims };
    return true;
}

/* Element first + i step comes from element i; between them lie zeros. */
static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const int64_t *axes = m->in[3].i, *steps = m->in[4].i;
    const int count = (int)fac_dims_count(&m->in[1].type.dims);
    *input = 5;
    for (int k = 0; k < m->out.n; k++) from[k] = to[k];
    for (int k = 0; k < count; k++) {
        const int axis = axes ? fac_axis(axes[k], m->out.n) : k;
        if (axis < 0) return false;
        const fac_slice_range r =
            fac_slice_range_of(m->out.d[axis], m->in[1].i[k], m->in[2].i[k], steps ? steps[k] : 1);
        const int64_t offset = to[axis] - r.first;
        from[axis] = offset / r.step;
        if (offset % r.step || from[axis] < 0 || from[axis] >= r.count) return false;
    }
    return true;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[5] = fac_emit(&fac_op_slice, NULL, 5,
                     (fac_value *[]){ dy[0], n->in[1], n->in[2], n->in[3], n->in[4] });
}

static const fac_case cases[] = {
    { "slice_grad(f32[5,6], i64{1}, i64{4}, i64{0}, -, f32[3,6])", -4, 4, 0 },
    { "slice_grad(f32[5,6], i64{0,5}, i64{5,0}, i64{0,1}, i64{2,-2}, f32[3,3])", -4, 4, 0 },
    { "slice_grad(f16[2,8], i64{0}, i64{9223372036854775807}, i64{1}, i64{3}, f16[2,3])", -4, 4,
      0 },
    { "slice_grad(f32[5,6], i64{3}, i64{1}, -, -, f32[0,6])", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_slice_grad = {
    .name = "slice_grad",
    .doc = "dy where a slice of x came from, zeros elsewhere",
    .in = in,
    .out = fac_ports_y,
    .infer = infer,
    .move = move,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
