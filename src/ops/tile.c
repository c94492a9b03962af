#include "ops/host_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
fac_value *fac_tile(fac_value *x, fac_dims repeats); /* x repeated so many times along each axis */
#endif

static const fac_port in[] = { { "x", FAC_ANY, 0 }, { "repeats", FAC_INTS, FAC_HOST }, { 0 } };

static bool infer(fac_node *n) {
    fac_type y = n->in[0]->type;
    fac_contents c;
    if (!fac_list_may_have(n->in[1], y.dims.n))
        return fac_fail(n, FAC_E_SHAPE, "repeats must have one number for each of %d dims",
                        y.dims.n);
    bool known = fac_known(n->in[1], &c);
    for (int k = 0; k < y.dims.n; k++) {
        if (known && c.v[k] < 0 && !(c.symbolic >> k & 1))
            return fac_fail(n, FAC_E_ARGUMENT, "%lld repeats", (long long)c.v[k]);
        y.dims.d[k] =
            known ? fac_size_product(n->graph, y.dims.d[k], c.v[k]) : fac_symbol(n->graph, NULL);
    }
    n->out[0]->type = y;
    return true;
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    for (int k = 0; k < m->out.n; k++) from[k] = to[k] % m->in[0].type.dims.d[k];
    *input = 0;
    return true;
}

/* Axis by axis the copies become a dim of their own, which is summed away: [r d] -> [r, d] -> [d].
 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const int rank = n->in[0]->type.dims.n;
    fac_value *x = fac_shape_of(n->in[0]), *y = fac_shape_of(dy[0]),
              *repeats = fac_cast(n->in[1], FAC_I64), *d = dy[0];
    for (int k = 0; k < rank; k++) {
        fac_value *parts[] = { fac_slice(x, 0, 0, k, 1), fac_slice(repeats, 0, k, k + 1, 1),
                               fac_slice(x, 0, k, k + 1, 1), fac_slice(y, 0, k + 1, rank, 1) };
        d = fac_sum(fac_reshape_exactly(d, fac_concat(parts, 4, 0)), fac_shape(k), false);
    }
    dx[0] = d;
}

static const fac_onnx onnx[] = { { "", "Tile", 6, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = {
    { "tile(f32[2,3], i64{2,2})", -4, 4, 0 },     { "tile(i64[3], i64{3})", -9, 9, 0 },
    { "tile(f16[2,1,3], i64{1,4,1})", -4, 4, 0 }, { "tile(f32[2,3], i64{0,1})", 0, 0, 0 },
    { "tile(f32[], i64{})", -4, 4, 0 },           { 0 }
};

const fac_op fac_op_tile = {
    .name = "tile",
    .doc = "x repeated along its axes",
    .in = in,
    .out = fac_ports_y,
    .infer = infer,
    .move = move,
    .onnx = onnx,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_tile(fac_value *x, fac_dims repeats) {
    return fac_emit(&fac_op_tile, NULL, 2,
                    (fac_value *[]){ x, fac_ints(fac_value_graph(x), repeats) });
}
