/* A matrix product and the elementwise ops that read it, as one node whose body begins with the
 * product of inputs 0 and 1.  Made by src/passes/training/updates.c: the gradient of a large matrix
 * is used up by its optimizer while it is in the cache, and never stored.  Has no prototype. */
#include "graph/graph_internal.h"
#include "ops/bodies.h"
#include "op_list.h"

static const fac_port in[] = { { "x", FAC_FLOATS | FAC_INTS | FAC_BOOLS, FAC_VARIADIC }, { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS | FAC_INTS | FAC_BOOLS, FAC_VARIADIC }, { 0 } };

/* Outputs may be written over inputs of their shape, so the operands of the product, all of which
 * every element reads, must have another. */
static bool infer(fac_node *n) {
    if (!fac_bodies_infer(n)) return false;
    const fac_graph *b = n->body[0];
    const fac_node *first = b->first;
    bool product = FAC_IS(first, matmul) && b->ninputs > 1 && first->in[0] == b->inputs[0] &&
                   first->in[1] == b->inputs[1];
    if (!product)
        return fac_fail(n, FAC_E_ARGUMENT, "its body must begin with the matmul of inputs 0 and 1");
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < n->nout; k++)
            if (fac_dims_equal(&n->in[i]->type.dims, &n->out[k]->type.dims))
                return fac_fail(n, FAC_E_SHAPE,
                                "input %d, an operand of the product, has the shape of output %d",
                                i, k);
    return true;
}

static const fac_case cases[] = { { "fused_matmul(f32[5,3], f32[3,7], f32[5,7], f32[]) {t0 = "
                                    "matmul(x0, x1); t1 = mul(t0, x3); t2 = sub(x2, t1); t2}",
                                    -2, 2, 1e-5 },
                                  { "fused_matmul(f32[4,2], f32[2,9], f32[4,9]) {t0 = matmul(x0, "
                                    "x1); t1 = mul(t0, t0); t2 = add(x2, t1); t2, t1}",
                                    -2, 2, 1e-5 },
                                  { 0 } };

extern const fac_op fac_op_fused_matmul;
const fac_op fac_op_fused_matmul = {
    .name = "fused_matmul",
    .doc = "a matrix product and the elementwise ops after it, in one pass",
    .in = in,
    .out = out,
    .is = FAC_OP_BODIES | FAC_OP_INPLACE,
    .infer = infer,
    .expand = fac_bodies_expand,
    .cost = fac_bodies_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
