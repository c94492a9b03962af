#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_bitwise_not(fac_value *x); /* all bits flipped; integers */
#endif

MAP1_INT(~x)

static const fac_port ports[] = { { "x", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) { return fac_infer_same(n) && fac_knows_map(n, NULL); }

static const fac_onnx onnx[] = { { "", "BitwiseNot", 18, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = {
    { "bitwise_not(i64[2,30])", -99, 99, 0 }, { "bitwise_not(u8[90])", 0, 255, 0 },
    { "bitwise_not(u64[9])", 0, 999, 0 },     { "bitwise_not(i32[0,3])", 0, 0, 0 },
    { "bitwise_not(i16[])", -9, 9, 0 },       { 0 }
};

const fac_op fac_op_bitwise_not = {
    MAP_OP("bitwise_not", "all bits flipped", ports, infer),
    .is = FAC_OP_NO_GRAD | FAC_OP_INPLACE | FAC_OP_KNOWS,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_bitwise_not(fac_value *x) { return fac_emit(&fac_op_bitwise_not, NULL, 1, &x); }
