/* Convolutions one after the other, with the elementwise ops between and after them, as one node
 * whose body begins with the convolution of input 0.  Made by src/passes/fusion/conv_chains.c: what
 * lies between them is used up row by row and never stored whole. Has no prototype. */
#include "graph/graph_internal.h"
#include "ops/bodies.h"
#include "op_list.h"

static const fac_port in[] = { { "x", FAC_FLOATS, FAC_VARIADIC }, { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    if (!fac_bodies_infer(n)) return false;
    const fac_graph *b = n->body[0];
    bool conv = FAC_IS(b->first, conv2d) && b->first->in[0] == b->inputs[0];
    return conv || fac_fail(n, FAC_E_ARGUMENT, "its body must begin with the conv2d of input 0");
}

static const fac_case cases[] = {
    { "fused_conv(f32[1,3,6,5], f32[8,3,1,1], f32[8,1,3,3], f32[3,8,1,1]) {conv2d(_, x1) relu "
      "conv2d(_, x2) pad=1,1,1,1 groups=8 "
      "conv2d(_, x3) add(_, x0)}",
      -1, 1, 1e-5 },
    { "fused_conv(f32[2,3,7,7], f32[6,3,1,1], f32[6], f32[6,1,3,3], f32[6], f32[4,6,1,1], f32[4]) "
      "{conv2d(_, x1, x2) "
      "clip(_, 0, 6) conv2d(_, x3, x4) stride=2,2 pad=1,1,1,1 groups=6 clip(_, 0, 6) conv2d(_, x5, "
      "x6)}",
      -1, 1, 1e-5 },
    { 0 }
};

extern const fac_op fac_op_fused_conv;
const fac_op fac_op_fused_conv = {
    .name = "fused_conv",
    .doc = "convolutions one after the other, and the elementwise ops between them, in one pass",
    .in = in,
    .out = out,
    .is = FAC_OP_BODIES,
    .infer = infer,
    .expand = fac_bodies_expand,
    .cost = fac_bodies_cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
