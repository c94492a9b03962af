/* Signs without a zero: what networks of one bit are made of. */
#include "ops/define.h"
#include "ops/map.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
/* -1 where x < 0, else 1: unlike fac_sign, which keeps 0.  It has no gradient:
 * fac_binarize_through() lets one pass. */
fac_value *fac_binarize(fac_value *x);
#endif

MAP1(x < (T)0 ? (T)-1 : (T)1)

static void define(const fac_node *n, fac_value *y[]) {
    fac_value *x = n->in[0];
    y[0] = fac_where(fac_less(x, fac_number_as(x, 0)), fac_number_as(x, -1), fac_number_as(x, 1));
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dtype t = n->in[0]->type.dtype;
    if (w->opset < 9) return false;
    const char *less[] = { fac_onnx_name(w, n->in[0]), fac_onnx_number(w, t, 0) };
    const char *where[] = { fac_onnx_put(w, "Less", 2, less, NULL), fac_onnx_number(w, t, -1),
                            fac_onnx_number(w, t, 1) };
    return fac_onnx_put(w, "Where", 3, where, fac_onnx_name(w, n->out[0])) != NULL;
}

/* QONNX: BipolarQuant(x, scale) is scale binarize(x). */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *y[]) {
    (void)n, (void)g;
    y[0] = fac_mul(fac_binarize(in[0]), in[1]);
}
static const fac_onnx onnx[] = { { "qonnx.custom_op.general", "BipolarQuant", 1, 0, NULL, load, 2 },
                                 { "finn.custom_op.general", "BipolarQuant", 1, 0, NULL, load, 2 },
                                 { "onnx.brevitas", "BipolarQuant", 1, 0, NULL, load, 2 },
                                 { 0 } };

static const fac_case cases[] = { { "binarize(f32[2,37])", -4, 4, 0 },
                                  { "binarize(f64[5])", -4, 4, 0 },
                                  { "binarize(f16[9])", -4, 4, 0 },
                                  { "binarize(bf16[9])", -4, 4, 0 },
                                  { "binarize(f32[0,3])", 0, 0, 0 },
                                  { "binarize(f32[])", -4, 4, 0 },
                                  { 0 } };

extern const fac_op fac_op_binarize;
const fac_op fac_op_binarize = {
    MAP_OP("binarize", "-1 or 1", fac_ports_x, fac_infer_same),
    .is = FAC_OP_INPLACE | FAC_OP_NO_GRAD | FAC_OP_PICKS,
    .define = define,
    .steps = fac_steps_zero,
    .save = save,
    .rounding = { .rule = FAC_ROUND_WHOLE },
};
fac_value *fac_binarize(fac_value *x) { return fac_emit(&fac_op_binarize, NULL, 1, &x); }
