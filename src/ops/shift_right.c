#include "ops/map.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_shift_right(fac_value *a, fac_value *b); /* a / 2^b rounded down; integers */
#endif

MAP2_INT(SHR(x, y))

static const fac_port ports[] = { { "x", FAC_INTS, 0 }, { "y", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, NULL); }

static const fac_onnx onnx[] = { { 0 } };
/* ONNX shifts unsigned integers only.  Rounding down, a negative x is what its complement gives,
 * complemented. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dtype dtype = n->out[0]->type.dtype;
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->in[1]),
               *to = fac_onnx_name(w, n->out[0]);
    if (fac_dtype_get(dtype)->kind == 'u') {
        fac_onnx_binary(w, "BitShift", x, y, to);
        fac_onnx_put_text(w, "direction", "RIGHT");
        return true;
    }
    if (w->opset < 18) return false;
    const char *below = fac_onnx_binary(w, "Less", x, fac_onnx_number(w, dtype, 0), NULL);
    const char *in[] = { below, fac_onnx_unary(w, "BitwiseNot", x, NULL), x };
    const char *bits = fac_onnx_cast(w, fac_onnx_put(w, "Where", 3, in, NULL), FAC_U64, NULL);
    bits = fac_onnx_binary(w, "BitShift", bits, fac_onnx_cast(w, y, FAC_U64, NULL), NULL);
    fac_onnx_put_text(w, "direction", "RIGHT");
    in[2] = fac_onnx_cast(w, bits, dtype, NULL);
    in[1] = fac_onnx_unary(w, "BitwiseNot", in[2], NULL);
    fac_onnx_put(w, "Where", 3, in, to);
    return true;
}

static const fac_case cases[] = {
    { "shift_right(u64[2,30], u64[30])", 0, 63, 0 }, { "shift_right(u8[90], u8[90])", 0, 9, 0 },
    { "shift_right(i64[4,1], i64[3])", 0, 9, 0 },    { "shift_right(u32[0,3], u32[3])", 0, 0, 0 },
    { "shift_right(u16[], u16[])", 0, 9, 0 },        { 0 }
};

const fac_op fac_op_shift_right = {
    MAP_OP("shift_right", "x shifted right by y bits", ports, infer),
    .save = save,
    .is = FAC_OP_NO_GRAD | FAC_OP_INPLACE | FAC_OP_KNOWS,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_shift_right(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_shift_right, NULL, 2, (fac_value *[]){ a, b });
}
