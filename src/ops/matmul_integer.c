/* The product of bytes with sums in i32. */
#include "base/error.h"
#include "base/memory.h"
#include "ops/fusions_quant.h"
#include "ops/quant.h"
#include "ops/quant_product.h"

#if FAC_INTERFACE
/* c[..., i, j] = sum over k of (a[..., i, k] - a_zero[i]) (b[..., k, j] - b_zero[j]) as fac_matmul,
 * a, b i8 or u8, zero points of their dtypes: one, or one for each row of a or column of b (or what
 * broadcasts against a or b so), or NULL.  c i32, which wraps. */
fac_value *fac_matmul_integer(fac_value *a, fac_value *b, fac_value *a_zero, fac_value *b_zero);
#endif

enum { A_ZERO = 2, B_ZERO };
static const fac_port in[] = { { "a", FAC_INTS, 0 },
                               { "b", FAC_INTS, 0 },
                               { "a_zero", FAC_INTS, FAC_OPTIONAL },
                               { "b_zero", FAC_INTS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "c", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    if (!fac_quant_product_infer(n, FAC_I32)) return false;
    for (int k = 0; k < 2; k++)
        if (n->in[A_ZERO + k] && n->in[A_ZERO + k]->type.dtype != n->in[k]->type.dtype)
            return fac_fail(n, FAC_E_DTYPE, "%s must have the dtype of %s", in[A_ZERO + k].name,
                            in[k].name);
    return fac_quant_product_each(n, A_ZERO, 0, "a_zero") &&
           fac_quant_product_each(n, B_ZERO, 1, "b_zero");
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    return fac_quant_product_sums(r, A_ZERO, B_ZERO, r->out[0].i, err);
}

/* Each less its zero point, in i32. */
static void expand(const fac_node *n, fac_value *y[]) {
    fac_value *x[2];
    for (int k = 0; k < 2; k++) {
        fac_value *zero = n->in[A_ZERO + k];
        x[k] = fac_cast(n->in[k], FAC_I32);
        if (zero) x[k] = fac_sub(x[k], fac_cast(fac_quant_product_spread(zero, x[k], k), FAC_I32));
    }
    y[0] = fac_matmul(x[0], x[1]);
}

static const fac_onnx onnx[] = {
    { "", "MatMulInteger", 10, 0, NULL, NULL, 2 },
    { "com.microsoft", "MatMulIntegerToFloat", 1, 0, NULL, fac_load_integer_to_float, 4 },
    { "com.microsoft", "DynamicQuantizeMatMul", 1, 0, NULL, fac_load_dynamic_matmul, 3 },
    { "com.microsoft", "QAttention", 1, 0, fac_names_qattention, fac_load_qattention, 5 },
    { 0 }
};
static const fac_case cases[] = {
    { "matmul_integer(u8[5,7], i8[7,3], u8[], i8[])", -9, 9, 0 },
    { "matmul_integer(u8[2,1,4,6], u8[3,6,5], u8{3}, u8[5])", 0, 255, 0 },
    { "matmul_integer(i8[4,9], i8[9,6], i8[4], i8[6])", -128, 127, 0 },
    { "matmul_integer(i8[6], u8[6,2])", -9, 9, 0 },
    { "matmul_integer(u8[65,129], i8[129,33])", 0, 127, 0 },
    { "matmul_integer(u8[4,0], u8[0,3])", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_matmul_integer;
const fac_op fac_op_matmul_integer = {
    .name = "matmul_integer",
    .doc = "the product of bytes with sums in i32",
    .in = in,
    .out = out,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = fac_quant_product_cost,
    .onnx = onnx,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_matmul_integer(fac_value *a, fac_value *b, fac_value *a_zero, fac_value *b_zero) {
    return fac_emit(&fac_op_matmul_integer, NULL, 4, (fac_value *[]){ a, b, a_zero, b_zero });
}
