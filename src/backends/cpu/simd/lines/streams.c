/* Folds, softmax and normalization of one instruction set: see streams.h. */
#include <math.h>
#include "backends/cpu/simd/exp2.h"
#include "backends/cpu/simd/lines/extreme.h"
#include "backends/cpu/simd/widen.h"
#include "base/mathf.h"

enum { FOLD_AHEAD = 8 }; /* rows that folds of columns ask for before they need them */

#define T float
#define WIDEN widen_f32
#define ROW row_f32
#define COLUMNS columns_f32
#include "backends/cpu/simd/lines/fold_type.h"
#define T double
#define WIDEN widen_f64
#define ROW row_f64
#define COLUMNS columns_f64
#include "backends/cpu/simd/lines/fold_type.h"

/* The largest (smallest) number of a row needs no f64. */
static double fold_row_f32(int fold, double start, const void *x, int64_t n) {
    if (fold == FAC_FOLD_MAX) return fold_number(FAC_FOLD_MAX, start, (double)extreme_of(0, x, n));
    if (fold == FAC_FOLD_MIN) return fold_number(FAC_FOLD_MIN, start, (double)extreme_of(1, x, n));
    return row_f32(fold, start, x, n);
}

/* Nor that of columns: four rows in f32, then all in acc.  A lane of ones is NaN. */
INLINE void extreme_columns(const int least, double *acc, const float *x, int64_t rows,
                            int64_t stride, int64_t columns) {
    const int fold = least ? FAC_FOLD_MIN : FAC_FOLD_MAX;
    const int64_t whole = columns / VL * VL, fours = rows / 4 * 4;
    if (whole < columns) columns_f32(fold, acc + whole, x + whole, rows, stride, columns - whole);
    for (int64_t r = 0; r < fours; r += 4, x += 4 * stride)
        for (int64_t j = 0; j < whole; j += VL) {
            vec v[4];
            UNROLL for (int k = 0; k < 4; k++) {
                if (r + FOLD_AHEAD + 4 <= rows)
                    __builtin_prefetch(x + (FOLD_AHEAD + k) * stride + j, 0, 2);
                v[k] = load(x + k * stride + j);
            }
            const vec a = least ? vmin(v[0], v[1]) : vmax(v[0], v[1]),
                      b = least ? vmin(v[2], v[3]) : vmax(v[2], v[3]);
            const vec top = (vec)((ivec)(least ? vmin(a, b) : vmax(a, b)) | unordered(v[0], v[1]) |
                                  unordered(v[2], v[3]));
            float lane[VL];
            store(lane, top);
            UNROLL for (int k = 0; k < 2; k++)
                store_f64(acc + j + k * VD,
                          fold_vector(fold, widen_f64(acc + j + k * VD), widen_f32(lane + k * VD)));
        }
    columns_f32(fold, acc, x, rows - fours, stride, whole);
}
static void fold_columns_f32(int fold, double *acc, const void *x, int64_t rows, int64_t stride,
                             int64_t columns) {
    const bool many = columns > 16 * VD; /* few stay in registers */
    if (many && fold == FAC_FOLD_MAX)
        extreme_columns(0, acc, x, rows, stride, columns);
    else if (many && fold == FAC_FOLD_MIN)
        extreme_columns(1, acc, x, rows, stride, columns);
    else
        columns_f32(fold, acc, x, rows, stride, columns);
}

