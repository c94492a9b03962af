/* Winograd's transforms along one row of an image with few channels: see fac_winograd_row in
 * simd_winograd.h.
 *
 * A row of a kernel with stride s is s rows of stride 1, its taps p, p + s, p + 2s ...: each phase
 * p of the taps meets one phase of the pixels.  Four outputs of a phase of r taps come from n = r +
 * 3 pixels and n products by evaluation, as in winograd.c, here in one dimension; all phases have
 * their sums in the same outputs.  7 taps and stride 2 are 7 + 6 products for four outputs instead
 * of 28, 11 taps and stride 4 are 6 + 6 + 6 + 5 instead of 44, 3 taps and stride 1 are 6 instead of
 * 12.  Points by taps:
 *   2   0, +-3/4, 3/2, infinity     3   0, +-1/sqrt 2, +-sqrt 2, infinity     4   0, +-1, +-1/2,
 *       -2, infinity
 * A point c without its negative is a factor (x - c) of all other rows of B^T, so it is taken out
 * of the pixels first. */
#include "backends/cpu/simd/rows.h"

enum { OUT = 4, MOST = 7 }; /* outputs of a tile; points of a phase */

typedef struct points {
    float p, pp, q, qq, c;
} points; /* pairs +-p and +-q with their squares, the lonely one */
INLINE points points_of(const int taps) {
    if (taps == 2) return (points){ 0.75f, 0.5625f, 0, 0, 1.5f };
    if (taps == 3) return (points){ 0.70710678118654752f, 0.5f, 1.41421356237309505f, 2, 0 };
    return (points){ 1, 1, 0.5f, 0.25f, -2 };
}

/* Rows of B^T for 0, +-p (n = 4) or 0, +-p, +-q (n = 6) and infinity */
INLINE void paired(const int n, const points k, const vec *d, vec *o, vec *infinity) {
    if (n == 4) {
        o[0] = d[2] - k.pp * d[0];
        o[1] = d[2] + k.p * d[1];
        o[2] = d[2] - k.p * d[1];
        *infinity = d[3] - k.pp * d[1];
        return;
    }
    const vec even_p = d[4] - k.qq * d[2], odd_p = k.p * (d[3] - k.qq * d[1]);
    const vec even_q = d[4] - k.pp * d[2], odd_q = k.q * (d[3] - k.pp * d[1]);
    const float both = k.pp + k.qq, product = k.pp * k.qq;
    o[0] = d[4] + (product * d[0] - both * d[2]);
    o[1] = even_p + odd_p;
    o[2] = even_p - odd_p;
    o[3] = even_q + odd_q;
    o[4] = even_q - odd_q;
    *infinity = d[5] + (product * d[1] - both * d[3]);
}

/* o = B^T d for r + 3 points */
INLINE void to_points(const int taps, const vec *d, vec *o) {
    const points k = points_of(taps);
    if (taps == 3) {
        paired(6, k, d, o, &o[5]);
        return;
    }
    const int pairs = taps + 1; /* and their 0 */
    vec without[6], other[6];
    UNROLL for (int i = 0; i < pairs + 1; i++) without[i] = d[i + 1] - k.c * d[i];
    paired(pairs + 1, k, without, o, &o[pairs + 1]);
    paired(pairs + 1, k, d, other, &o[pairs]);
}

/* y += A^T x */
INLINE void from_points(const int taps, const vec *x, vec *y) {
    const points k = points_of(taps);
    const int pairs = taps == 2 ? 3 : 5;
    const vec sum_p = x[1] + x[2], dif_p = x[1] - x[2];
    y[0] += x[0] + sum_p;
    y[1] += k.p * dif_p;
    y[2] += k.pp * sum_p;
    y[3] += k.p * k.pp * dif_p + x[taps + 2];
    if (pairs == 5) {
        const vec sum_q = x[3] + x[4], dif_q = x[3] - x[4];
        y[0] += sum_q;
        y[1] += k.q * dif_q;
        y[2] += k.qq * sum_q;
        y[3] += k.q * k.qq * dif_q;
    }
    if (taps != 3) {
        const vec one = x[pairs];
        y[0] += one;
        y[1] += k.c * one;
        y[2] += k.c * k.c * one;
        y[3] += k.c * k.c * k.c * one;
    }
}

INLINE int taps_of(const int taps, const int stride, const int phase) {
    return (taps - phase + stride - 1) / stride;
}

