#include "ops/fusions.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_sub(fac_value *a,
                   fac_value *b); /* a - b; integers wrap; NumPy broadcasting, one dtype */
#endif

MAP2_WRAP(x - y)

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_grad_weighted(n, 0, dy[0], NULL, dx);
    if (fac_needs(n, 1)) fac_grad_weighted(n, 1, fac_neg(dy[0]), NULL, dx);
}

/* N - 1 may be negative, so it is no size; only what cancels is known. */
static bool symbols(fac_graph *g, const fac_item *x, fac_item *y) {
    (void)g;
    if (x[0].symbolic && x[1].symbolic && x[0].v == x[1].v)
        *y = (fac_item){ 0, false };
    else if (!x[1].symbolic && x[1].v == 0)
        *y = x[0];
    else
        return false;
    return true;
}
static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, symbols); }

static const fac_onnx onnx[] = { { "", "Sub", 7, 0, NULL, NULL, 0 },
                                 { "", "Sub", 1, 6, fac_names_first, fac_load_first, 2 },
                                 { 0 } };
static const fac_case cases[] = { { "sub(f32[2,3], f32[3])", -4, 4, 1e-6 },
                                  { "sub(f32[3], f32[4,2,1])", -4, 4, 1e-6 },
                                  { "sub(i32[2,3], i32[])", -99, 99, 0 },
                                  { "sub(u64[5], u64[5])", 0, 99, 0 },
                                  { "sub(i8[200], i8[200])", -128, 127, 0 },
                                  { "sub(f16[5], f16[5])", -4, 4, 1e-3 },
                                  { "sub(f32[3,0], f32[1])", 0, 0, 0 },
                                  { "sub(f64[], f64[])", -4, 4, 1e-12 },
                                  { 0 } };

const fac_op fac_op_sub = {
    MAP_OP("sub", "x - y", fac_ports_num_xy, infer),
    .is = FAC_OP_INPLACE | FAC_OP_KNOWS | FAC_OP_RING,
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_ADD },
};
fac_value *fac_sub(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_sub, NULL, 2, (fac_value *[]){ a, b });
}
