#include "ops/map.h"

#if FAC_INTERFACE
fac_value *fac_shift_right(fac_value *a, fac_value *b);         /* a / 2^b rounded down; integers */
#endif

MAP2_INT(SHR(x, y))

static const fac_port ports[] = { { "x", FAC_INTS, 0 }, { "y", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, NULL); }

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = {
    { "shift_right(u64[2,30], u64[30])", 0, 63, 0 }, { "shift_right(u8[90], u8[90])", 0, 9, 0 },
    { "shift_right(i64[4,1], i64[3])", 0, 9, 0 }, { "shift_right(u32[0,3], u32[3])", 0, 0, 0 },
    { "shift_right(u16[], u16[])", 0, 9, 0 }, { 0 }
};

const fac_op fac_op_shift_right = {
    MAP_OP("shift_right", "x shifted right by y bits", ports, infer), .is = FAC_OP_NO_GRAD | FAC_OP_INPLACE | FAC_OP_KNOWS,
};
fac_value *fac_shift_right(fac_value *a, fac_value *b) { return fac_emit(&fac_op_shift_right, NULL, 2, (fac_value *[]){ a, b }); }
