/* Kernels that read and write memory in order, of one instruction set: reductions, softmax,
 * normalization.  Part of fac_simd; compiled from simd/lines/streams.c and simd/half.c. */
#ifndef FACULA_CPU_STREAMS_H
#define FACULA_CPU_STREAMS_H
#include <stdbool.h>
#include <stdint.h>
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/integers.h"
#include "tensor/tensor_internal.h"

/* Folds compute in f64 whatever the elements are, so a sum of f32 is rounded once, when it is
 * stored.  NaN wins in MAX, MIN. */
enum { FAC_FOLD_SUM, FAC_FOLD_PROD, FAC_FOLD_MAX, FAC_FOLD_MIN, FAC_FOLDS };
typedef struct fac_folds {
    /* start folded with x[0..n) */
    double (*row)(int fold, double start, const void *x, int64_t n);
    /* acc[j] folded with x[r * stride + j] for all rows r and columns j; stride in elements */
    void (*columns)(int fold, double *acc, const void *x, int64_t rows, int64_t stride,
                    int64_t columns);
} fac_folds;

/* simd/half.c */
typedef struct fac_halves {
    void (*widen_f16)(const uint16_t *x, float *y, int64_t n),
        (*narrow_f16)(const float *x, uint16_t *y, int64_t n);
    void (*widen_bf16)(const uint16_t *x, float *y, int64_t n),
        (*narrow_bf16)(const float *x, uint16_t *y, int64_t n);
} fac_halves;

typedef struct fac_lrn_terms {
    float factor, bias, beta;
} fac_lrn_terms; /* bias > 0, factor >= 0 */
enum { FAC_LRN_CHANNELS = 512, FAC_LRN_WINDOW = 64 };

/* One step of Adam on n elements of p, m, v, which may be written where they were read:
 *   m' = m + (g - m) weight;  v' = v keep + g g fresh;
 *   p' = p - rate (m' / (sqrt(v') inverse + epsilon)) */
typedef struct fac_adam_numbers {
    float weight, keep, fresh, rate, inverse, epsilon;
} fac_adam_numbers;
typedef void fac_adam_kernel(const fac_adam_numbers *t, const float *g, const float *const in[3],
                             float *const out[3], int64_t n);

/* simd/lines/short_rows.c.  sums[r] = sum of row r, of n elements side by side, a multiple of
 * FAC_SHORT, in f64 */
enum { FAC_SHORT = 8 };
typedef void fac_short_sums(const float *x, int64_t n, int64_t rows, double *sums);

/* simd/lines/level_sums.c.  Level k is of numbers above threshold[k - 1] and not above
 * threshold[k], of which there are levels - 1 > 0 in rising order.  To count[k] and sum[k] is added
 * what x has. */
typedef void fac_level_kernel(const float *x, int64_t n, const float *threshold, int levels,
                              double *count, double *sum);

/* simd/lines/lines_grad.c.  A line of a layer norm; dscale and dbias, to which is added, are both
 * there or NULL. */
typedef struct fac_norm_line {
    const float *x, *dy, *scale; /* scale: NULL: 1 */
    float *dscale, *dbias, mean, inverse;
    int64_t n;
} fac_norm_line;
typedef void fac_line_grad(const float *y, const float *dy, float *dx, int64_t n, float sum);
typedef struct fac_line_grads {
    double (*dot)(const float *x, const float *y, int64_t n);
    fac_line_grad *softmax, *log_softmax; /* dx = y (dy - sum); dx = dy - exp(y) sum */
    /* with hat = (x - mean) inverse and g = dy scale: sums of g and g hat;  dscale += dy hat, dbias
     * += dy */
    void (*norm_sums)(const fac_norm_line *t, double *sum, double *along);
    /* elements first .. first + n - 1 of  inverse (g - a - hat b)  to dx[0..n) */
    void (*norm)(const fac_norm_line *t, int64_t first, int64_t n, float a, float b, float *dx);
} fac_line_grads;