INLINE void in_row(const int taps, const int stride, const float *x, int64_t x_column, float *v,
                   int64_t v_point, int64_t tiles) {
    for (int64_t t = 0; t < tiles; t += VL) {
        float *to = v + t;
        UNROLL for (int phase = 0; phase < stride; phase++) {
            const int n = taps_of(taps, stride, phase) + OUT - 1;
            vec d[MOST], o[MOST];
            UNROLL for (int i = 0; i < n; i++) d[i] =
                load(x + (phase + i % OUT * stride) * x_column + t + i / OUT);
            to_points(n - OUT + 1, d, o);
            UNROLL for (int i = 0; i < n; i++, to += v_point) store(to, o[i]);
        }
    }
}

INLINE void out_row(const int taps, const int stride, const fac_winograd_row_out *w) {
    const vec bias = w->bias ? load(w->bias) : all(0), lo = all(w->lo), hi = all(w->hi);
    const float *m = w->m;
    float *to = w->y;
    for (int64_t left = w->outputs; left > 0; left -= OUT, m += VL, to += OUT * VL) {
        vec y[OUT] = { bias, bias, bias, bias };
        const float *from = m;
        UNROLL for (int phase = 0; phase < stride; phase++) {
            const int n = taps_of(taps, stride, phase) + OUT - 1;
            vec x[MOST];
            UNROLL for (int i = 0; i < n; i++, from += w->m_point) x[i] = load(from);
            from_points(n - OUT + 1, x, y);
        }
        UNROLL for (int i = 0; i < OUT; i++) if (i < left)
            store_or_stream(to + i * VL, vmin(vmax(y[i], lo), hi), w->past);
    }
}

/* m tiles and n vectors of output channels of every point.  The lines that the outputs will go to
 * are brought in meanwhile. */
INLINE void sums(const int m, const int n, const fac_winograd_row_sums *t) {
    const float *w = t->w;
    float *to = t->m;
    const int64_t lines = (int64_t)m * OUT * VL / 16;
    int64_t fetched = 0;
    for (int point = 0; point < t->points; point++, to += t->m_point) {
        vec acc[MR][2];
        UNROLL for (int i = 0; i < m; i++) UNROLL for (int k = 0; k < n; k++) acc[i][k] = all(0);
        for (; fetched < lines * (point + 1) / t->points; fetched++)
            UNROLL for (int k = 0; k < n; k++)
                __builtin_prefetch(t->y + k * t->y_vector + fetched * 16, 1, 3);
        for (int c = 0; c < t->channels; c++) {
            const float *v = t->v + point * t->v_point + c * t->v_plane;
            for (int r = 0; r < t->rows; r++, v += t->v_row, w += n * VL) {
                const vec w0 = load(w), w1 = n > 1 ? load(w + VL) : w0;
                UNROLL for (int i = 0; i < m; i++) {
                    const vec x = all(v[i]);
                    acc[i][0] += w0 * x;
                    if (n > 1) acc[i][1] += w1 * x;
                }
            }
        }
        UNROLL for (int k = 0; k < n; k++) UNROLL for (int i = 0; i < m; i++)
            store(to + (k * m + i) * VL, acc[i][k]);
    }
}

#define SUMS(m, name)                                                                              \
    static void name##_##m##_1(const fac_winograd_row_sums *t) { sums(m, 1, t); }                  \
    static void name##_##m##_2(const fac_winograd_row_sums *t) { sums(m, 2, t); }
#define ENTRY(m, name) [m] = { name##_##m##_1, name##_##m##_2 },
ALL_ROWS(SUMS, sums)

#define KIND(taps, stride)                                                                         \
    static void in_##taps##_##stride(const float *x, int64_t column, float *v, int64_t point,      \
                                     int64_t tiles) {                                              \
        in_row(taps, stride, x, column, v, point, tiles);                                          \
    }                                                                                              \
    static void out_##taps##_##stride(const fac_winograd_row_out *w) { out_row(taps, stride, w); }
KIND(3, 1)
KIND(7, 2)
KIND(11, 4)

extern const fac_winograd_rows FAC_SIMD(fac_winograd_rows);
const fac_winograd_rows FAC_SIMD(fac_winograd_rows) = {
    { { 3, 1, in_3_1, out_3_1 }, { 7, 2, in_7_2, out_7_2 }, { 11, 4, in_11_4, out_11_4 } },
    { ALL_ROWS(ENTRY, sums) }
};
