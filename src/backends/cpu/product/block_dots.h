/* Products of weights in blocks with rows of 8-bit numbers, for each instruction set
 * (simd/blocks/block_dots.c). */
#ifndef FACULA_CPU_BLOCK_DOTS_H
#define FACULA_CPU_BLOCK_DOTS_H
#include <stddef.h>
#include <stdint.h>
#include "facula/tensor.h"

/* A row of x, of whole blocks of 32, rounded for products with weights in blocks: K numbers of 8
 * bits, then for each block its scale d = largest / 127 and d times the sum of its numbers, f32. */
static inline size_t fac_block_x_bytes(int64_t K) {
    return ((size_t)K + (size_t)K / 4 + 63) / 64 * 64;
}
/* y[j y_row + i] = sum over k of w[i][k] x[j][k], i < rows, j < m, rows of w in blocks w_row bytes
 * apart, rows of x as above. */
typedef struct fac_block_rows {
    const char *w, *x;
    int64_t w_row, x_row, rows, K, m;
    float *y;
    int64_t y_row;
} fac_block_rows;
/* Of one type of blocks; round: a row of x; decode: K numbers as f32, NULL: as any type. */
typedef struct fac_block_dots {
    void (*run)(const fac_block_rows *t);
    void (*round)(const float *x, int64_t K, char *to);
    void (*decode)(const char *w, float *to, int64_t K);
} fac_block_dots;

/* As many rows as two vectors have lanes, of a type whose codes have 4 bits, as a panel of blocks
 * of 32 (nbits.h); rows of them are there. */
typedef struct fac_block_panel {
    uint32_t *codes;
    float *scale, *offset; /* offset: not of q4_0 */
} fac_block_panel;
typedef void fac_block_panel_maker(const char *w, int64_t w_row, int rows, int64_t K,
                                   const fac_block_panel *to);

/* [FAC_DTYPES]; run NULL, a maker NULL: there is none. */
extern const fac_block_dots fac_block_dots_base[];
extern fac_block_panel_maker *const fac_block_panels_base[];
#if defined(__x86_64__)
extern const fac_block_dots fac_block_dots_avx2[], fac_block_dots_avx512[];
extern fac_block_panel_maker *const fac_block_panels_avx2[], *const fac_block_panels_avx512[];
#endif
#endif