typedef struct fac_streams {
    const fac_halves *half;
    const fac_integer_kernels *integers;
    fac_folds f32, f64;
    /* y may be x.  log: log_softmax.  past: y, which is not x, goes past the caches. */
    void (*softmax_row)(const float *x, float *y, int64_t n, bool log, bool past);
    /* Along rows of the given stride, for columns side by side (at most FAC_LINES of them). */
    void (*softmax_columns)(const float *x, float *y, int64_t rows, int64_t stride, int64_t columns,
                            bool log);
    /* y = (x - mean) factor + shift; of pixels of one channel block, one number for each lane; with
     * an own scale and shift for each element, either of which may be NULL.  y may be x. */
    void (*normalize)(const float *x, float *y, int64_t n, float mean, float factor, float shift);
    void (*normalize_lanes)(const float *x, float *y, int64_t pixels, const float *mean,
                            const float *factor, const float *shift);
    void (*normalize_each)(const float *x, float *y, int64_t n, float mean, float factor,
                           const float *scale, const float *shift);
    /* sum of (x - mean)^2, in f64 */
    double (*spread_row)(const float *x, int64_t n, double mean);
    /* of a row, in f32 sums of some hundred terms that are added up in f64 */
    void (*moments_row)(const float *x, int64_t n, double *mean, double *var);
    double (*mean_square_row)(const float *x, int64_t n);
    /* y[j] = at[j] (bias + factor sum of x[r * stride + j]^2 over the rows)^-beta; at most
     * FAC_LINES columns */
    void (*lrn_columns)(const float *x, int64_t rows, int64_t stride, int64_t columns,
                        const fac_lrn_terms *t, const float *at, float *y);
    /* The same for pixels of all channel blocks, a window being `size` channels from `before`
     * channels before its own on; at most FAC_LRN_CHANNELS of them, of at most FAC_LRN_WINDOW. */
    void (*lrn_pixels)(const float *x, int64_t x_block, float *y, int64_t y_block, int64_t pixels,
                       int64_t channels, int64_t before, int64_t size, const fac_lrn_terms *t);
    fac_adam_kernel *adam;
    /* memcpy, and fac_simd's transpose of squares, past the caches; NULL: the set has no such
     * stores */
    void (*put)(void *to, const void *from, size_t bytes);
    fac_transpose_kernel *transpose_past;
    const fac_line_grads *grads;
    fac_short_sums *short_sums;
    fac_level_kernel *level_sums;
} fac_streams;
enum { FAC_LINES = 256 };

/* A store to a line that is in no cache reads it first, so writing n bytes moves 2 n, unless it
 * goes past the caches; which pays for results that have left them when something reads them: what
 * is larger than all second caches, and than half the third one. One of hundreds of megabytes is of
 * many cores and nearly as far as memory, but what its reader finds there comes at twice the rate:
 * up to some tens of megabytes both together are faster so (softmax and its gradient of 12 MB: 1.6
 * ms instead of 2.0). Results are made in a part of the first cache and put from there: bursts of
 * whole lines are what memory takes fastest. */
enum { FAC_STREAM_PART = 1024, FAC_STREAM_FAR = 32 << 20 };
static inline bool fac_streams_past(const fac_cpu *c, size_t bytes) {
    const size_t near = (size_t)c->pool.threads * c->l2,
                 far = c->l3 / 2 < FAC_STREAM_FAR ? c->l3 / 2 : FAC_STREAM_FAR;
    return c->simd->streams->put && bytes > (near > far ? near : far);
}
/* After the last of a thread: other threads may read what it has put. */
static inline void fac_streams_end(void) {
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

/* fac_convert, by vectors among whole numbers, bools and floats. */
static inline void fac_streams_convert(const fac_streams *s, fac_dtype to, void *y, fac_dtype from,
                                       const void *x, int64_t n) {
    if (from == FAC_F32 && to == FAC_F16)
        s->half->narrow_f16((const float *)x, (uint16_t *)y, n);
    else if (from == FAC_F32 && to == FAC_BF16)
        s->half->narrow_bf16((const float *)x, (uint16_t *)y, n);
    else if (from == FAC_F16 && to == FAC_F32)
        s->half->widen_f16((const uint16_t *)x, (float *)y, n);
    else if (from == FAC_BF16 && to == FAC_F32)
        s->half->widen_bf16((const uint16_t *)x, (float *)y, n);
    else if (fac_has_kernels(to) && fac_has_kernels(from) && s->integers->convert[to][from])
        s->integers->convert[to][from](y, x, n);
    else
        fac_convert(to, y, from, x, (size_t)n);
}

static inline double fac_fold_start(int fold) {
    return fold == FAC_FOLD_SUM    ? 0
           : fold == FAC_FOLD_PROD ? 1
           : fold == FAC_FOLD_MAX  ? -__builtin_inf()
                                   : __builtin_inf();
}
#endif
