#include "ops/host_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* without these dims of size 1; axes.n = 0: without all that are 1 */
fac_value *fac_squeeze(fac_value *x, fac_dims axes);
#endif

static const fac_port in[] = { { "x", FAC_ANY, 0 },
                               { "axes", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    bool drop[FAC_DIMS];
    fac_dims y = { 0 };
    fac_contents axes = { 0 };
    if (n->in[1] && !fac_known_numbers(n->in[1], &axes)) {
        int less = fac_host_length(n->in[1]);
        if (fac_list_is_open(n->in[1])) return fac_rankless(n->out[0], n->in[0]->type.dtype), true;
        if (less < 0 || less > x->n)
            return fac_fail(n, FAC_E_SHAPE, "axes must be a list of at most %d", x->n);
        for (y.n = 0; y.n < x->n - less; y.n++) y.d[y.n] = fac_symbol(n->graph, NULL);
    } else {
        if (!fac_axes_set(n, &axes, x->n, drop)) return false;
        for (int k = 0; k < x->n; k++) {
            if (!n->in[1]) drop[k] = x->d[k] == 1; /* a symbol is taken to stay */
            if (!n->in[1] && x->d[k] < 0) n->out[0]->guess = FAC_ASSUMED;
            if (drop[k] && x->d[k] >= 0 && x->d[k] != 1)
                return fac_fail(n, FAC_E_SHAPE, "dim %d is %lld, not 1", k, (long long)x->d[k]);
            if (!drop[k]) y.d[y.n++] = x->d[k];
        }
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
    out[0] = fac_squeeze(ins[0], fac_onnx_ints(n, "axes"));
}
static const fac_onnx_attr names[] = { { "axes", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Squeeze", 13, 0, NULL, NULL, 0 },
                                 { "", "Squeeze", 1, 12, names, load, 0 },
                                 { 0 } };
static const fac_case cases[] = { { "squeeze(f32[1,3,1,2], i64{0,-2})", -4, 4, 0 },
                                  { "squeeze(f32[1,3,1,2])", -4, 4, 0 },
                                  { "squeeze(i64[1], i64{0})", -9, 9, 0 },
                                  { "squeeze(bool[2,1,0], i64{1})", 0, 0, 0 },
                                  { "squeeze(f32[])", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_squeeze = {
    .name = "squeeze",
    .doc = "x without dims of size 1",
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
fac_value *fac_squeeze(fac_value *x, fac_dims axes) {
    fac_value *list = axes.n ? fac_ints(fac_value_graph(x), axes) : NULL;
    return fac_emit(&fac_op_squeeze, NULL, list ? 2 : 1, (fac_value *[]){ x, list });
}
