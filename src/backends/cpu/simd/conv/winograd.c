/* The transforms of Winograd convolution, one tile of one channel block at a time: see fac_winograd
 * in simd_winograd.h.
 *
 * A tile of m x m outputs of an r x r kernel comes from n x n inputs, n = m + r - 1:  y = A^T [ (G
 * g G^T) . (B^T d B) ] A, where the dot multiplies element by element.  That is polynomial
 * multiplication by evaluation (Toom, Cook): rows of B^T are the coefficients of prod over j != i
 * of (x - p_j) for the points p_i, the last row those of the whole product, for the point at
 * infinity; columns of A^T are the powers of p_i.  Points come in pairs +-p, so even and odd
 * coefficients are computed once for both.
 *   n = 4   0, +-1, infinity                       (Lavin and Gray, 2016)
 *   n = 6   0, +-1/sqrt 2, +-sqrt 2, infinity      (about half the error of the usual +-1, +-2)
 *   n = 8   0, +-1/2, +-1, +-2, infinity           (for outputs only, no gradients)
 * A 3 x 3 kernel of stride 2 is the sum of four convolutions of stride 1: taps 0 and 2 see the even
 * rows of the window, tap 1 the odd ones, and columns likewise.  One tap needs no point at
 * infinity, and its rows of B^T at the others are those of two taps: there are four planes at most
 * points, two at one infinity, one at both, whose products add up before they go back.
 *   n = 3   +-1, infinity                          (2 x 2 outputs of stride 2)
 *   n = 5   +-5/8, +-11/8, infinity                (4 x 4) */
#include "backends/cpu/simd/widen.h"

#define P 0.70710678118654752f /* the two pairs of n = 6, and their squares */
#define Q 1.41421356237309505f
#define PP 0.5f
#define QQ 2.0f
#define P5 0.625f /* those of n = 5 */
#define Q5 1.375f

enum { FAR = 8192 }; /* floats from point to point of transformed filters */
/* The row of B^T for a point p of n = 8 whose square is pp, given the other two, bb and cc, and the
 * row for -p. */
INLINE void input_pair(const float p, const float bb, const float cc, const vec *d, vec *o) {
    const vec even = d[6] + (bb * cc * d[2] - (bb + cc) * d[4]),
              odd = p * (d[5] + (bb * cc * d[1] - (bb + cc) * d[3]));
    o[0] = even + odd;
    o[1] = even - odd;
}

/* o = B^T d */
INLINE void input_column(const int n, const vec *d, vec *o) {
    if (n == 8) { /* 21/4 is the sum of the squares 1/4, 1, 4, and of their products two by two */
        o[0] = (d[6] - d[0]) + 5.25f * (d[2] - d[4]);
        input_pair(0.5f, 1, 4, d, o + 1);
        input_pair(1, 0.25f, 4, d, o + 3);
        input_pair(2, 0.25f, 1, d, o + 5);
        o[7] = (d[7] - d[1]) + 5.25f * (d[3] - d[5]);
        return;
    }
    if (n == 4) {
        o[0] = d[0] - d[2];
        o[1] = d[1] + d[2];
        o[2] = d[2] - d[1];
        o[3] = d[3] - d[1];
        return;
    }
    if (n == 3) {
        o[0] = d[0] + d[1];
        o[1] = d[0] - d[1];
        o[2] = d[2] - d[0];
        return;
    }
    if (n == 5) {
        const vec even_p = d[3] - Q5 * Q5 * d[1], odd_p = P5 * (d[2] - Q5 * Q5 * d[0]);
        const vec even_q = d[3] - P5 * P5 * d[1], odd_q = Q5 * (d[2] - P5 * P5 * d[0]);
        o[0] = odd_p + even_p;
        o[1] = odd_p - even_p;
        o[2] = odd_q + even_q;
        o[3] = odd_q - even_q;
        o[4] = P5 * P5 * Q5 * Q5 * d[0] + (d[4] - (P5 * P5 + Q5 * Q5) * d[2]);
        return;
    }
    const vec even_p = d[4] - QQ * d[2], odd_p = P * (d[3] - QQ * d[1]);
    const vec even_q = d[4] - PP * d[2], odd_q = Q * (d[3] - PP * d[1]);
    o[0] = d[0] + (d[4] - (PP + QQ) * d[2]);
    o[1] = even_p + odd_p;
    o[2] = even_p - odd_p;
    o[3] = even_q + odd_q;
    o[4] = even_q - odd_q;
    o[5] = d[1] + (d[5] - (PP + QQ) * d[3]);
}

