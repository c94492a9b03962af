#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_bitwise_or(fac_value *a,
                          fac_value *b); /* bits of either; integers, NumPy broadcasting */
#endif

MAP2_INT(x | y)

static const fac_port ports[] = { { "x", FAC_INTS, 0 }, { "y", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, NULL); }

static const fac_onnx onnx[] = { { "", "BitwiseOr", 18, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "bitwise_or(i64[2,30], i64[30])", -99, 99, 0 },
                                  { "bitwise_or(u8[90], u8[])", 0, 255, 0 },
                                  { "bitwise_or(i8[4,1], i8[3])", -128, 127, 0 },
                                  { "bitwise_or(u64[9], u64[9])", 0, 999, 0 },
                                  { "bitwise_or(i32[0,3], i32[3])", 0, 0, 0 },
                                  { "bitwise_or(u16[], u16[])", 0, 65535, 0 },
                                  { 0 } };

const fac_op fac_op_bitwise_or = {
    MAP_OP("bitwise_or", "bits of either", ports, infer),
    .is = FAC_OP_NO_GRAD | FAC_OP_INPLACE | FAC_OP_KNOWS,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_bitwise_or(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_bitwise_or, NULL, 2, (fac_value *[]){ a, b });
}
