/* Depthwise and grouped convolution of one row of one channel block: see fac_depthwise in simd.h.
 *
 * Seven outputs at once: each vector of x is loaded once a kernel row and used for all the outputs that it reaches (3 x 3 stride
 * 1: 9 loads for 21 multiply-adds).  3 x 3 and 5 x 5 with stride 1 and 2 are compiled apart, and what gradients of 3 x 3 with
 * stride 2 are made of; the rest goes tap by tap. */
#include "backends/cpu/simd/vector.h"

INLINE void finish(const fac_depthwise *t, int64_t q, vec v) {
    if (t->r) v += load(t->r + q * VL);
    store(t->y + q * t->y_pixel, clip(v, t->lo, t->hi));
}

/* m outputs from q on, a kernel of S columns, `stride` pixels from output to output, all known when compiled. */
INLINE void few(const int m, const int S, const int stride, const int group, const fac_depthwise *t, int64_t q) {
    vec acc[7];
    const vec b = t->bias ? load(t->bias) : all(0);
    UNROLL for (int p = 0; p < m; p++) acc[p] = b;
    const float *x = t->x + q * stride * VL, *w = t->w;
    for (int r = 0; r < t->R; r++, x += t->x_row)
        UNROLL for (int c = 0; c < group; c++, w += S * VL) {
            vec ws[5];
            UNROLL for (int s = 0; s < S; s++) ws[s] = load(w + s * VL);
            UNROLL for (int i = 0; i < (m - 1) * stride + S; i++) {
                const vec v = spread(load(x + i * VL), group, c);
                UNROLL for (int s = 0; s < S; s++)
                    if (i >= s && (i - s) % stride == 0 && (i - s) / stride < m) acc[(i - s) / stride] += ws[s] * v;
            }
        }
    UNROLL for (int p = 0; p < m; p++) finish(t, q + p, acc[p]);
}

/* A last block that is not full overlaps the one before it; rows shorter than a block go one by one. */
INLINE void row(const int S, const int stride, const int group, const fac_depthwise *t) {
    int64_t q = 0;
    if (t->width < 7)
        for (; q < t->width; q++) few(1, S, stride, group, t, q);
    for (; q < t->width; q += 7) few(7, S, stride, group, t, q + 7 <= t->width ? q : t->width - 7);
}

INLINE void any(const int group, const fac_depthwise *t) {
    for (int64_t q = 0; q < t->width; q += 4) {
        const int m = t->width - q < 4 ? (int)(t->width - q) : 4;
        const float *x = t->x + q * t->x_pixel, *w = t->w;
        vec acc[4];
        for (int p = 0; p < 4; p++) acc[p] = t->bias ? load(t->bias) : all(0);
        for (int r = 0; r < t->R; r++)
            UNROLL for (int c = 0; c < group; c++)
                for (int s = 0; s < t->S; s++, w += VL) {
                    const float *xs = x + r * t->x_row + s * t->x_column;
                    const vec ws = load(w);
                    if (m == 4) UNROLL for (int p = 0; p < 4; p++) acc[p] += ws * spread(load(xs + p * t->x_pixel), group, c);
                    else for (int p = 0; p < m; p++) acc[p] += ws * spread(load(xs + p * t->x_pixel), group, c);
                }
        for (int p = 0; p < m; p++) finish(t, q + p, acc[p]);
    }
}

INLINE void three(const int group, const int stride, const fac_depthwise *t) {
    if (stride == 1) row(3, 1, group, t);
    else if (stride == 2) row(3, 2, group, t);
    else any(group, t);
}

extern fac_depthwise_kernel FAC_SIMD(fac_depthwise_row);
void FAC_SIMD(fac_depthwise_row)(const fac_depthwise *t) {
    const int stride = t->x_pixel == VL ? 1 : t->x_pixel == 2 * VL ? 2 : 0, S = t->x_column == VL ? t->S : 0;
    if (t->group == 2) three(2, S == 3 ? stride : 0, t);
#if VL > 4
    else if (t->group == 4) three(4, S == 3 ? stride : 0, t);
#endif
#if VL > 8
    else if (t->group == 8) three(8, S == 3 ? stride : 0, t);
#endif
    else if (S == 1 && stride == 1) row(1, 1, 1, t);
    else if (S == 2 && stride == 1) row(2, 1, 1, t);
    else if (S == 5 && stride == 1) row(5, 1, 1, t);
    else if (S == 5 && stride == 2) row(5, 2, 1, t);
    else three(1, S == 3 ? stride : 0, t);
}
