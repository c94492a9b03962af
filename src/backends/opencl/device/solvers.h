/* The solvers of the OpenCL backend, for its list in solvers.c. */
#ifndef FACULA_OPENCL_SOLVERS_H
#define FACULA_OPENCL_SOLVERS_H
#include "facula/backend.h"

extern const fac_solver fac_cl_empty, fac_cl_elementwise, fac_cl_group_solver;
extern const fac_solver fac_cl_copy_solver, fac_cl_concat, fac_cl_reshape, fac_cl_table_solver,
    fac_cl_pad_grad;
extern const fac_solver fac_cl_fill_solver, fac_cl_dropout_solver, fac_cl_random_bits_solver,
    fac_cl_scatter_solver, fac_cl_gather_solver;
extern const fac_solver fac_cl_conv_bits_solver, fac_cl_conv_codes_solver,
    fac_cl_max_pool_codes_solver, fac_cl_code_limits_solver;
extern const fac_solver fac_cl_pool_solver, fac_cl_lrn_solver, fac_cl_batch_norm_solver,
    fac_cl_norm_solver;
extern const fac_solver fac_cl_batch_norm_pair_solver, fac_cl_batch_norm_sums_solver;
extern const fac_solver fac_cl_softmax_solver, fac_cl_softmax_grad_solver,
    fac_cl_log_softmax_grad_solver, fac_cl_layer_norm_grad_solver, fac_cl_rms_norm_grad_solver;
extern const fac_solver fac_cl_cross_entropy_solver, fac_cl_cross_entropy_grad_solver;
extern const fac_solver fac_cl_conv_depthwise_solver, fac_cl_pool_quads_solver,
    fac_cl_pool_strip_solver;
extern const fac_solver fac_cl_reduce_solver, fac_cl_arg_solver, fac_cl_scan_solver, fac_cl_top_k,
    fac_cl_sum_square_all;
extern const fac_solver fac_cl_matmul_tile, fac_cl_matmul_vector, fac_cl_matmul_thin,
    fac_cl_product_thin_f16, fac_cl_fused_matmul;
extern const fac_solver fac_cl_conv_tile, fac_cl_conv_vector, fac_cl_conv_direct,
    fac_cl_winograd_2x2, fac_cl_winograd_4x4;
extern const fac_solver fac_cl_winograd_grad_w_2x2, fac_cl_winograd_grad_w_4x4;
extern const fac_solver fac_cl_matmul_wgmma, fac_cl_matmul_dot;
extern const fac_solver fac_cl_conv_wgmma_stream;
extern const fac_solver fac_cl_conv_wgmma_grad_w; /* nvidia/conv_grad_w.c */
extern const fac_solver fac_cl_conv_wgmma, fac_cl_winograd_wgmma;
extern const fac_solver fac_cl_conv_mma, fac_cl_conv_mma_grad_w,
    fac_cl_matmul_mma;                     /* nvidia/mma.h */
extern const fac_solver fac_cl_conv_warps; /* nvidia/conv_warps.h */
/* nvidia/relay.h */
extern const fac_solver fac_cl_conv_relay, fac_cl_product_relay, fac_cl_depthwise_relay,
    fac_cl_pool_relay, fac_cl_mean_relay;
extern const fac_solver fac_cl_attention_wgmma, fac_cl_attention_grad_wgmma;

extern const fac_solver *const fac_cl_solvers[]; /* NULL-terminated */
#endif