static float top_of(const float *x, int64_t n) {
    vec a = all(-INFINITY), b = a;
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        a = vmax(a, load(x + i));
        b = vmax(b, load(x + i + VL));
    }
    a = vmax(a, b);
    float top = -INFINITY;
    for (int k = 0; k < VL; k++) top = a[k] > top ? a[k] : top;
    for (; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

/* exp(x - top) into y (NULL: nowhere), and their sum.  Every lane adds up some hundred terms in f32
 * at most. */
static double exp_row(const float *x, float *y, int64_t n, float top) {
    double sum = 0;
    int64_t i = 0;
    for (; i + VL <= n;) {
        vec a = all(0), b = a;
        int64_t end = i + CHUNK * VL < n ? i + CHUNK * VL : n;
        for (; i + 2 * VL <= end; i += 2 * VL) {
            const vec p = exp_of(load(x + i) - top), q = exp_of(load(x + i + VL) - top);
            if (y) store(y + i, p), store(y + i + VL, q);
            a += p;
            b += q;
        }
        if (i + VL <= end) {
            const vec p = exp_of(load(x + i) - top);
            if (y) store(y + i, p);
            a += p;
            i += VL;
        }
        sum += total(a + b);
    }
    if (i < n) {
        float rest[VL] = { 0 };
        for (int64_t k = i; k < n; k++) rest[k - i] = x[k] - top;
        store(rest, exp_of(load(rest)));
        for (int64_t k = i; k < n; k++) {
            if (y) y[k] = rest[k - i];
            sum += (double)rest[k - i];
        }
    }
    return sum;
}

#if defined(__AVX2__)
static void put(void *to, const void *from, size_t bytes) {
    char *y = to;
    const char *x = from;
    const size_t line = VL * sizeof(float);
    size_t n = (size_t) - (uintptr_t)y % line;
    if (n > bytes) n = bytes;
    memcpy(y, x, n);
    for (y += n, x += n, bytes -= n; bytes >= line; y += line, x += line, bytes -= line)
        stream((float *)(void *)y, load((const float *)(const void *)x));
    memcpy(y, x, bytes);
}
#define PAST put, FAC_SIMD(fac_transpose_past)
#else
static void put(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
#define PAST NULL, NULL
#endif

enum { LONG_ROW = 4096 }; /* numbers that stay in the first cache */

static void softmax_row_near(const float *x, float *y, int64_t n, bool log_of) {
    const float top = top_of(x, n);
    if (log_of) {
        const float log_sum = (float)log(exp_row(x, NULL, n, top));
        IN_PLACE for (int64_t i = 0; i < n; i++) y[i] = (x[i] - top) - log_sum;
        return;
    }
    const float factor = (float)(1 / exp_row(x, y, n, top));
    for (int64_t i = 0; i < n; i++) y[i] *= factor;
}

static void softmax_row(const float *x, float *y, int64_t n, bool log_of, bool past) {
    float row[LONG_ROW];
    const bool from_here = past && n <= LONG_ROW;
    softmax_row_near(x, from_here ? row : y, n, log_of);
    if (from_here) put(y, row, (size_t)n * sizeof *row);
}

static void softmax_columns(const float *x, float *y, int64_t rows, int64_t stride, int64_t columns,
                            bool log_of) {
    float top[FAC_LINES], e[FAC_LINES];
    double sum[FAC_LINES] = { 0 };
    for (int64_t j = 0; j < columns; j++) top[j] = -INFINITY;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j++)
            top[j] = x[r * stride + j] > top[j] ? x[r * stride + j] : top[j];
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < columns; j++) e[j] = fac_expf(x[r * stride + j] - top[j]);
        if (!log_of) memcpy(y + r * stride, e, (size_t)columns * sizeof *e);
        for (int64_t j = 0; j < columns; j++) sum[j] += (double)e[j];
    }
    for (int64_t j = 0; j < columns; j++) e[j] = (float)(log_of ? log(sum[j]) : 1 / sum[j]);
    for (int64_t r = 0; r < rows; r++) {
        const float *from = x + r * stride;
        float *to = y + r * stride;
        if (log_of)
            IN_PLACE for (int64_t j = 0; j < columns; j++) to[j] = (from[j] - top[j]) - e[j];
        else
            for (int64_t j = 0; j < columns; j++) to[j] *= e[j];
    }
}

static void normalize(const float *x, float *y, int64_t n, float mean, float factor, float shift) {
    IN_PLACE for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor + shift;
}