/* y = A^T x */
INLINE void output_column(const int n, const int m, const vec *x, vec *y) {
    const int p = n % 2 ? 0 : 1, q = p + 2; /* without the point 0 */
    const vec sum_p = x[p] + x[p + 1], dif_p = x[p] - x[p + 1];
    if (n < 5) {
        y[0] = n == 4 ? x[0] + sum_p : sum_p;
        y[1] = dif_p + x[n - 1];
        return;
    }
    const vec sum_q = x[q] + x[q + 1], dif_q = x[q] - x[q + 1];
    if (n == 8) { /* 4 outputs; p, q, r are 1/2, 1, 2 */
        const vec sum_r = x[5] + x[6], dif_r = x[5] - x[6];
        y[0] = (x[0] + sum_p) + (sum_q + sum_r);
        y[1] = 0.5f * dif_p + (dif_q + 2 * dif_r);
        y[2] = 0.25f * sum_p + (sum_q + 4 * sum_r);
        y[3] = (0.125f * dif_p + x[7]) + (dif_q + 8 * dif_r);
        return;
    }
    const float p1 = n == 5 ? P5 : P;
    const float p2 = n == 5 ? P5 * P5 : PP;
    const float q1 = n == 5 ? Q5 : Q;
    const float q2 = n == 5 ? Q5 * Q5 : QQ;
    y[0] = n == 6 ? x[0] + sum_p + sum_q : sum_p + sum_q;
    y[1] = p1 * dif_p + q1 * dif_q;
    if (m == 2)
        y[1] += x[5];
    else {
        y[2] = p2 * sum_p + q2 * sum_q;
        y[3] = (p1 * p2 * dif_p + q1 * q2 * dif_q) + x[n - 1];
    }
}

INLINE void input_tile(const int n, const float *x, int64_t x_row, float *v, int64_t v_point) {
    vec t[8][8];
    UNROLL for (int j = 0; j < n; j++) {
        vec d[8], o[8];
        UNROLL for (int i = 0; i < n; i++) d[i] = load(x + i * x_row + j * VL);
        input_column(n, d, o);
        UNROLL for (int i = 0; i < n; i++) t[i][j] = o[i];
    }
    for (int i = 0; i < n; i++) {
        vec o[8];
        input_column(n, t[i], o);
        UNROLL for (int j = 0; j < n; j++, v += v_point) store(v, o[j]);
    }
}

/* The same of stride 2, from 2 n - 1 x 2 n - 1 inputs: the rows and columns that begin at 0, then
 * those that begin at 1. */
INLINE void strided_input_tile(const int n, const float *x, int64_t x_row, float *v,
                               int64_t v_point, int64_t v_plane) {
    for (int down = 0; down < 2; down++) {
        UNROLL for (int across = 0; across < 2; across++) {
            vec t[5][5];
            UNROLL for (int j = 0; j < n - across; j++) {
                vec d[5], o[5];
                UNROLL for (int i = 0; i < n - 1; i++) d[i] =
                    load(x + (2 * i + down) * x_row + (2 * j + across) * VL);
                d[n - 1] = down ? all(0) : load(x + (2 * n - 2) * x_row + (2 * j + across) * VL);
                input_column(n, d, o);
                UNROLL for (int i = 0; i < n; i++) t[i][j] = o[i];
            }
            for (int i = 0; i < n - down; i++) {
                vec o[5];
                t[i][n - 1] = across ? all(0) : t[i][n - 1];
                input_column(n, t[i], o);
                UNROLL for (int j = 0; j < n - across; j++) {
                    const int inside = i == n - 1 ? across : 2 * down + across;
                    const int plane = j == n - 1 ? down : inside;
                    store(v + (i * n + j) * v_point + plane * v_plane, o[j]);
                }
            }
        }
    }
}

