#include "ops/fusions.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_mul(fac_value *a,
                   fac_value *b); /* a * b; integers wrap; NumPy broadcasting, one dtype */
#endif

MAP2_WRAP(x *y)

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_grad_weighted(n, 0, dy[0], n->in[1], dx);
    fac_grad_weighted(n, 1, dy[0], n->in[0], dx);
}

static bool symbols(fac_graph *g, const fac_item *x, fac_item *y) {
    if ((!x[0].symbolic && x[0].v < 0) || (!x[1].symbolic && x[1].v < 0)) return false;
    y->v = fac_size_product(g, x[0].v, x[1].v);
    y->symbolic = y->v < 0;
    return true;
}
static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, symbols); }

static const fac_onnx onnx[] = { { "", "Mul", 7, 0, NULL, NULL, 0 },
                                 { "", "Mul", 1, 6, fac_names_first, fac_load_first, 2 },
                                 { "", "Scale", 1, 0, fac_names_scale, fac_load_scale, 1 },
                                 { "", "Affine", 1, 0, fac_names_affine, fac_load_affine, 1 },
                                 { "", "ImageScaler", 1, 0, fac_names_image_scaler,
                                   fac_load_image_scaler, 1 },
                                 { 0 } };
static const fac_case cases[] = { { "mul(f32[2,3], f32[3])", -4, 4, 1e-6 },
                                  { "mul(f32[2,4,3,5], f32[2,4,1,1])", -4, 4, 1e-6 },
                                  { "mul(i64[2,3], i64[2,1])", -99, 99, 0 },
                                  { "mul(i16[300], i16[300])", -32768, 32767, 0 },
                                  { "mul(u8[9], u8[9])", 0, 255, 0 },
                                  { "mul(f16[5], f16[])", -4, 4, 1e-3 },
                                  { "mul(f32[0,3], f32[3])", 0, 0, 0 },
                                  { "mul(f32[], f32[])", -4, 4, 1e-6 },
                                  { "mul(f64[1000], f64[1000])", -4, 4, 1e-12 },
                                  { 0 } };

const fac_op fac_op_mul = {
    MAP_OP("mul", "x * y", fac_ports_num_xy, infer),
    .is = FAC_OP_INPLACE | FAC_OP_KNOWS | FAC_OP_RING,
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_MUL },
};
fac_value *fac_mul(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_mul, NULL, 2, (fac_value *[]){ a, b });
}
