/* Products with weights of few bits in blocks, as ONNX Runtime's MatMulNBits has them, for each
 * instruction set (simd/blocks/nbits.c, simd/blocks/nbits_rounded.c). */
#ifndef FACULA_CPU_NBITS_H
#define FACULA_CPU_NBITS_H
#include <stddef.h>
#include <stdint.h>

/* Rows of codes as they are stored: code k of a row in the low bits first, in blocks of `block`
 * codes (a power of two, 16 at least), each with a scale and perhaps a zero point. */
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

/* The same of 4 bits, packed: a panel is as many rows as two vectors have lanes.
 *   codes        [panel][words][rows of a panel], eight codes in a word: byte i has code i in its
 *                low half and code 4 + i in its high one
 *   scale, zero  [panel][blocks][rows of a panel]; zero NULL: 8 everywhere
 * Rows after the last one are zeros. */
typedef struct fac_nbits_panels {
    const uint32_t *codes;
    const float *scale, *zero;
    const float *offset; /* instead of zero points, or NULL: weights are scale code + offset */
    int64_t block, blocks, words;
} fac_nbits_panels;

/* y[j y_row + n] = sum over k of w[n][k] x[j][k] for the rows n of panels first .. last - 1 that
 * are below N, and j < m. */
typedef struct fac_nbits_task {
    const fac_nbits_panels *w;
    int64_t first, last, N;
    const void *x;
    int64_t m;
    float *y;
    int64_t y_row;
} fac_nbits_task;

/* Floats of a row of x for run(): its numbers, zeros up to a whole block, the sum of each block. */
static inline int64_t fac_nbits_x_row(const fac_nbits_panels *w) {
    return w->blocks * w->block + w->blocks;
}

enum { FAC_NBITS_FEW = 4 }; /* rows of x that run() takes at most */
typedef struct fac_nbits_kernels {
    void (*run)(const fac_nbits_task *t);
    /* Codes k0 .. k1 - 1, whole words, of the first `vectors` vectors of a panel as f32:
     * to[k1 - k0][vectors][lanes]. */
    void (*panel)(const fac_nbits_panels *w, int64_t panel, int vectors, int64_t k0, int64_t k1,
                  float *to);
    /* Row n of weights of any bits, as they are stored, as K floats. */
    void (*decode)(const fac_nbits_weights *w, int64_t n, float *to);
} fac_nbits_kernels;

/* Products of x rounded to 8 bits, in blocks as long as those of w, of any number of rows.  Rows
 * that are many go in groups of FAC_NBITS_GROUP: what is read together then lies together. */
enum { FAC_NBITS_GROUP = 16 };
typedef struct fac_nbits_rounded {
    size_t (*bytes)(const fac_nbits_panels *w, int64_t m); /* of m rows; NULL: there is none */
    /* Row j of m, of K numbers. */
    void (*round)(const fac_nbits_panels *w, const float *x, int64_t K, int64_t j, int64_t m,
                  void *to);
    void (*run)(const fac_nbits_task *t);
} fac_nbits_rounded;

/* The kernels of an instruction set, NULL: there are none.  M rows in groups: bytes of them, row j
 * of x, and products; t->x are all of them (product/nbits.c). */
struct fac_simd;
const fac_nbits_rounded *fac_nbits_rounded_of(const struct fac_simd *s);
size_t fac_nbits_rounded_bytes(const fac_nbits_rounded *r, const fac_nbits_panels *w, int64_t M);
void fac_nbits_rounded_row(const fac_nbits_rounded *r, const fac_nbits_panels *w, const float *x,
                           int64_t K, int64_t j, int64_t M, void *to);
void fac_nbits_rounded_run(const fac_nbits_rounded *r, const fac_nbits_task *t);

/* Panels of all N rows for kernels of so many lanes, on the threads of a pool (product/nbits.c). */
struct fac_pool;
static inline int64_t fac_nbits_panel_count(int64_t N, int lanes) {
    return (N + 2 * lanes - 1) / (2 * lanes);
}
void fac_nbits_pack_codes(const struct fac_pool *pool, const uint8_t *codes, int64_t N,
                          int64_t words, int lanes, uint32_t *to);
void fac_nbits_pack_numbers(const float *from, int64_t N, int64_t blocks, int lanes, float *to);
void fac_nbits_pack_zeros(const uint8_t *codes, int64_t N, int64_t blocks, int lanes, float *to);

extern const fac_nbits_kernels fac_nbits_base;
extern const fac_nbits_rounded fac_nbits_rounded_base;
#if defined(__x86_64__)
extern const fac_nbits_kernels fac_nbits_avx2, fac_nbits_avx512;
extern const fac_nbits_rounded fac_nbits_rounded_avx2, fac_nbits_rounded_avx512;
#endif
#endif
