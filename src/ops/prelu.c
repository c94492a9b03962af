#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/shape.h"

#if FAC_INTERFACE
fac_value *fac_prelu(fac_value *x,
                     fac_value *slope); /* x, or slope x where x < 0; slope broadcasts to x */
#endif

MAP2_NUM(x > (T)0 ? x : y * x)

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *above = fac_grad_above(x, 0);
    if (fac_needs(n, 0)) dx[0] = fac_where(above, dy[0], fac_mul(dy[0], n->in[1]));
    if (fac_needs(n, 1))
        dx[1] =
            fac_grad_unbroadcast(n, 1, fac_where(above, fac_grad_number(x, 0), fac_mul(dy[0], x)));
}

static const fac_port ports[] = { { "x", FAC_NUMBERS, 0 }, { "slope", FAC_NUMBERS, 0 }, { 0 } };

/* A size that is not known fits: the result has x's. */
static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *slope = &n->in[1]->type.dims;
    if (!fac_infer_broadcast(n)) return false;
    for (int k = 1; k <= slope->n; k++) {
        const int64_t s = slope->d[slope->n - k];
        if (k > x->n || (s != 1 && fac_differ(s, x->d[x->n - k])))
            return fac_fail(n, FAC_E_SHAPE, "slope does not broadcast to x");
    }
    n->out[0]->type.dims = *x;
    return true;
}

static const fac_onnx onnx[] = { { "", "PRelu", 7, 0, NULL, NULL, 0 },
                                 { "", "PRelu", 1, 6, fac_names_first, fac_load_first_prelu, 2 },
                                 { 0 } };
static const fac_case cases[] = { { "prelu(f32[2,3,4,5], f32[3,1,1])", -4, 4, 1e-6 },
                                  { "prelu(f32[9], f32[9])", -4, 4, 1e-6 },
                                  { "prelu(i32[9], i32[])", -9, 9, 0 },
                                  { "prelu(f16[9], f16[1])", -4, 4, 2e-3 },
                                  { "prelu(f32[0], f32[])", 0, 0, 0 },
                                  { "prelu(f64[], f64[])", -4, 4, 1e-12 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    fac_value *x = n->in[0];
    out[0] = fac_where(fac_less(x, fac_number_as(x, 0)), fac_mul(x, n->in[1]), x);
}

const fac_op fac_op_prelu = {
    MAP_OP("prelu", "x, or y x where x < 0", ports, infer),
    .is = FAC_OP_INPLACE,
    .grad = grad,
    .define = define,
    .steps = fac_steps_zero,
    .layer = FAC_CLASS_PRELU,
    .torch = "PReLU",
    .rounding = { .rule = FAC_ROUND_PRELU },
};
fac_value *fac_prelu(fac_value *x, fac_value *slope) {
    return fac_emit(&fac_op_prelu, NULL, 2, (fac_value *[]){ x, slope });
}
