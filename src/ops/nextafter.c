#include <math.h>
#include "ops/cost.h"
#include "ops/map_grad.h"
#include "ops/shape.h"
#include "tensor/tensor_internal.h"

#if FAC_INTERFACE
/* The next number of the type after a in the direction of b; floats.  NumPy broadcasting, one
 * dtype.
 */
fac_value *fac_nextafter(fac_value *a, fac_value *b);
#endif

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *y = &n->in[1]->type;
    if (y->dtype != x->dtype) return fac_fail(n, FAC_E_DTYPE, "x and y must have one dtype");
    return fac_infer_broadcast(n);
}

/* Where the element of an operand lies that meets element i of the result. */
static int64_t meets(const fac_dims *x, const fac_dims *y, int64_t i) {
    int64_t at = 0, step = 1;
    for (int k = y->n - 1, j = x->n - 1; j >= 0; k--, j--) {
        if (x->d[j] != 1) at += i % y->d[k] * step;
        step *= x->d[j];
        i /= y->d[k];
    }
    return at;
}

/* In 16 bits a sign, and sizes in the order of the numbers that they mean. */
static double next_of_16(fac_dtype dtype, double x, double y) {
    enum { SIGN = 0x8000 };
    uint16_t bits;
    if (isnan(x) || isnan(y)) return NAN;
    if (x == y) return y;
    fac_convert(dtype, &bits, FAC_F64, &x, 1);
    if (x == 0)
        bits = (uint16_t)(y < 0 ? SIGN + 1 : 1);
    else
        bits = (uint16_t)((x < y) == (x > 0) ? bits + 1 : bits - 1);
    fac_convert(FAC_F64, &x, dtype, &bits, 1);
    return x;
}

static double next_of(fac_dtype dtype, double x, double y) {
    if (dtype == FAC_F64) return nextafter(x, y);
    return dtype == FAC_F32 ? (double)nextafterf((float)x, (float)y) : next_of_16(dtype, x, y);
}

/* Neighbours are those of the type: an expression of doubles, as maps are, would not find them. */
static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_dims *dims = &r->out[0].type.dims;
    const int64_t n = fac_dims_count(dims);
    (void)err;
    for (int64_t i = 0; i < n; i++) {
        const double x = r->in[0].f[meets(&r->in[0].type.dims, dims, i)];
        const double y = r->in[1].f[meets(&r->in[1].type.dims, dims, i)];
        r->out[0].f[i] = next_of(r->in[0].type.dtype, x, y);
    }
    return FAC_OK;
}

/* As of a itself, but 0 where it is b already, as in torch. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *still = fac_equal(n->in[0], n->in[1]);
    if (fac_needs(n, 0))
        dx[0] = fac_grad_unbroadcast(n, 0, fac_where(still, fac_grad_number(dy[0], 0), dy[0]));
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 1, to); }

static const fac_case cases[] = { { "nextafter(f32[2,30], f32[2,30])", -4, 4, 0 },
                                  { "nextafter(f64[5], f64[5])", -4, 4, 0 },
                                  { "nextafter(f32[2,30], f32[30])", -4, 4, 0 },
                                  { "nextafter(f64[4,1], f64[2,1,3])", -4, 4, 0 },
                                  { "nextafter(f16[2,30], f16[30])", -4, 4, 0 },
                                  { "nextafter(bf16[40], bf16[40])", -4, 4, 0 },
                                  { "nextafter(f32[0,3], f32[3])", 0, 0, 0 },
                                  { "nextafter(f32[0,3], f32[0,3])", 0, 0, 0 },
                                  { "nextafter(f32[], f32[])", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_nextafter = {
    .name = "nextafter",
    .doc = "the next number after x towards y",
    .in = fac_ports_xy,
    .out = fac_ports_y,
    .is = FAC_OP_TYPED,
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_nextafter(fac_value *a, fac_value *b) {
    const fac_dims x = fac_value_type(a).dims, y = fac_value_type(b).dims;
    if (!fac_dims_equal(&x, &y)) {
        a = fac_expand_to(a, fac_shape_of(b));
        b = fac_expand_to(b, fac_shape_of(a));
    }
    return fac_emit(&fac_op_nextafter, NULL, 2, (fac_value *[]){ a, b });
}
