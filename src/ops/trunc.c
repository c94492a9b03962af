#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_trunc(fac_value *x); /* the next integer towards 0 */
#endif

MAP1(TRUNC(x))

static const fac_onnx onnx[] = { { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    fac_onnx_binary(w, "Mul", fac_onnx_unary(w, "Sign", x, NULL),
                    fac_onnx_unary(w, "Floor", fac_onnx_unary(w, "Abs", x, NULL), NULL), y);
    return true;
}

static const fac_case cases[] = { { "trunc(f32[2,37])", -9, 9, 0 },
                                  { "trunc(f64[5])", -9, 9, 0 },
                                  { "trunc(f16[9])", -9, 9, 0 },
                                  { "trunc(bf16[9])", -9, 9, 0 },
                                  { "trunc(f32[0,3])", 0, 0, 0 },
                                  { "trunc(f32[])", -9, 9, 0 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    out[0] = fac_mul(fac_sign(n->in[0]), fac_floor(fac_abs(n->in[0])));
}

const fac_op fac_op_trunc = {
    MAP_OP("trunc", "the next integer towards 0", fac_ports_x, fac_infer_same),
    .is = FAC_OP_INPLACE,
    .save = save,
    .grad = fac_grad_flat,
    .define = define,
    .steps = fac_steps_whole,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_trunc(fac_value *x) { return fac_emit(&fac_op_trunc, NULL, 1, &x); }
