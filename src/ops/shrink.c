#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* x + bias where x < -lambd, x - bias where x > lambd, else 0 */
fac_value *fac_shrink(fac_value *x, double lambd, double bias);
#endif

typedef struct attrs {
    double lambd, bias;
} attrs;
static const fac_attr table[] = {
    { "lambd", FAC_A_REAL, offsetof(attrs, lambd), 0, 0, 0, 0, NULL, "what is nearer to 0 is 0" },
    { "bias", FAC_A_REAL, offsetof(attrs, bias), 0, 0, 0, 0, NULL, "how far the rest moves to 0" },
    { 0 }
};

/* clang-format off */
MAP1_P2(x < -P(0)  ? x + P(1)
        : x > P(0) ? x - P(1)
                   : (T)0)
/* clang-format on */

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] =
        fac_grad_where(fac_grad_above(fac_abs(n->in[0]), ((const attrs *)n->attrs)->lambd), dy[0]);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    const fac_dtype t = fac_value_type(in[0]).dtype;
    const bool whole = fac_dtype_get(t)->kind != 'f';
    fac_value *x = whole ? fac_cast(in[0], FAC_F64) : in[0];
    x = fac_shrink(x, fac_onnx_real(n, "lambd", 0.5), fac_onnx_real(n, "bias", 0));
    out[0] = whole ? fac_cast(x, t) : x;
}
static const fac_onnx_attr names[] = { { "lambd", NULL }, { "bias", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Shrink", 9, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    fac_onnx_put(w, "Shrink", 1, (const char *[]){ fac_onnx_name(w, n->in[0]) },
                 fac_onnx_name(w, n->out[0]));
    fac_onnx_put_real(w, "lambd", a->lambd);
    fac_onnx_put_real(w, "bias", a->bias);
    return true;
}
static const fac_case cases[] = { { "shrink(f32[2,37]) lambd=1 bias=0.5", -4, 4, 1e-6 },
                                  { "shrink(f64[5]) lambd=1", -4, 4, 1e-12 },
                                  { "shrink(f16[9]) lambd=1 bias=-2", -4, 4, 2e-3 },
                                  { "shrink(f32[0,3]) lambd=1", 0, 0, 0 },
                                  { "shrink(f32[]) lambd=1", -4, 4, 1e-6 },
                                  { 0 } };

const fac_op fac_op_shrink = {
    MAP1_OP("shrink", "x nearer to 0; what is near it becomes 0"),
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .grad = grad,
    .save = save,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_shrink(fac_value *x, double lambd, double bias) {
    return fac_emit(&fac_op_shrink, &(attrs){ lambd, bias }, 1, &x);
}
