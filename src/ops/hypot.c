#include "facula/ops.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
/* sqrt(a^2 + b^2) without overflow; NumPy broadcasting, one dtype. */
fac_value *fac_hypot(fac_value *a, fac_value *b);
#endif

MAP2(HYPOT(x, y))

/* a / y and b / y; 0 where both are 0 */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *y = n->out[0], *none = fac_equal(y, fac_grad_number(y, 0));
    fac_value *safe = fac_where(none, fac_grad_number(y, 1), y);
    for (int i = 0; i < 2; i++)
        if (fac_needs(n, i)) fac_grad_weighted(n, i, dy[0], fac_div(n->in[i], safe), dx);
}

static const fac_onnx onnx[] = { { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *a = fac_onnx_name(w, n->in[0]), *b = fac_onnx_name(w, n->in[1]);
    fac_onnx_unary(w, "Sqrt",
                   fac_onnx_binary(w, "Add", fac_onnx_binary(w, "Mul", a, a, NULL),
                                   fac_onnx_binary(w, "Mul", b, b, NULL), NULL),
                   fac_onnx_name(w, n->out[0]));
    return true;
}

static const fac_case cases[] = {
    { "hypot(f32[2,30], f32[30])", 0.5, 4, 2e-6 }, { "hypot(f32[4,1], f32[])", 0.5, 4, 2e-6 },
    { "hypot(f64[5], f64[5])", 0.5, 4, 1e-11 },    { "hypot(f16[9], f16[9])", 0.5, 4, 4e-3 },
    { "hypot(bf16[9], bf16[])", 0.5, 4, 2e-2 },    { "hypot(f32[0,3], f32[3])", 0, 0, 0 },
    { "hypot(f32[], f32[])", 0.5, 4, 2e-6 },       { 0 }
};

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *a = n->in[0], *b = n->in[1];
    out[0] = fac_sqrt(fac_add(fac_mul(a, a), fac_mul(b, b)));
}

const fac_op fac_op_hypot = {
    MAP_OP("hypot", "length of (x, y)", fac_ports_xy, fac_infer_broadcast),
    .is = FAC_OP_INPLACE,
    .grad = grad,
    .save = save,
    .define = define,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_hypot(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_hypot, NULL, 2, (fac_value *[]){ a, b });
}
