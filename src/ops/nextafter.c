#include "ops/map.h"

#if FAC_INTERFACE
/* the next number of the type after a in the direction of b; f32 and f64; NumPy broadcasting. */
fac_value *fac_nextafter(fac_value *a, fac_value *b);
#endif

MAP2(NEXTAFTER(x, y))

static bool infer(fac_node *n) {
    const fac_dtype t = n->in[0]->type.dtype;
    if (t != FAC_F32 && t != FAC_F64)
        return fac_fail(n, FAC_E_DTYPE, "x is %s, it takes f32 and f64", fac_dtype_get(t)->name);
    return fac_infer_broadcast(n);
}

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = {
    { "nextafter(f32[2,30], f32[30])", -4, 4, 0 },
    { "nextafter(f32[4,1], f32[])", -4, 4, 0 },
    { "nextafter(f64[5], f64[5])", -4, 4, 0 },
    { "nextafter(f32[0,3], f32[3])", 0, 0, 0 },
    { "nextafter(f32[], f32[])", -4, 4, 0 }, { 0 }
};

const fac_op fac_op_nextafter = {
    MAP_OP("nextafter", "the next number after x towards y", fac_ports_xy, infer),
    .is = FAC_OP_INPLACE | FAC_OP_NO_GRAD,
};
fac_value *fac_nextafter(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_nextafter, NULL, 2, (fac_value *[]){ a, b });
}
