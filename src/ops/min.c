#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
fac_value *fac_min(fac_value *a,
                   fac_value *b); /* the smaller; NaN in either is NaN; NumPy broadcasting */
#endif

MAP2_NUM(MIN(x, y))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_grad_extreme(n, dy[0], false, dx);
}

static bool symbols(fac_graph *g, const fac_item *x, fac_item *y) {
    (void)g;
    for (int i = 0; i < 2; i++) { /* a size is >= 0, and equal to itself */
        if (!x[i].symbolic && x[i].v <= 0) {
            *y = x[i];
            return true;
        }
        if (x[i].symbolic && x[1 - i].symbolic && x[i].v == x[1 - i].v) {
            *y = x[i];
            return true;
        }
    }
    return false;
}
static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, symbols); }

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_map_chain(n, in, fac_min);
}
static const fac_onnx onnx[] = { { "", "Min", 1, 0, NULL, load, 1 }, { 0 } };
static const fac_case cases[] = { { "min(f32[2,3], f32[3])", -4, 4, 0 },
                                  { "min(f32[4,1], f32[3])", -4, 4, 0 },
                                  { "min(i64[9], i64[9])", -99, 99, 0 },
                                  { "min(u64[9], u64[9])", 0, 99, 0 },
                                  { "min(i8[2,3], i8[])", -128, 127, 0 },
                                  { "min(f16[5], f16[5])", -4, 4, 0 },
                                  { "min(f32[0], f32[0])", 0, 0, 0 },
                                  { "min(f64[], f64[])", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_min = {
    MAP_OP("min", "the smaller of x and y", fac_ports_num_xy, infer),
    .is = FAC_OP_INPLACE | FAC_OP_KNOWS | FAC_OP_PICKS,
    .save = fac_onnx_plain,
    .grad = grad,
    .steps = fac_steps_beside,
    .rounding = { .rule = FAC_ROUND_PICK },
};
fac_value *fac_min(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_min, NULL, 2, (fac_value *[]){ a, b });
}
