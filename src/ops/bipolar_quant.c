/* QONNX's BipolarQuant as a node of its own, for files: -scale where x < 0, else scale.
 *   x any dims   scale broadcasts to it.   Has no prototype: fac_mul of fac_binarize is the same.
 */
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/qonnx.h"
#include "ops/shape.h"

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *s = &n->in[1]->type.dims;
    n->out[0]->type = n->in[0]->type;
    if (n->in[0]->type.dtype != n->in[1]->type.dtype)
        return fac_fail(n, FAC_E_DTYPE, "x and scale differ in dtype");
    for (int k = 0; k < s->n; k++) {
        const int64_t have = s->n > x->n ? -1 : x->d[x->n - s->n + k];
        if (s->d[k] != 1 && s->d[k] != have)
            return fac_fail(n, FAC_E_SHAPE, "scale does not broadcast to x");
    }
    return s->n <= x->n || fac_fail(n, FAC_E_SHAPE, "scale has more dims than x");
}

static void expand(const fac_node *n, fac_value *y[]) {
    y[0] = fac_mul(fac_binarize(n->in[0]), n->in[1]);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *in[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]) };
    return fac_onnx_put(w, FAC_QONNX ":BipolarQuant", 2, in, fac_onnx_name(w, n->out[0])) != NULL;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 2, to); }

static const fac_port in[] = { { "x", FAC_FLOATS, 0 }, { "scale", FAC_FLOATS, 0 }, { 0 } };
static const fac_case cases[] = { { "bipolar_quant(f32[2,5], f32[])", -1, 1, 0 },
                                  { "bipolar_quant(f32[4,3,2,2], f32[4,1,1,1])", -1, 1, 0 },
                                  { "bipolar_quant(f32[0,3], f32[3])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_bipolar_quant = {
    .name = "bipolar_quant",
    .doc = "BipolarQuant of QONNX: -scale or scale",
    .in = in,
    .out = fac_ports_y,
    .infer = infer,
    .expand = expand,
    .cost = cost,
    .save = save,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
