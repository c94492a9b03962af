#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* a to the power b; integers wrap, a negative power of one truncates; NumPy broadcasting, one
 * dtype. */
fac_value *fac_pow(fac_value *a, fac_value *b);
#endif

MAP2_NUM(POW(x, y))

/* dx = b x^(b - 1), 0 where b = 0;  db = y ln x, 0 where x = 0 <= b, as in torch */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *e = n->in[1], *y = n->out[0];
    double known;
    if (fac_needs(n, 0) && fac_scalar_known(e, &known)) {
        fac_value *slope = known == 2   ? x
                           : known == 1 ? NULL
                                        : fac_pow(x, fac_grad_number(e, known - 1));
        if (known != 0) fac_grad_weighted(n, 0, fac_grad_times(dy[0], known), slope, dx);
    } else if (fac_needs(n, 0)) {
        fac_value *slope = fac_mul(e, fac_pow(x, fac_grad_shifted(e, -1)));
        fac_grad_weighted(
            n, 0, dy[0],
            fac_where(fac_equal(e, fac_grad_number(e, 0)), fac_grad_number(e, 0), slope), dx);
    }
    if (fac_needs(n, 1)) {
        fac_value *none = fac_and(fac_equal(x, fac_grad_number(x, 0)),
                                  fac_greater_or_equal(e, fac_grad_number(e, 0)));
        fac_grad_weighted(n, 1, dy[0],
                          fac_mul(y, fac_log(fac_where(none, fac_grad_number(x, 1), x))), dx);
    }
}

static bool is_float(fac_value *v) { return fac_dtype_get(fac_value_type(v).dtype)->kind == 'f'; }

/* Squares and cubes are what exporters write as powers (GELU, variances): products are faster than
 * any power.  Nearly as exact too, but in 16 bits, where each product is rounded. */
static fac_value *product(fac_value *x, fac_value *y) {
    const fac_dtype t = fac_value_type(x).dtype;
    double e;
    if ((t != FAC_F32 && t != FAC_F64) || fac_value_type(y).dims.n || !fac_scalar_known(y, &e) ||
        (e != 2 && e != 3))
        return NULL;
    fac_value *square = fac_mul(x, x);
    return e == 2 ? square : fac_mul(square, x);
}

/* ONNX lets the exponent have another type; the result has the base's.  An integer base with a
 * fractional exponent is computed in the exponent's type. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_value *x = in[0], *y = in[1];
    fac_dtype base = fac_value_type(x).dtype, exponent = fac_value_type(y).dtype;
    (void)n, (void)g;
    if ((out[0] = product(x, y))) return;
    if (base == exponent)
        out[0] = fac_pow(x, y);
    else if (!is_float(x) && is_float(y))
        out[0] = fac_cast(fac_pow(fac_cast(x, exponent), y), base);
    else
        out[0] = fac_pow(x, fac_cast(y, base));
}
static const fac_onnx onnx[] = { { "", "Pow", 7, 0, NULL, load, 0 },
                                 { "", "Pow", 1, 6, fac_names_first, fac_load_first, 2 },
                                 { 0 } };
static const fac_case cases[] = { { "pow(f32[2,30], f32[30])", 0.1, 4, 2e-6 },
                                  { "pow(f32[4,1], f32[])", 0.1, 4, 2e-6 },
                                  { "pow(i64[20], i64[20])", 0, 9, 0 },
                                  { "pow(i32[40], i32[40])", -3, 3, 0 },
                                  { "pow(f16[5], f16[5])", 0.1, 2, 4e-3 },
                                  { "pow(f64[5], f64[5])", 0.1, 4, 1e-12 },
                                  { "pow(f32[0,3], f32[3])", 0, 0, 0 },
                                  { "pow(f32[], f32[])", 0.1, 4, 2e-6 },
                                  { 0 } };

/* Small whole exponents, roots and what divides by them. */
static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0];
    double e;
    if (!fac_define_floats(n) || n->in[1]->type.dims.n > x->type.dims.n ||
        !fac_scalar_known(n->in[1], &e))
        return;
    const double size = e < 0 ? -e : e;
    fac_value *y = size == 1 ? x : NULL;
    if (size == 0.5) y = fac_sqrt(x);
    if (size == 2 || size == 3 || size == 4) y = fac_mul(x, x);
    if (size == 3) y = fac_mul(y, x);
    if (size == 4) y = fac_mul(y, y);
    out[0] = y && e < 0 ? fac_reciprocal(y) : y;
}

const fac_op fac_op_pow = {
    MAP_OP("pow", "x to the power y", fac_ports_num_xy, fac_infer_broadcast),
    .is = FAC_OP_INPLACE,
    .save = fac_onnx_plain,
    .grad = grad,
    .define = define,
    .mixed = FAC_MIXED_SENSITIVE,
    .rounding = { .rule = FAC_ROUND_POW },
};
fac_value *fac_pow(fac_value *a, fac_value *b) {
    return fac_emit(&fac_op_pow, NULL, 2, (fac_value *[]){ a, b });
}
