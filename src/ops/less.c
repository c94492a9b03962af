#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_less(fac_value *a, fac_value *b); /* bool: a < b; NumPy broadcasting */
#endif

MAP2_NUM(x < y)

/* Any negative number is less than any size. */
static bool symbols(fac_graph *g, const fac_item *x, fac_item *y) {
    (void)g;
    *y = (fac_item){ !x[0].symbolic, false };
    return (!x[0].symbolic && x[0].v < 0) || (!x[1].symbolic && x[1].v < 0);
}
static bool infer(fac_node *n) { return fac_infer_compare(n) && fac_knows_map(n, symbols); }

static const fac_onnx onnx[] = { { "", "Less", 7, 0, NULL, NULL, 0 },
                                 { "", "Less", 1, 6, fac_names_first, fac_load_first, 2 },
                                 { 0 } };
static const fac_case cases[] = { { "less(f32[2,30], f32[30])", -4, 4, 0 },
                                  { "less(f32[4,1], f32[3])", -4, 4, 0 },
                                  { "less(i64[90], i64[90])", -3, 3, 0 },
                                  { "less(u64[9], u64[9])", 0, 9, 0 },
                                  { "less(u8[90], u8[])", 0, 9, 0 },
                                  { "less(f16[9], f16[9])", -4, 4, 0 },
                                  { "less(f32[0,3], f32[3])", 0, 0, 0 },
                                  { "less(f64[], f64[])", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_less = {
    MAP_OP("less", "is x < y?", fac_ports_num_xy, infer),
    .is = FAC_OP_NO_GRAD | FAC_OP_KNOWS,
    .steps = fac_steps_beside,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_less(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_less, NULL, 2, (fac_value *[]){ a, b });
}
