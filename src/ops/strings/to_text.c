#include "base/error.h"
#include "graph/onnx_write.h"
#include "ops/onnx_put.h"
#include "ops/strings/strings.h"
#include "tensor/tensor_internal.h"

#if FAC_INTERFACE
fac_value *fac_to_text(fac_value *x); /* numbers as texts, as ONNX prints them; texts stay */
#endif

static const fac_port in[] = { { "x", FAC_NUMBERS | FAC_BOOLS | FAC_SMALL | FAC_TEXTS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    n->out[0]->type = (fac_type){ FAC_TEXT, n->in[0]->type.dims };
    return true;
}

static fac_status host(const fac_node *n, fac_tensor *const x[], fac_tensor *out[],
                       fac_error *err) {
    (void)n;
    return fac_tensor_convert(x[0], FAC_TEXT, &out[0], err);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    if (w->opset < 9 || w->opset < fac_onnx_cast_since(n->in[0]->type.dtype)) return false;
    fac_onnx_cast(w, fac_onnx_name(w, n->in[0]), FAC_TEXT, fac_onnx_name(w, n->out[0]));
    return true;
}

static const fac_case cases[] = { { "to_text(f32[9])", -4, 4, 0 },
                                  { "to_text(f16[2,3])", -4, 4, 0 },
                                  { "to_text(i64{7,-3})", 0, 0, 0 },
                                  { "to_text(u64[3])", 0, 9, 0 },
                                  { "to_text(bool[])", 0, 1, 0 },
                                  { "to_text(f8e4m3[3])", -4, 4, 0 },
                                  { "to_text(text{\"a\",\"\"})", 0, 0, 0 },
                                  { "to_text(i32[0,3])", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_to_text;
const fac_op fac_op_to_text = {
    .name = "to_text",
    .doc = "numbers as texts",
    .in = in,
    .out = fac_ports_y,
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .host = host,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_to_text(fac_value *x) { return fac_emit(&fac_op_to_text, NULL, 1, &x); }
