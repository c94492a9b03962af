/* The solvers of the cpu backend, for its list in backend.c. */
#ifndef FACULA_CPU_SOLVERS_H
#define FACULA_CPU_SOLVERS_H
#include "facula/backend.h"

extern const fac_backend fac_backend_cpu;

extern const fac_solver fac_cpu_conv_winograd_2x2, fac_cpu_conv_winograd_4x4,
    fac_cpu_conv_winograd_5x5, fac_cpu_conv_winograd_4x4_5x5, fac_cpu_conv_winograd_2x2_strided,
    fac_cpu_conv_winograd_4x4_strided, fac_cpu_conv_direct, fac_cpu_conv_pool_winograd_2x2,
    fac_cpu_conv_pool_winograd_4x4, fac_cpu_conv_pool_winograd_5x5,
    fac_cpu_conv_pool_winograd_4x4_5x5, fac_cpu_conv_first, fac_cpu_conv_first_winograd,
    fac_cpu_conv_depthwise, fac_cpu_conv_grouped, fac_cpu_conv_inverted,
    fac_cpu_conv_inverted_channels, fac_cpu_conv2d_gemm, fac_cpu_conv3d_gemm, fac_cpu_linear_gemm,
    fac_cpu_matmul_gemm, fac_cpu_gemm_gemm, fac_cpu_max_pool, fac_cpu_avg_pool;
extern const fac_solver fac_cpu_conv_bits, fac_cpu_conv_codes, fac_cpu_max_pool_codes;
extern const fac_solver fac_cpu_cache_write, fac_cpu_rotary, fac_cpu_linear_blocks;
extern const fac_solver fac_cpu_conv_grad_w_direct, fac_cpu_conv_grad_w_first,
    fac_cpu_conv_grad_x_direct, fac_cpu_conv_grad_x_depthwise, fac_cpu_conv_grad_x_winograd_2x2,
    fac_cpu_conv_grad_x_winograd_4x4, fac_cpu_conv_grad_x_winograd_5x5,
    fac_cpu_conv_grad_w_winograd_2x2, fac_cpu_conv_grad_w_winograd_4x4,
    fac_cpu_conv_grad_w_winograd_5x5, fac_cpu_conv_grad_w_depthwise, fac_cpu_conv_grad_x_strided,
    fac_cpu_conv_grad_x_strided_depthwise;
extern const fac_solver fac_cpu_conv2d_grad_x, fac_cpu_conv2d_grad_w, fac_cpu_conv3d_grad_x,
    fac_cpu_conv3d_grad_w, fac_cpu_conv2d_grad_x_plane, fac_cpu_conv2d_grad_w_plane,
    fac_cpu_max_pool_grad, fac_cpu_avg_pool_grad, fac_cpu_max_pool_grad_blocked,
    fac_cpu_avg_pool_grad_blocked, fac_cpu_batch_norm_blocked, fac_cpu_batch_norm_grad_blocked,
    fac_cpu_batch_norm_act_grad_blocked, fac_cpu_batch_norm_train, fac_cpu_batch_norm_grad,
    fac_cpu_dropout, fac_cpu_random_bits;
extern const fac_solver fac_cpu_linear_computed, fac_cpu_matmul_computed, fac_cpu_gemm_computed;
extern const fac_solver fac_cpu_linear_thin, fac_cpu_matmul_thin, fac_cpu_fused_matmul;
extern const fac_solver fac_cpu_fused, fac_cpu_reorder, fac_cpu_reduce, fac_cpu_softmax,
    fac_cpu_norm, fac_cpu_lrn, fac_cpu_concat, fac_cpu_move, fac_cpu_reshape, fac_cpu_gather,
    fac_cpu_gather_grad, fac_cpu_gather_elements, fac_cpu_scatter_elements, fac_cpu_pad,
    fac_cpu_half, fac_cpu_group, fac_cpu_affine, fac_cpu_sum_square_all, fac_cpu_attention,
    fac_cpu_softmax_grad, fac_cpu_log_softmax_grad, fac_cpu_layer_norm_grad, fac_cpu_rms_norm_grad,
    fac_cpu_attention_grad, fac_cpu_linear_row, fac_cpu_matmul_row, fac_cpu_gemm_row, fac_cpu_typed,
    fac_cpu_arg, fac_cpu_tree_ensemble, fac_cpu_whole, fac_cpu_stft;
extern const fac_solver fac_cpu_conv_integer, fac_cpu_qlinear_conv, fac_cpu_matmul_integer,
    fac_cpu_qlinear_matmul, fac_cpu_qlinear_add, fac_cpu_qlinear_mul, fac_cpu_max_pool_bytes,
    fac_cpu_qlinear_mean;
#endif
