#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_not(fac_value *x); /* bool: the opposite */
#endif

MAP1_INT(x == (T)0)

static bool infer(fac_node *n) { return fac_infer_same(n) && fac_knows_map(n, NULL); }

static const fac_onnx onnx[] = { { "", "Not", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = {
    { "not(bool[2,30])", 0, 1, 0 }, { "not(bool[0,3])", 0, 0, 0 }, { "not(bool[])", 0, 1, 0 }, { 0 }
};

const fac_op fac_op_not = {
    MAP_OP("not", "the opposite", fac_ports_bool_x, infer),
    .is = FAC_OP_NO_GRAD | FAC_OP_INPLACE | FAC_OP_KNOWS,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_not(fac_value *x) { return fac_emit(&fac_op_not, NULL, 1, &x); }
