/* The gradient of two-dimensional max pooling with relu before it: a kernel that looks for maxima
 * sees which are at or below 0, and what relu passes need not be read and written once more.  Made
 * by src/passes/fusion/relu_pools.c; has no prototype. */
#include "op_list.h"
#include "base/error.h"
#include "ops/pool_grad.h"

/* dx = max_pool2d_grad(x, dy), but 0 where x <= 0; x is what relu made. */
static fac_status ref(const fac_ref *r, fac_error *err) {
    FAC_TRY(fac_max_pool2d_grad_ref(r, err));
    for (int64_t i = 0; i < fac_dims_count(&r->out[0].type.dims); i++)
        if (r->in[0].f[i] <= 0) r->out[0].f[i] = 0;
    return FAC_OK;
}

static const fac_case cases[] = {
    { "max_pool2d_relu_grad(f32[2,3,11,9], f32[2,3,6,5]) kernel=3,3 stride=2,2 pad=1,1,1,1", -3, 1,
      1e-6 },
    { "max_pool2d_relu_grad(f32[1,5,13,10], f32[1,5,7,4]) kernel=3,2 stride=2,3 pad=1,0,0,1 "
      "ceil_mode",
      -2, 1, 1e-6 },
    { "max_pool2d_relu_grad(f32[2,8,9,8], f32[2,8,5,4]) kernel=3,3 stride=2,2 pad=1,1,1,1", -2, 1,
      1e-6 },
    { "max_pool2d_relu_grad(f16[1,2,6,6], f16[1,2,3,3]) kernel=2,2", -1, 1, 1e-3 },
    { 0 }
};

extern const fac_op fac_op_max_pool2d_relu_grad;
const fac_op fac_op_max_pool2d_relu_grad = {
    .name = "max_pool2d_relu_grad",
    .doc = "the gradient of relu and two-dimensional max pooling",
    .in = fac_max_pool_grad_in,
    .out = fac_pool_grad_out,
    .attrs = fac_pool2d_table,
    .attrs_size = sizeof(fac_pool2d_attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = fac_pool_grad_infer,
    .ref = ref,
    .cost = fac_pool_grad_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
