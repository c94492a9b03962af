#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_fmod(fac_value *a,
                    fac_value *b); /* remainder with the sign of a, as in C; integer a % 0 = 0 */
#endif

MAP2_NUM(FMOD(x, y))

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_grad_remainder(n, dy[0], false, dx);
}

static const fac_onnx onnx[] = { { 0 } }; /* Mod is read by mod.c */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    fac_onnx_binary(w, "Mod", fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]),
                    fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "fmod", 1);
    return true;
}

static const fac_case cases[] = { { "fmod(f64[2,30], f64[])", -9, 9, 1e-9 },
                                  { "fmod(i64[200], i64[200])", -9, 9, 0 },
                                  { "fmod(i8[300], i8[300])", -128, 127, 0 },
                                  { "fmod(u64[20], u64[20])", 0, 99, 0 },
                                  { "fmod(f32[0], f32[])", 0, 0, 0 },
                                  { "fmod(f64[], f64[])", 1, 9, 1e-9 },
                                  { 0 } };

const fac_op fac_op_fmod = {
    MAP_OP("fmod", "remainder with the sign of x", fac_ports_num_xy, fac_infer_broadcast),
    .is = FAC_OP_INPLACE,
    .save = save,
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_fmod(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_fmod, NULL, 2, (fac_value *[]){ a, b });
}
