#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_bitwise_and(fac_value *a,
                           fac_value *b); /* bits of both; integers, NumPy broadcasting */
#endif

MAP2_INT(x &y)

static const fac_port ports[] = { { "x", FAC_INTS, 0 }, { "y", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, NULL); }

static const fac_onnx onnx[] = { { "", "BitwiseAnd", 18, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "bitwise_and(i64[2,30], i64[30])", -99, 99, 0 },
                                  { "bitwise_and(u8[90], u8[])", 0, 255, 0 },
                                  { "bitwise_and(i8[4,1], i8[3])", -128, 127, 0 },
                                  { "bitwise_and(u64[9], u64[9])", 0, 999, 0 },
                                  { "bitwise_and(i32[0,3], i32[3])", 0, 0, 0 },
                                  { "bitwise_and(u16[], u16[])", 0, 65535, 0 },
                                  { 0 } };

const fac_op fac_op_bitwise_and = {
    MAP_OP("bitwise_and", "bits of both", ports, infer),
    .is = FAC_OP_NO_GRAD | FAC_OP_INPLACE | FAC_OP_KNOWS,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_bitwise_and(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_bitwise_and, NULL, 2, (fac_value *[]){ a, b });
}
