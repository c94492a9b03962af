/* A slab of weights meets x by dots for few rows, as a matrix product for many. */
#include "backends/cpu/product/slab.h"
#include <limits.h>
#include "backends/cpu/product/gemm.h"

enum { FEW = 6, DEPTH = 512, WIDEST = 128 };

bool fac_slab_settle(fac_slab *s) {
    const fac_simd *simd = s->cpu->simd;
    const int64_t fit = (int64_t)(s->cpu->l2 / 2 / sizeof(float)) / s->K, wide = 2 * simd->lanes;
    s->rows = fit / wide * wide;
    if (fit > WIDEST) s->rows = WIDEST;
    if (fit < wide || s->M <= FEW) s->rows = wide;
    s->slabs = (s->N + s->rows - 1) / s->rows;
    s->direct = s->K % simd->lanes == 0;
    return s->slabs < INT_MAX && s->K < INT_MAX / 8 && s->M < INT_MAX / 8;
}

size_t fac_slab_floats(const fac_slab *s) {
    const fac_simd *simd = s->cpu->simd;
    const size_t both = fac_gemm_both_floats(simd, fac_gemm_tiles(simd, s->M), DEPTH, s->direct);
    return (size_t)(s->rows * s->K) + both + 64;
}

static void by_dots(const fac_slab *s, const float *x, const float *slab, int64_t rows, float *y) {
    float sums[FEW * WIDEST];
    s->cpu->simd->dots(&(fac_dots){ slab, x, s->K, s->K, s->K, rows, s->M, sums, s->M });
    for (int64_t k = 0; k < rows; k++)
        for (int64_t m = 0; m < s->M; m++) y[m * s->N + k] = sums[k * s->M + m];
}

static void by_gemm(const fac_slab *s, const float *x, float *slab, int64_t rows, float *y) {
    static const fac_epilogue none = { .residual = -1,
                                       .lo = -__builtin_inff(),
                                       .hi = __builtin_inff() };
    const fac_simd *simd = s->cpu->simd;
    const fac_gemm_job g = {
        .simd = simd, .M = s->M, .N = rows, .K = s->K, .y = y, .y_row = s->N, .e = &none
    };
    const fac_gemm_block all = { .t1 = fac_gemm_tiles(simd, s->M),
                                 .p1 = fac_gemm_panels(simd, rows) };
    fac_gemm_both(&g, all, (fac_gemm_matrix){ x, s->K, 1 }, (fac_gemm_matrix){ slab, 1, s->K }, 1,
                  DEPTH, s->direct, slab + s->rows * s->K);
}

void fac_slab_product(const fac_slab *s, const float *x, float *slab, int64_t rows, float *y) {
    if (s->M <= FEW)
        by_dots(s, x, slab, rows, y);
    else
        by_gemm(s, x, slab, rows, y);
}
