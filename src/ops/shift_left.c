#include <string.h>
#include "ops/map.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_shift_left(fac_value *a,
                          fac_value *b); /* a times 2^b, bits that leave are lost; integers */
#endif

MAP2_INT(SHL(x, y))

static const fac_port ports[] = { { "x", FAC_INTS, 0 }, { "y", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) { return fac_infer_broadcast(n) && fac_knows_map(n, NULL); }

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const char *way = fac_onnx_text(n, "direction", "");
    if (!strcmp(way, "LEFT"))
        out[0] = fac_shift_left(in[0], in[1]);
    else if (!strcmp(way, "RIGHT"))
        out[0] = fac_shift_right(in[0], in[1]);
    else
        out[0] = fac_fail_graph(g, FAC_E_FORMAT,
                                "BitShift: direction is \"%s\", expected LEFT or RIGHT", way);
}
static const fac_onnx_attr names[] = { { "direction", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "BitShift", 11, 0, names, load, 0 }, { 0 } };
/* ONNX shifts unsigned integers only; the bits of the others are the same. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dtype dtype = n->out[0]->type.dtype;
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->in[1]),
               *to = fac_onnx_name(w, n->out[0]);
    const bool sign = fac_dtype_get(dtype)->kind == 'i';
    if (sign) {
        y = fac_onnx_cast(w, y, FAC_U64, NULL);
        x = fac_onnx_cast(w, x, FAC_U64, NULL);
    }
    const char *z = fac_onnx_binary(w, "BitShift", x, y, sign ? NULL : to);
    fac_onnx_put_text(w, "direction", "LEFT");
    if (sign) fac_onnx_cast(w, z, dtype, to);
    return true;
}

static const fac_case cases[] = {
    { "shift_left(u64[2,30], u64[30])", 0, 63, 0 }, { "shift_left(u8[90], u8[90])", 0, 9, 0 },
    { "shift_left(i64[4,1], i64[3])", 0, 9, 0 },    { "shift_left(u32[0,3], u32[3])", 0, 0, 0 },
    { "shift_left(u16[], u16[])", 0, 9, 0 },        { 0 }
};

const fac_op fac_op_shift_left = {
    MAP_OP("shift_left", "x shifted left by y bits", ports, infer),
    .save = save,
    .is = FAC_OP_NO_GRAD | FAC_OP_INPLACE | FAC_OP_KNOWS,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_shift_left(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_shift_left, NULL, 2, (fac_value *[]){ a, b });
}
