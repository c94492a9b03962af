/* Products with weights of few bits in blocks, as ONNX Runtime's MatMulNBits has them, for each
 * instruction set (simd/blocks/nbits.c). */
#ifndef FACULA_CPU_NBITS_H
#define FACULA_CPU_NBITS_H
#include <stddef.h>
#include <stdint.h>

/* Rows of codes: code k of a row in the low bits first, in blocks of `block` codes (a power of two,
 * 16 at least), each with a scale and perhaps a zero point. */
typedef struct fac_nbits_weights {
    const uint8_t *codes;
    const float *scale;
    const uint8_t *zero;      /* packed like codes, rows of whole bytes; or NULL */
    const float *zero_number; /* or NULL.  Without both it is 2^(bits - 1) */
    int64_t K, blocks, block;
    int bits;
} fac_nbits_weights;

static inline int64_t fac_nbits_row_bytes(const fac_nbits_weights *w) {
    return w->blocks * w->block * w->bits / 8;
}
static inline int64_t fac_nbits_zero_bytes(const fac_nbits_weights *w) {
    return (w->blocks * w->bits + 7) / 8;
}

/* y[j y_row + i] = sum over k of w[first + i][k] x[j][k], i < rows, j < m, of codes of 4 bits; x
 * as turn() leaves it. */
typedef struct fac_nbits_rows {
    const fac_nbits_weights *w;
    int64_t first, rows;
    const float *x;
    int64_t m;
    float *y;
    int64_t y_row;
} fac_nbits_rows;

typedef struct fac_nbits_kernels {
    /* Floats of a row of x turned: its numbers in the order in which the kernel meets codes, zeros
     * after them, then the sum of each block. */
    int64_t (*turned)(const fac_nbits_weights *w);
    void (*turn)(const fac_nbits_weights *w, const float *x, float *to);
    void (*run)(const fac_nbits_rows *t);
    /* Row n of weights of any bits as K floats. */
    void (*decode)(const fac_nbits_weights *w, int64_t n, float *to);
} fac_nbits_kernels;

/* The same of x rounded to 8 bits, in blocks as long as those of w (simd/blocks/nbits_rounded.c).
 */
typedef struct fac_nbits_rounded {
    int64_t (*row)(const fac_nbits_weights *w); /* floats of a row of x; NULL: there is none */
    void (*round)(const fac_nbits_weights *w, const float *x, float *to);
    void (*run)(const fac_nbits_rows *t);
} fac_nbits_rounded;

extern const fac_nbits_kernels fac_nbits_base;
extern const fac_nbits_rounded fac_nbits_rounded_base;
#if defined(__x86_64__)
extern const fac_nbits_kernels fac_nbits_avx2, fac_nbits_avx512;
extern const fac_nbits_rounded fac_nbits_rounded_avx2, fac_nbits_rounded_avx512;
#endif
#endif