static void normalize_lanes(const float *x, float *y, int64_t pixels, const float *mean,
                            const float *factor, const float *shift) {
    const vec m = load(mean), f = load(factor), s = load(shift);
    for (int64_t i = 0; i < pixels; i++) store(y + i * VL, (load(x + i * VL) - m) * f + s);
}

static void normalize_each(const float *x, float *y, int64_t n, float mean, float factor,
                           const float *scale, const float *shift) {
    if (scale && shift)
        IN_PLACE for (int64_t i = 0; i < n; i++) y[i] =
            (x[i] - mean) * factor * scale[i] + shift[i];
    else if (scale)
        IN_PLACE for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor * scale[i];
    else if (shift)
        IN_PLACE for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor + shift[i];
    else
        normalize(x, y, n, mean, factor, 0);
}

/* Sums of d = x - about and of d^2.  Every lane adds up some hundred terms in f32, what they make
 * is added up in f64. */
static void sums_row(const float *x, int64_t n, float about, double *sum, double *square) {
    *sum = *square = 0;
    int64_t i = 0;
    while (i + VL <= n) {
        vec a[4] = { { 0 } }, q[4] = { { 0 } };
        const int64_t end = i + CHUNK * VL < n ? i + CHUNK * VL : n;
        for (; i + 4 * VL <= end; i += 4 * VL) UNROLL for (int c = 0; c < 4; c++) {
                const vec d = load(x + i + c * VL) - about;
                a[c] += d;
                q[c] += d * d;
            }
        for (; i + VL <= end; i += VL) {
            const vec d = load(x + i) - about;
            a[0] += d;
            q[0] += d * d;
        }
        *sum += total((a[0] + a[1]) + (a[2] + a[3]));
        *square += total((q[0] + q[1]) + (q[2] + q[3]));
    }
    for (; i < n; i++) {
        const double d = (double)x[i] - (double)about;
        *sum += d;
        *square += d * d;
    }
}

/* Mean and variance in one pass about the mean of the row's beginning, which is near enough unless
 * that is unlike the rest: then in a second one about the mean of the first, so that nothing
 * suffers from a mean that is large against the spread.  What `about` misses is taken out of the
 * sums (Chan, Golub, LeVeque 1983), of which that takes less than three bits. */
static void moments_row(const float *x, int64_t n, double *mean, double *var) {
    enum { BEGINNING = 4 * VL };
    const int64_t first = n < BEGINNING ? n : BEGINNING;
    double sum, square;
    sums_row(x, first, 0, &sum, &square);
    float about = (float)(sum / (double)first);
    for (int pass = 0; pass < 2; pass++) {
        sums_row(x, n, about, &sum, &square);
        const double more = sum / (double)n;
        *mean = (double)about + more;
        *var = square / (double)n - more * more;
        if (more * more <= 4 * *var) return;
        about = (float)*mean;
    }
    if (*var < 0) *var = 0;
}

static double mean_square_row(const float *x, int64_t n) {
    double sum, square;
    sums_row(x, n, 0, &sum, &square);
    return square / (double)n;
}

static double spread_row(const float *x, int64_t n, double mean) {
    dvec a = all_f64(0), b = a, m = all_f64(mean);
    int64_t i = 0;
    for (; i + 2 * VD <= n; i += 2 * VD) {
        dvec s = widen_f32(x + i) - m, t = widen_f32(x + i + VD) - m;
        a += s * s;
        b += t * t;
    }
    a += b;
    double sum = 0;
    for (int k = 0; k < VD; k++) sum += a[k];
    for (; i < n; i++) sum += ((double)x[i] - mean) * ((double)x[i] - mean);
    return sum;
}

