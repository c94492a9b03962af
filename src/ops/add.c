#include "ops/fusions.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_add(fac_value *a,
                   fac_value *b); /* a + b; integers wrap; NumPy broadcasting, one dtype */
#endif

MAP2_WRAP(x + y)

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_grad_weighted(n, 0, dy[0], NULL, dx);
    fac_grad_weighted(n, 1, dy[0], NULL, dx);
}

static bool symbols(fac_graph *g, const fac_item *x, fac_item *y) {
    if ((!x[0].symbolic && x[0].v < 0) || (!x[1].symbolic && x[1].v < 0)) return false;
    *y = (fac_item){ fac_size_sum(g, x[0].v, x[1].v), true };
    return true;
}
static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, symbols); }

static void load_sum(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                     fac_value *out[]) {
    (void)g;
    out[0] = fac_map_chain(n, in, fac_add);
}
static void load_mean(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                      fac_value *out[]) {
    out[0] =
        fac_div(fac_map_chain(n, in, fac_add), fac_number(g, fac_value_type(in[0]).dtype, n->nin));
}

static const fac_onnx onnx[] = { { "", "Add", 7, 0, NULL, NULL, 0 },
                                 { "", "Add", 1, 6, fac_names_first, fac_load_first, 2 },
                                 { "", "Sum", 1, 0, NULL, load_sum, 1 },
                                 { "", "Mean", 1, 0, NULL, load_mean, 1 },
                                 { 0 } };
static const fac_case cases[] = {
    { "add(f32[2,3], f32[3])", -4, 4, 1e-6 },  { "add(f32[2,1,3], f32[4,1])", -4, 4, 1e-6 },
    { "add(i64[2,3], i64[2,3])", -99, 99, 0 }, { "add(u8[300], u8[1])", 0, 255, 0 },
    { "add(f16[5], f16[5])", -4, 4, 1e-3 },    { "add(bf16[5], bf16[])", -4, 4, 1e-2 },
    { "add(f64[7], f64[7])", -4, 4, 1e-12 },   { "add(f32[0,3], f32[3])", 0, 0, 0 },
    { "add(f32[], f32[])", -4, 4, 1e-6 },      { 0 }
};

const fac_op fac_op_add = {
    MAP_OP("add", "x + y", fac_ports_num_xy, infer),
    .is = FAC_OP_INPLACE | FAC_OP_KNOWS | FAC_OP_RING,
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_ADD },
};
fac_value *fac_add(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_add, NULL, 2, (fac_value *[]){ a, b });
}
