#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* a / b; integers truncate towards zero, a / 0 = 0, the smallest number / -1 wraps; NumPy
 * broadcasting, one dtype. */
fac_value *fac_div(fac_value *a, fac_value *b);
#endif

MAP2_NUM(DIV(x, y))

/* dx = dy / y,  dy = -dy / y (x / y) */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *over = fac_div(dy[0], n->in[1]);
    fac_grad_weighted(n, 0, over, NULL, dx);
    if (fac_needs(n, 1)) fac_grad_weighted(n, 1, fac_neg(over), n->out[0], dx);
}

static bool symbols(fac_graph *g, const fac_item *x, fac_item *y) {
    if (x[1].symbolic || x[1].v <= 0) return false;
    *y = (fac_item){ fac_size_quotient(g, x[0].v, x[1].v), true };
    return true;
}
static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, symbols); }

static const fac_onnx onnx[] = { { "", "Div", 7, 0, NULL, NULL, 0 },
                                 { "", "Div", 1, 6, fac_names_first, fac_load_first, 2 },
                                 { 0 } };
static const fac_case cases[] = {
    { "div(f32[2,3], f32[3])", 0.5, 4, 1e-6 }, { "div(f32[4,1], f32[2,1,3])", 0.5, 4, 1e-6 },
    { "div(i64[200], i64[200])", -9, 9, 0 },   { "div(i8[300], i8[300])", -128, 127, 0 },
    { "div(u64[200], u64[200])", 0, 99, 0 },   { "div(i32[20], i32[])", -99, 99, 0 },
    { "div(f16[5], f16[5])", 0.5, 4, 1e-3 },   { "div(f32[0,3], f32[3])", 0, 0, 0 },
    { "div(f64[], f64[])", 0.5, 4, 1e-12 },    { 0 }
};

static void define(const fac_node *n, fac_value *out[]) {
    if (fac_define_floats(n)) out[0] = fac_mul(n->in[0], fac_reciprocal(n->in[1]));
}

const fac_op fac_op_div = {
    MAP_OP("div", "x / y; integers truncate, x / 0 = 0", fac_ports_num_xy, infer),
    .is = FAC_OP_INPLACE | FAC_OP_KNOWS,
    .grad = grad,
    .define = define,
    .rounding = { .rule = FAC_ROUND_DIV },
};
fac_value *fac_div(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_div, NULL, 2, (fac_value *[]){ a, b });
}
