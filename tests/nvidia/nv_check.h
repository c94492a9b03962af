/* For the tests of NVIDIA's matrix units: problems as solvers see them, on a device that need not
 * be there. */
#ifndef NV_CHECK_H
#define NV_CHECK_H
#include "opencl_solver_check.h"

static fac_opencl pretended; /* limits of a device that is not there */

/* Gradients by x with the sums of a norm, as problems whose texts are kept. */
#define NV_CONV_NORMS                                                                              \
    { "norm_1x1",                                                                                  \
      "conv2d_grad_x_norm(f32[64,256,56,56], f32[256,64,1,1], f32[64,64,56,56], "                  \
      "f32[64,64,56,56], "                                                                         \
      "f32[64], f32[64], "                                                                         \
      "f32[64], f32[64]) epsilon=1e-5 lo=0 hi=inf",                                                \
      FAC_PRECISION_HIGH },                                                                        \
        { "norm_3x3",                                                                              \
          "conv2d_grad_x_norm(f32[64,256,14,14], f32[256,256,3,3], f32[64,256,14,14], "            \
          "f32[64,256,14,14], f32[256], "                                                          \
          "f32[256], f32[256], f32[256]) pad=1,1,1,1 epsilon=1e-5 lo=0 hi=inf",                    \
          FAC_PRECISION_HIGH },                                                                    \
        { "norm_sum",                                                                              \
          "conv2d_grad_x_norm(f32[64,64,56,56], f32[64,256,1,1], f32[64,256,56,56], "              \
          "f32[64,256,56,56], "                                                                    \
          "f32[256], "                                                                             \
          "f32[256], f32[256], f32[256], f32[64,256,56,56], f32[64,256,56,56]) epsilon=1e-5 lo=0 " \
          "hi=inf",                                                                                \
          FAC_PRECISION_HIGH },                                                                    \
        { "norm_bf16",                                                                             \
          "conv2d_grad_x_norm(bf16[64,64,56,56], bf16[64,256,1,1], bf16[64,256,56,56], "           \
          "bf16[64,256,56,56], f32[256], "                                                         \
          "f32[256], f32[256], f32[256]) epsilon=1e-5 lo=0 hi=inf",                                \
          FAC_PRECISION_HIGH },                                                                    \
    {                                                                                              \
        "norm_bits",                                                                               \
            "conv2d_grad_x_norm(f32[64,64,56,56], f32[64,256,1,1], f32[64,256,56,56], "            \
            "f32[64,256,56,56], "                                                                  \
            "f32[256], "                                                                           \
            "f32[256], f32[256], f32[256], f32[64,256,56,56], -, u8[64,64,56,56]) epsilon=1e-5 "   \
            "lo=0 "                                                                                \
            "hi=inf",                                                                              \
            FAC_PRECISION_HIGH                                                                     \
    }

static inline void as_problem(const fac_node *n, fac_precision asked, fac_operand *o,
                              fac_problem *p) {
    *p = (fac_problem){
        .node = n, .precision = asked, .nin = n->nin, .nout = n->nout, .in = o, .out = o + n->nin
    };
    for (int i = 0; i < n->nin + n->nout; i++) {
        const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        o[i] = v ? (fac_operand){ v->type, fac_layout_plain(&v->type.dims), FAC_RUN, v->known }
                 : (fac_operand){ 0 };
    }
}

static inline int64_t number(int64_t least, int64_t most) {
    return least + (int64_t)(fac_random_bits(seed, ++stream, 0) % (uint64_t)(most - least + 1));
}
#endif