/* whole: all outputs lie inside of the image; pooled: the largest of each 2 x 2 are the outputs */
INLINE void output_tile(const int n, const int m, const int whole, const int pooled,
                        const fac_winograd_tile *w) {
    vec t[8][4];
    const float *v = w->v, *r = w->r;
    for (int i = 0; i < n; i++) {
        vec x[8];
        UNROLL for (int j = 0; j < n; j++, v += w->v_point) x[j] = load(v);
        output_column(n, m, x, t[i]);
    }
    const vec bias = w->bias ? load(w->bias) : all(0), lo = all(w->lo), hi = all(w->hi);
    const int times = pooled ? 2 : 1;
    const int rows = whole ? m / times : w->rows;
    const int columns = whole ? m / times : w->columns;
    const int64_t y_row = w->y_row, r_row = w->r_row, mask_row = w->mask_row;
    const float *mask = w->mask;
    const vec low = all(w->mask_lo);
    float *to = w->y;
    vec left[2]; /* pooled: the larger of each two of the column before */
    UNROLL for (int j = 0; j < m; j++) {
        vec x[8], o[4];
        UNROLL for (int i = 0; i < n; i++) x[i] = t[i][j];
        output_column(n, m, x, o);
        if (pooled) {
            UNROLL for (int i = 0; i < m / 2; i++) {
                const vec down = larger(o[2 * i], o[2 * i + 1]);
                o[i] = j % 2 ? larger(left[i], down) : down;
                left[i] = down;
            }
            if (j % 2 == 0) continue;
        }
        const int column = j / times;
        if (column >= columns) break;
        UNROLL for (int i = 0; i < m / times; i++) {
            if (i >= rows) break;
            vec y = o[i] + bias;
            if (r && !pooled) y += load(r + i * r_row + column * VL);
            y = vmin(vmax(y, lo), hi);
            if (mask && !pooled)
                y = (vec)((ivec)y & ~(load(mask + i * mask_row + column * VL) <= low));
            store_or_stream(to + i * y_row + column * VL, y, w->past);
        }
    }
}

INLINE void output(const int n, const int m, const int pooled, const fac_winograd_tile *w) {
    const int all_of = pooled ? m / 2 : m;
    if (w->rows == all_of && w->columns == all_of)
        output_tile(n, m, 1, pooled, w);
    else
        output_tile(n, m, 0, pooled, w);
}

/* x = A y, the adjoint of output_column */
INLINE void output_grad_column(const int n, const int m, const vec *y, vec *x) {
    const vec even_p = m > 2 ? y[0] + PP * y[2] : y[0];
    const vec one_p = n > 4 ? P * y[1] : y[1];
    const vec odd_p = m > 2 ? P * (y[1] + PP * y[3]) : one_p;
    x[0] = y[0];
    x[1] = even_p + odd_p;
    x[2] = even_p - odd_p;
    x[n - 1] = y[m - 1];
    if (n == 4) return;
    const vec even_q = m > 2 ? y[0] + QQ * y[2] : y[0],
              odd_q = m > 2 ? Q * (y[1] + QQ * y[3]) : Q * y[1];
    x[3] = even_q + odd_q;
    x[4] = even_q - odd_q;
}

INLINE void output_grad_tile(const int n, const int m, const float *dy, int64_t dy_row, float *v,
                             int64_t v_point) {
    vec t[6][4];
    UNROLL for (int j = 0; j < m; j++) {
        vec y[4], x[6];
        UNROLL for (int i = 0; i < m; i++) y[i] = load(dy + i * dy_row + j * VL);
        output_grad_column(n, m, y, x);
        UNROLL for (int i = 0; i < n; i++) t[i][j] = x[i];
    }
    for (int i = 0; i < n; i++) {
        vec x[6];
        output_grad_column(n, m, t[i], x);
        UNROLL for (int j = 0; j < n; j++, v += v_point) store(v, x[j]);
    }
}

/* To memory past the caches, where a vector is a whole line; p is aligned. */
INLINE void store_past(float *p, vec v) {
#if defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#else
    store(p, v);
#endif
}

/* Both halves of a vector, rounded. */
INLINE vec narrow(dvec low, dvec high) {
#if defined(__AVX512F__)
    return (vec)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)low)),
                                   _mm512_cvtpd_ps((__m512d)high), 1);
#elif defined(__AVX2__)
    return (vec)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)low)),
                                     _mm256_cvtpd_ps((__m256d)high), 1);
#else
    const hvec half[2] = { __builtin_convertvector(low, hvec),
                           __builtin_convertvector(high, hvec) };
    vec v;
    memcpy(&v, half, sizeof v);
    return v;
#endif
}

#include "backends/cpu/simd/conv/winograd_filters.h"

