/* Depthwise and grouped convolution of rows of one channel block: see fac_depthwise in
 * simd_images.h.
 *
 * Seven outputs at once: each vector of x is loaded once a kernel row and used for all the outputs
 * that it reaches (3 x 3 stride 1: 9 loads for 21 multiply-adds).  Kernels of 3, 5 and 7 columns
 * with stride 1 and 2 are compiled apart, and what gradients of 3 x 3 with stride 2 are made of;
 * the rest goes tap by tap. */
#include "backends/cpu/simd/vector.h"

/* What stays the same along a row; it is read before anything is stored: stores might change *t for
 * all that the compiler knows. */
typedef struct ends {
    const float *r;
    float *y;
    int64_t y_pixel;
    vec lo, hi;
} ends;

INLINE ends ends_of(const fac_depthwise *t) {
    return (ends){ t->r, t->y, t->y_pixel, all(t->lo), all(t->hi) };
}
INLINE void finish(const ends *e, int64_t q, vec v) {
    if (e->r) v += load(e->r + q * VL);
    store(e->y + q * e->y_pixel, vmin(vmax(v, e->lo), e->hi));
}

/* To the next row of outputs: where its x begins. */
INLINE const float *next_row(const fac_depthwise *t, const float *x, ends *e) {
    e->y += t->y_next;
    if (e->r) e->r += t->r_next;
    return x + t->x_next;
}

/* 3 x 3 weights stay in registers where there are enough of them. */
#define KEPT(R, S, group) ((R) == 3 && (S) == 3 && (group) == 1 && VL > 8)

/* m outputs from q on, a kernel of R x S, `stride` pixels from output to output, all known when
 * compiled but R, which is t->R if it is 0. */
INLINE void few(const int m, const int R, const int S, const int stride, const int group,
                const fac_depthwise *t, const float *x, const ends *e, vec bias, const vec *kept,
                int64_t q) {
    vec acc[7];
    UNROLL for (int p = 0; p < m; p++) acc[p] = bias;
    const float *w = t->w;
    x += q * stride * VL;
    const int64_t x_row = t->x_row, x_back = t->x_row - t->x_ring;
    const int rows = R ? R : t->R, x_end = t->x_end;
    UNROLL for (int r = 0; r < rows; x += ++r == x_end ? x_back : x_row)
        UNROLL for (int c = 0; c < group; c++, w += S * VL) {
        vec ws[7];
        UNROLL for (int s = 0; s < S; s++) ws[s] =
            KEPT(R, S, group) ? kept[r * S + s] : load(w + s * VL);
        UNROLL for (int i = 0; i < (m - 1) * stride + S; i++) {
            const vec v = held(spread(load(x + i * VL), group, c));
            UNROLL for (int s = 0; s < S;
                        s++) if (i >= s && (i - s) % stride == 0 && (i - s) / stride < m)
                acc[(i - s) / stride] += ws[s] * v;
        }
    }
    UNROLL for (int p = 0; p < m; p++) {
        finish(e, q + p, acc[p]);
        if (p + 1 < m) store_first(&acc[p + 1]);
    }
}

/* A last block that is not full overlaps the one before it; rows shorter than a block go one by
 * one. */
INLINE void row(const int R, const int S, const int stride, const int group,
                const fac_depthwise *t) {
    ends e = ends_of(t);
    const vec bias = t->bias ? load(t->bias) : all(0);
    const int64_t width = t->width;
    const float *x = t->x;
    vec kept[9];
    UNROLL for (int k = 0; k < 9; k++) kept[k] = KEPT(R, S, group) ? load(t->w + k * VL) : bias;
    for (int64_t left = t->rows;; x = next_row(t, x, &e)) {
        if (width < 7)
            for (int64_t q = 0; q < width; q++)
                few(1, R, S, stride, group, t, x, &e, bias, kept, q);
        else
            for (int64_t q = 0; q < width; q += 7)
                few(7, R, S, stride, group, t, x, &e, bias, kept, q + 7 <= width ? q : width - 7);
        if (--left <= 0) return;
    }
}

INLINE void any_row(const int group, const fac_depthwise *t, const float *from, const ends *e) {
    for (int64_t q = 0; q < t->width; q += 4) {
        const int m = t->width - q < 4 ? (int)(t->width - q) : 4;
        const float *x = from + q * t->x_pixel, *w = t->w;
        vec acc[4];
        for (int p = 0; p < 4; p++) acc[p] = t->bias ? load(t->bias) : all(0);
        for (int r = 0; r < t->R; x += ++r == t->x_end ? t->x_row - t->x_ring : t->x_row)
            UNROLL for (int c = 0; c < group; c++) for (int s = 0; s < t->S; s++, w += VL) {
                const float *xs = x + s * t->x_column;
                const vec ws = load(w);
                if (m == 4)
                    UNROLL for (int p = 0; p < 4; p++) acc[p] +=
                        ws * spread(load(xs + p * t->x_pixel), group, c);
                else
                    for (int p = 0; p < m; p++)
                        acc[p] += ws * spread(load(xs + p * t->x_pixel), group, c);
            }
        for (int p = 0; p < m; p++) finish(e, q + p, acc[p]);
    }
}

INLINE void any(const int group, const fac_depthwise *t) {
    ends e = ends_of(t);
    const float *x = t->x;
    for (int64_t left = t->rows;; x = next_row(t, x, &e)) {
        any_row(group, t, x, &e);
        if (--left <= 0) return;
    }
}

INLINE void three(const int group, const int stride, const fac_depthwise *t) {
    if (stride == 1)
        t->R == 3 ? row(3, 3, 1, group, t) : row(0, 3, 1, group, t);
    else if (stride == 2)
        t->R == 3 ? row(3, 3, 2, group, t) : row(0, 3, 2, group, t);
    else
        any(group, t);
}

extern fac_depthwise_kernel FAC_SIMD(fac_depthwise_row);
void FAC_SIMD(fac_depthwise_row)(const fac_depthwise *t) {
    const int stride = t->x_pixel == VL       ? 1
                       : t->x_pixel == 2 * VL ? 2
                                              : 0,
              S = t->x_column == VL ? t->S : 0;
    if (t->group == 2) three(2, S == 3 ? stride : 0, t);
#if VL > 4
    else if (t->group == 4)
        three(4, S == 3 ? stride : 0, t);
#endif
#if VL > 8
    else if (t->group == 8)
        three(8, S == 3 ? stride : 0, t);
#endif
    else if (S == 1 && stride == 1)
        row(0, 1, 1, 1, t);
    else if (S == 2 && stride == 1)
        row(0, 2, 1, 1, t);
    else if (S == 5 && stride == 1)
        row(0, 5, 1, 1, t);
    else if (S == 5 && stride == 2)
        row(0, 5, 2, 1, t);
    else if (S == 7 && stride == 1)
        row(0, 7, 1, 1, t);
    else if (S == 7 && stride == 2)
        row(0, 7, 2, 1, t);
    else
        three(1, S == 3 ? stride : 0, t);
}
