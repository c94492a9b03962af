/* The transforms of Winograd convolution, one tile of one channel block at a time: see fac_winograd in simd.h.
 *
 * A tile of m x m outputs of an r x r kernel comes from n x n inputs, n = m + r - 1:  y = A^T [ (G g G^T) . (B^T d B) ] A,
 * where the dot multiplies element by element.  That is polynomial multiplication by evaluation (Toom, Cook): rows of B^T are the
 * coefficients of prod over j != i of (x - p_j) for the points p_i, the last row those of the whole product, for the point at
 * infinity; columns of A^T are the powers of p_i.  Points come in pairs +-p, so even and odd coefficients are computed once for
 * both.
 *   n = 4   0, +-1, infinity                       (Lavin and Gray, 2016)
 *   n = 6   0, +-1/sqrt 2, +-sqrt 2, infinity      (about half the error of the usual +-1, +-2) */
#include "backends/cpu/simd/vector.h"

#define P 0.70710678118654752f              /* the two pairs of n = 6, and their squares */
#define Q 1.41421356237309505f
#define PP 0.5f
#define QQ 2.0f

/* o = B^T d */
INLINE void input_column(const int n, const vec *d, vec *o) {
    if (n == 4) {
        o[0] = d[0] - d[2];
        o[1] = d[1] + d[2];
        o[2] = d[2] - d[1];
        o[3] = d[3] - d[1];
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
    const vec sum_p = x[1] + x[2], dif_p = x[1] - x[2];
    if (n == 4) {
        y[0] = x[0] + sum_p;
        y[1] = dif_p + x[3];
        return;
    }
    const vec sum_q = x[3] + x[4], dif_q = x[3] - x[4];
    y[0] = x[0] + sum_p + sum_q;
    y[1] = P * dif_p + Q * dif_q;
    if (m == 2) y[1] += x[5];
    else {
        y[2] = PP * sum_p + QQ * sum_q;
        y[3] = (P * PP * dif_p + Q * QQ * dif_q) + x[5];
    }
}

INLINE void input_tile(const int n, const float *x, int64_t x_row, float *v, int64_t v_point) {
    vec t[6][6];
    UNROLL for (int j = 0; j < n; j++) {
        vec d[6], o[6];
        UNROLL for (int i = 0; i < n; i++) d[i] = load(x + i * x_row + j * VL);
        input_column(n, d, o);
        UNROLL for (int i = 0; i < n; i++) t[i][j] = o[i];
    }
    for (int i = 0; i < n; i++) {
        vec o[6];
        input_column(n, t[i], o);
        UNROLL for (int j = 0; j < n; j++, v += v_point) store(v, o[j]);
    }
}

INLINE void output_tile(const int n, const int m, const fac_winograd_tile *w) {
    vec t[6][4];
    const float *v = w->v;
    for (int i = 0; i < n; i++) {
        vec x[6];
        UNROLL for (int j = 0; j < n; j++, v += w->v_point) x[j] = load(v);
        output_column(n, m, x, t[i]);
    }
    const vec bias = w->bias ? load(w->bias) : all(0);
    UNROLL for (int j = 0; j < m; j++) {
        vec x[6], o[4];
        UNROLL for (int i = 0; i < n; i++) x[i] = t[i][j];
        output_column(n, m, x, o);
        if (j >= w->columns) break;
        UNROLL for (int i = 0; i < m; i++) {
            if (i >= w->rows) break;
            vec y = o[i] + bias;
            if (w->r) y += load(w->r + i * w->r_row + j * VL);
            store(w->y + i * w->y_row + j * VL, clip(y, w->lo, w->hi));
        }
    }
}

static void in4(const float *x, int64_t row, float *v, int64_t point) { input_tile(4, x, row, v, point); }
static void in6(const float *x, int64_t row, float *v, int64_t point) { input_tile(6, x, row, v, point); }
static void out4_2(const fac_winograd_tile *t) { output_tile(4, 2, t); }
static void out6_4(const fac_winograd_tile *t) { output_tile(6, 4, t); }
static void out6_2(const fac_winograd_tile *t) { output_tile(6, 2, t); }

extern const fac_winograd FAC_SIMD(fac_winograd)[FAC_WINOGRADS];
const fac_winograd FAC_SIMD(fac_winograd)[FAC_WINOGRADS] = {
    [FAC_WINOGRAD_2_3] = { 2, 3, in4, out4_2 },
    [FAC_WINOGRAD_4_3] = { 4, 3, in6, out6_4 },
    [FAC_WINOGRAD_2_5] = { 2, 5, in6, out6_2 } };
