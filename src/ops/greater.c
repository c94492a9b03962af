#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_greater(fac_value *a, fac_value *b); /* bool: a > b; NumPy broadcasting */
#endif

MAP2_NUM(x > y)

/* Any negative number is less than any size. */
static bool symbols(fac_graph *g, const fac_item *x, fac_item *y) {
    (void)g;
    *y = (fac_item){ !x[1].symbolic, false };
    return (!x[0].symbolic && x[0].v < 0) || (!x[1].symbolic && x[1].v < 0);
}
static bool infer(fac_node *n) { return fac_infer_compare(n) && fac_knows_map(n, symbols); }

static const fac_onnx onnx[] = { { "", "Greater", 7, 0, NULL, NULL, 0 },
                                 { "", "Greater", 1, 6, fac_names_first, fac_load_first, 2 },
                                 { 0 } };
static const fac_case cases[] = { { "greater(f32[2,30], f32[30])", -4, 4, 0 },
                                  { "greater(f32[4,1], f32[3])", -4, 4, 0 },
                                  { "greater(i64[90], i64[90])", -3, 3, 0 },
                                  { "greater(u64[9], u64[9])", 0, 9, 0 },
                                  { "greater(u8[90], u8[])", 0, 9, 0 },
                                  { "greater(f16[9], f16[9])", -4, 4, 0 },
                                  { "greater(f32[0,3], f32[3])", 0, 0, 0 },
                                  { "greater(f64[], f64[])", -4, 4, 0 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) { out[0] = fac_less(n->in[1], n->in[0]); }

const fac_op fac_op_greater = {
    MAP_OP("greater", "is x > y?", fac_ports_num_xy, infer),
    .is = FAC_OP_NO_GRAD | FAC_OP_KNOWS,
    .define = define,
    .steps = fac_steps_beside,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_greater(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_greater, NULL, 2, (fac_value *[]){ a, b });
}