/* (bias + factor x)^-beta in place; the usual exponents by square roots. */
static void lrn_powers(float *x, int64_t n, float factor, float bias, float beta) {
    for (int64_t j = 0; j < n; j++) x[j] = bias + factor * x[j];
    if (beta == 0.75f)
        for (int64_t j = 0; j < n; j++) x[j] = 1 / (sqrtf(x[j]) * sqrtf(sqrtf(x[j])));
    else if (beta == 0.5f)
        for (int64_t j = 0; j < n; j++) x[j] = 1 / sqrtf(x[j]);
    else if (beta == 1.0f)
        for (int64_t j = 0; j < n; j++) x[j] = 1 / x[j];
    else
        for (int64_t j = 0; j < n; j++) x[j] = fac_expf(-beta * fac_logf(x[j]));
}

static void lrn_columns(const float *x, int64_t rows, int64_t stride, int64_t columns,
                        const fac_lrn_terms *t, const float *at, float *y) {
    float base[FAC_LINES] = { 0 };
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j++) base[j] += x[r * stride + j] * x[r * stride + j];
    lrn_powers(base, columns, t->factor, t->bias, t->beta);
    for (int64_t j = 0; j < columns; j++) y[j] = at[j] * base[j];
}

/* The squares of all channels of a pixel lie side by side between zeros, so a window is a sum of
 * shifted vectors.  Some pixels at a time: a vector that spans two others can be loaded fast only
 * when those have left the store buffer. */
static void lrn_pixels(const float *x, int64_t x_block, float *y, int64_t y_block, int64_t pixels,
                       int64_t channels, int64_t before, int64_t size, const fac_lrn_terms *t) {
    enum { BATCH = 8 };
    float square[BATCH][FAC_LRN_WINDOW + FAC_LRN_CHANNELS + VL], base[FAC_LRN_CHANNELS + VL];
    int64_t blocks = (channels + VL - 1) / VL, all = blocks * VL;
    memset(square, 0, sizeof square);
    for (; pixels > 0; pixels -= BATCH, x += BATCH * VL, y += BATCH * VL) {
        int64_t n = pixels < BATCH ? pixels : BATCH;
        for (int64_t i = 0; i < n; i++) {
            for (int64_t k = 0; k < blocks; k++) {
                vec v = load(x + k * x_block + i * VL);
                store(square[i] + before + k * VL, v * v);
            }
            for (int64_t c = channels; c < all; c++)
                square[i][before + c] = 0; /* whatever is in the lanes after the last */
        }
        for (int64_t i = 0; i < n; i++) {
            for (int64_t k = 0; k < blocks; k++) {
                vec sum = { 0 };
                for (int64_t j = 0; j < size; j++) sum += load(square[i] + k * VL + j);
                store(base + k * VL, sum);
            }
            lrn_powers(base, all, t->factor, t->bias, t->beta);
            for (int64_t k = 0; k < blocks; k++)
                store(y + k * y_block + i * VL,
                      load(x + k * x_block + i * VL) * load(base + k * VL));
        }
    }
}

extern fac_transpose_kernel FAC_SIMD(fac_transpose_past);
extern const fac_line_grads FAC_SIMD(fac_line_grads);
extern fac_short_sums FAC_SIMD(fac_short_sums);
extern fac_level_kernel FAC_SIMD(fac_level_sums);
extern const fac_halves FAC_SIMD(fac_halves);
extern fac_adam_kernel FAC_SIMD(fac_adam);
extern const fac_integer_kernels FAC_SIMD(fac_integer_kernels);
extern const fac_streams FAC_SIMD(fac_streams);
const fac_streams FAC_SIMD(fac_streams) = { &FAC_SIMD(fac_halves),
                                            &FAC_SIMD(fac_integer_kernels),
                                            { fold_row_f32, fold_columns_f32 },
                                            { row_f64, columns_f64 },
                                            softmax_row,
                                            softmax_columns,
                                            normalize,
                                            normalize_lanes,
                                            normalize_each,
                                            spread_row,
                                            moments_row,
                                            mean_square_row,
                                            lrn_columns,
                                            lrn_pixels,
                                            FAC_SIMD(fac_adam),
                                            PAST,
                                            &FAC_SIMD(fac_line_grads),
                                            FAC_SIMD(fac_short_sums),
                                            FAC_SIMD(fac_level_sums) };
