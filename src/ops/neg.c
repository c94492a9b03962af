#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
fac_value *fac_neg(fac_value *x); /* -x; integers wrap */
#endif

MAP1_WRAP(-x)

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    (void)n;
    dx[0] = fac_neg(dy[0]);
}

static bool infer(fac_node *n) { return fac_infer_same(n) && fac_knows_map(n, NULL); }

static const fac_onnx onnx[] = { { "", "Neg", 1, 0, NULL, NULL, 0 }, { 0 } };
/* ONNX has none for unsigned integers. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dtype dtype = n->in[0]->type.dtype;
    const char *x = fac_onnx_name(w, n->in[0]);
    if (fac_dtype_get(dtype)->kind != 'u') return fac_onnx_plain(w, n);
    return fac_onnx_binary(w, "Sub", fac_onnx_number(w, dtype, 0), x,
                           fac_onnx_name(w, n->out[0])) != NULL;
}

static const fac_case cases[] = {
    { "neg(f32[2,37])", -4, 4, 0 }, { "neg(f64[5])", -4, 4, 1e-12 },  { "neg(f16[9])", -4, 4, 0 },
    { "neg(bf16[9])", -4, 4, 0 },   { "neg(f32[0,3])", 0, 0, 0 },     { "neg(f32[])", -4, 4, 0 },
    { "neg(i64[9])", -9, 9, 0 },    { "neg(i8[300])", -128, 127, 0 }, { 0 }
};

const fac_op fac_op_neg = {
    MAP_OP("neg", "-x", fac_ports_num_x, infer),
    .is = FAC_OP_INPLACE | FAC_OP_KNOWS | FAC_OP_RING,
    .save = save,
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_KEEPS },
};
fac_value *fac_neg(fac_value *x) { return fac_emit(&fac_op_neg, NULL, 1, &x); }