static void in4(const float *x, int64_t row, float *v, int64_t point, int64_t plane) {
    (void)plane, input_tile(4, x, row, v, point);
}
static void in6(const float *x, int64_t row, float *v, int64_t point, int64_t plane) {
    (void)plane, input_tile(6, x, row, v, point);
}
static void in8(const float *x, int64_t row, float *v, int64_t point, int64_t plane) {
    (void)plane, input_tile(8, x, row, v, point);
}
static void in3(const float *x, int64_t row, float *v, int64_t point, int64_t plane) {
    strided_input_tile(3, x, row, v, point, plane);
}
static void in5(const float *x, int64_t row, float *v, int64_t point, int64_t plane) {
    strided_input_tile(5, x, row, v, point, plane);
}
static void out3_2(const fac_winograd_tile *t) { output(3, 2, 0, t); }
static void out5_4(const fac_winograd_tile *t) { output(5, 4, 0, t); }
static void out4_2(const fac_winograd_tile *t) { output(4, 2, 0, t); }
static void pool4_2(const fac_winograd_tile *t) { output(4, 2, 1, t); }
static void out6_4(const fac_winograd_tile *t) { output(6, 4, 0, t); }
static void pool6_4(const fac_winograd_tile *t) { output(6, 4, 1, t); }
static void out6_2(const fac_winograd_tile *t) { output(6, 2, 0, t); }
static void pool6_2(const fac_winograd_tile *t) { output(6, 2, 1, t); }
static void out8_4(const fac_winograd_tile *t) { output(8, 4, 0, t); }
static void pool8_4(const fac_winograd_tile *t) { output(8, 4, 1, t); }
static void filter4_3(const fac_winograd_matrix *G, const float *g, float *u, int64_t p) {
    filter_tile(4, 3, G, g, u, p);
}
static void filter6_3(const fac_winograd_matrix *G, const float *g, float *u, int64_t p) {
    filter_tile(6, 3, G, g, u, p);
}
static void filter6_5(const fac_winograd_matrix *G, const float *g, float *u, int64_t p) {
    filter_tile(6, 5, G, g, u, p);
}
static void filter8_5(const fac_winograd_matrix *G, const float *g, float *u, int64_t p) {
    filter_tile(8, 5, G, g, u, p);
}
static void filter3(const fac_winograd_matrix *G, const float *g, float *u, int64_t p) {
    strided_filter_tile(3, G, g, u, p);
}
static void filter5(const fac_winograd_matrix *G, const float *g, float *u, int64_t p) {
    strided_filter_tile(5, G, g, u, p);
}
static void out_grad4_2(const float *dy, int64_t row, float *v, int64_t point) {
    output_grad_tile(4, 2, dy, row, v, point);
}
static void out_grad6_4(const float *dy, int64_t row, float *v, int64_t point) {
    output_grad_tile(6, 4, dy, row, v, point);
}
static void out_grad6_2(const float *dy, int64_t row, float *v, int64_t point) {
    output_grad_tile(6, 2, dy, row, v, point);
}
static void grad4_3(const fac_winograd_matrix *G, const float *u, int64_t p, float *dg) {
    filter_grad_tile(4, 3, G, u, p, dg);
}
static void grad6_3(const fac_winograd_matrix *G, const float *u, int64_t p, float *dg) {
    filter_grad_tile(6, 3, G, u, p, dg);
}
static void grad6_5(const fac_winograd_matrix *G, const float *u, int64_t p, float *dg) {
    filter_grad_tile(6, 5, G, u, p, dg);
}

extern const fac_winograd FAC_SIMD(fac_winograd)[FAC_WINOGRADS];
const fac_winograd FAC_SIMD(fac_winograd)[FAC_WINOGRADS] = {
    [FAC_WINOGRAD_2_3] = { 2, 3, 1, in4, out4_2, pool4_2, filter4_3, out_grad4_2, grad4_3 },
    [FAC_WINOGRAD_4_3] = { 4, 3, 1, in6, out6_4, pool6_4, filter6_3, out_grad6_4, grad6_3 },
    [FAC_WINOGRAD_2_5] = { 2, 5, 1, in6, out6_2, pool6_2, filter6_5, out_grad6_2, grad6_5 },
    [FAC_WINOGRAD_4_5] = { 4, 5, 1, in8, out8_4, pool8_4, filter8_5, NULL, NULL },
    [FAC_WINOGRAD_2_3_STRIDED] = { 2, 3, 2, in3, out3_2, NULL, filter3, NULL, NULL },
    [FAC_WINOGRAD_4_3_STRIDED] = { 4, 3, 2, in5, out5_4, NULL, filter5, NULL, NULL }
};
