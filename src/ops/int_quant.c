/* QONNX's Quant as a node of its own, for files: see fac_qonnx_quant.
 *   x any dims   scale, zero and bits one number.   Has no prototype. */
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/qonnx.h"
#include "ops/shape.h"

#define AT(field) offsetof(fac_int_quant_attrs, field)
static const fac_attr table[] = {
    { "signed", FAC_A_FLAG, AT(is_signed), 0, 0, 0, 0, NULL, "integers below 0, too" },
    { "narrow", FAC_A_FLAG, AT(narrow), 0, 0, 0, 0, NULL, "one integer less" },
    { 0 }
};
#undef AT

static bool infer(fac_node *n) {
    n->out[0]->type = n->in[0]->type;
    for (int k = 1; k < 4; k++) {
        const fac_type *t = &n->in[k]->type;
        if (t->dtype != n->in[0]->type.dtype)
            return fac_fail(n, FAC_E_DTYPE, "x, scale, zero and bits differ in dtype");
        if (fac_dims_count(&t->dims) != 1)
            return fac_fail(n, FAC_E_SHAPE, "scale, zero and bits must be one number each");
    }
    return true;
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_int_quant_attrs *a = n->attrs;
    y[0] = fac_qonnx_quant(n->in[0], n->in[1], n->in[2], n->in[3], a->is_signed, a->narrow);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_int_quant_attrs *a = n->attrs;
    const char *in[4];
    for (int k = 0; k < 4; k++) in[k] = fac_onnx_name(w, n->in[k]);
    const bool put =
        fac_onnx_put(w, FAC_QONNX ":Quant", 4, in, fac_onnx_name(w, n->out[0])) != NULL;
    fac_onnx_put_int(w, "signed", a->is_signed);
    fac_onnx_put_int(w, "narrow", a->narrow);
    fac_onnx_put_text(w, "rounding_mode", "ROUND");
    return put;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 6, to); }

static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, 0 },
                               { "zero", FAC_FLOATS, 0 },
                               { "bits", FAC_FLOATS, 0 },
                               { 0 } };
static const fac_case cases[] = {
    { "int_quant(f32[3,37], f32(0.25), f32(0), f32(3)) signed", -2, 2, 0 },
    { "int_quant(f32[9], f32(0.5), f32(1), f32(2))", -2, 2, 0 },
    { "int_quant(f32[0,3], f32(0.5), f32(0), f32(4)) signed narrow", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_int_quant = {
    .name = "int_quant",
    .doc = "Quant of QONNX: integers of few bits, times a scale",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_int_quant_attrs),
    .infer = infer,
    .expand = expand,
    .cost = cost,
    .save = save,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
