/* The table of one instruction set. */
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/device/streams.h"
#include "facula/op.h"

extern const fac_conv_tile_table FAC_SIMD(fac_conv_tile)[FAC_TILE_KINDS];
extern const fac_outer_table FAC_SIMD(fac_outer);
extern fac_depthwise_kernel FAC_SIMD(fac_depthwise_row);
extern fac_doubled_kernel FAC_SIMD(fac_doubled);
extern const fac_lane_kernels FAC_SIMD(fac_lane_kernels);
extern fac_depthwise_grad_kernel FAC_SIMD(fac_depthwise_grad);
extern fac_pool_kernel FAC_SIMD(fac_pool);
extern fac_pool_grad_kernel FAC_SIMD(fac_pool_grad);
extern const fac_winograd FAC_SIMD(fac_winograd)[FAC_WINOGRADS];
extern const fac_winograd_rows FAC_SIMD(fac_winograd_rows);

extern const fac_streams FAC_SIMD(fac_streams);
extern fac_transpose_kernel FAC_SIMD(fac_transpose_f32);
extern fac_pack_kernel FAC_SIMD(fac_pack_rows);
extern const struct fac_attention_kernels FAC_SIMD(fac_attention);
extern void FAC_SIMD(fac_attention_of_row)(const struct fac_attention_row *t);
extern const fac_peak_kernels FAC_SIMD(fac_peak);
extern const fac_row_kernel FAC_SIMD(fac_row_sum);
extern fac_dots_kernel FAC_SIMD(fac_dots);
extern const fac_typed_kernels FAC_SIMD(fac_typed);
extern fac_arg_kernel FAC_SIMD(fac_arg);
extern fac_tree_kernel FAC_SIMD(fac_trees);
extern const fac_fft_kernels FAC_SIMD(fac_fft);
extern const fac_fft_ends FAC_SIMD(fac_fft_ends);

extern const fac_simd FAC_SIMD(fac_simd);
const fac_simd FAC_SIMD(fac_simd) = {
#if defined(__AVX512F__)
    .name = "avx512",
    .isa = FAC_ISA_AVX512,
#elif defined(__AVX2__)
    .name = "avx2",
    .isa = FAC_ISA_AVX2,
#elif defined(__aarch64__)
    .name = "neon",
    .isa = FAC_ISA_BASE,
#else
    .name = "portable",
    .isa = FAC_ISA_BASE,
#endif
    .lanes = VL,
    .rows = MR,
    .tile = FAC_SIMD(fac_conv_tile),
    .outer = &FAC_SIMD(fac_outer),
    .depthwise = FAC_SIMD(fac_depthwise_row),
    .doubled = FAC_SIMD(fac_doubled),
    .pool = FAC_SIMD(fac_pool),
    .winograd = FAC_SIMD(fac_winograd),
    .winograd_rows = &FAC_SIMD(fac_winograd_rows),
    .pool_grad = FAC_SIMD(fac_pool_grad),
    .depthwise_grad = FAC_SIMD(fac_depthwise_grad),
    .lane = &FAC_SIMD(fac_lane_kernels),
    .streams = &FAC_SIMD(fac_streams),
    .transpose = FAC_SIMD(fac_transpose_f32),
    .pack_rows = FAC_SIMD(fac_pack_rows),
    .attention = &FAC_SIMD(fac_attention),
    .attention_row = FAC_SIMD(fac_attention_of_row),
    .peak = &FAC_SIMD(fac_peak),
    .row_sum = &FAC_SIMD(fac_row_sum),
    .dots = FAC_SIMD(fac_dots),
    .typed = &FAC_SIMD(fac_typed),
    .arg = FAC_SIMD(fac_arg),
    .trees = FAC_SIMD(fac_trees),
    .fft = &FAC_SIMD(fac_fft),
    .fft_ends = &FAC_SIMD(fac_fft_ends),
};
