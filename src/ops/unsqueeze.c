#include "ops/host_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
fac_value *fac_unsqueeze(
    fac_value *x, fac_dims axes); /* with dims of size 1 that have these places in the result */
#endif

static const fac_port in[] = { { "x", FAC_ANY, 0 }, { "axes", FAC_INTS, FAC_HOST }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    bool added[FAC_DIMS];
    fac_dims y = { 0 };
    fac_contents axes;
    int more = fac_host_length(n->in[1]);
    if (fac_list_is_open(n->in[1])) return fac_rankless(n->out[0], n->in[0]->type.dtype), true;
    if (more < 0 || x->n + more > FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "axes must be a list of at most %d", FAC_DIMS - x->n);
    y.n = x->n + more;
    if (!fac_known_numbers(n->in[1], &axes)) {
        for (int k = 0; k < y.n; k++) y.d[k] = fac_symbol(n->graph, NULL);
    } else {
        if (!fac_axes_set(n, &axes, y.n, added)) return false;
        for (int k = 0, i = 0; k < y.n; k++) y.d[k] = added[k] ? 1 : x->d[i++];
    }
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, y };
    return fac_knows_same(n);
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_reshape_like(dy[0], n->in[0]);
}

/* Before opset 13 the axes were an attribute. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *out[]) {
    (void)g;
    out[0] = fac_unsqueeze(ins[0], fac_onnx_ints(n, "axes"));
}
static const fac_onnx_attr names[] = { { "axes", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Unsqueeze", 13, 0, NULL, NULL, 0 },
                                 { "", "Unsqueeze", 1, 12, names, load, 1 },
                                 { 0 } };
static const fac_case cases[] = { { "unsqueeze(f32[2,3], i64{0,-1})", -4, 4, 0 },
                                  { "unsqueeze(f32[2,3], i64{1})", -4, 4, 0 },
                                  { "unsqueeze(i64[], i64{0})", -9, 9, 0 },
                                  { "unsqueeze(u8[0,2], i64{2})", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_unsqueeze = {
    .name = "unsqueeze",
    .doc = "x with more dims of size 1",
    .in = in,
    .out = fac_ports_y,
    .is = FAC_OP_KNOWS,
    .infer = infer,
    .move = fac_move_flat,
    .view = fac_view_flat,
    .onnx = onnx,
    .grad = grad,
    .cases = cases,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_unsqueeze(fac_value *x, fac_dims axes) {
    return fac_emit(&fac_op_unsqueeze, NULL, 2,
                    (fac_value *[]){ x, fac_ints(fac_value_graph(x), axes) });
}
