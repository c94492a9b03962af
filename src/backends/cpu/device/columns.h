/* Rows of the matrix of columns (im2col: Chellapilla et al. 2006): what one tap of a kernel sees of
 * the pixels of a plain image. */
#ifndef FACULA_CPU_COLUMNS_H
#define FACULA_CPU_COLUMNS_H
#include <string.h>
#include "base/clamp.h"
#include "ops/conv.h"

/* n floats; of few, which most pieces of rows have, without a call. */
static inline void fac_copy_piece(float *restrict to, const float *restrict from, int64_t n) {
    enum { HALF = 4, SOME = 8, MANY = 64 };
    if (n >= MANY) {
        memcpy(to, from, (size_t)n * sizeof *to);
    } else if (n >= SOME) {
        for (int64_t i = 0; i + SOME <= n; i += SOME) memcpy(to + i, from + i, SOME * sizeof *to);
        memcpy(to + n - SOME, from + n - SOME, SOME * sizeof *to);
    } else if (n >= HALF) {
        memcpy(to, from, HALF * sizeof *to);
        memcpy(to + n - HALF, from + n - HALF, HALF * sizeof *to);
    } else if (n > 0) {
        to[0] = from[0];
        if (n > 1) to[n / 2] = from[n / 2];
        to[n - 1] = from[n - 1];
    }
}

/* `n` pixels of one tap whose outputs first..last-1 lie inside of x (fac_window_inside): output
 * columns q.. of output row (o, p), whose input row begins at x (NULL: it lies in the padding). */
static inline void fac_tap_span(const fac_conv_geom *g, const float *x, int64_t q, int64_t n,
                                int64_t s, int64_t first, int64_t last, float *to) {
    if (!x) {
        memset(to, 0, (size_t)n * sizeof *to);
        return;
    }
    int64_t step = g->stride[2];
    first = fac_clamp(first, q, q + n);
    last = fac_clamp(last, first, q + n);
    const float *from = x + s * g->dilation[2] - g->pad[2];
    for (int64_t i = q; i < first; i++) to[i - q] = 0;
    if (step == 1)
        fac_copy_piece(to + (first - q), from + first, last - first);
    else
        for (int64_t i = first; i < last; i++) to[i - q] = from[i * step];
    for (int64_t i = last; i < q + n; i++) to[i - q] = 0;
}

static inline void fac_tap_row(const fac_conv_geom *g, const float *x, int64_t q, int64_t n,
                               int64_t s, float *to) {
    fac_window w = fac_conv_window(g, 2);
    int64_t first, last;
    fac_window_inside(&w, s, &first, &last);
    fac_tap_span(g, x, q, n, s, first, last, to);
}

/* The adjoint: adds those pixels to the row of x that they were taken from (NULL: nothing). */
static inline void fac_tap_row_add(const fac_conv_geom *g, float *x, int64_t q, int64_t n,
                                   int64_t s, const float *from) {
    if (!x) return;
    fac_window w = fac_conv_window(g, 2);
    int64_t first, last, step = w.stride;
    fac_window_inside(&w, s, &first, &last);
    first = first < q ? q : first;
    last = last > q + n ? q + n : last;
    x += s * w.dilation - w.pad;
    if (step == 1)
        for (int64_t i = first; i < last; i++) x[i] += from[i - q];
    else
        for (int64_t i = first; i < last; i++) x[i * step] += from[i - q];
}

/* Where the input row of output row (o, p) and kernel row (t, r) begins, counted from the first
 * element of its channel; -1 in the padding. */
static inline int64_t fac_input_row(const fac_conv_geom *g, int64_t o, int64_t p, int64_t t,
                                    int64_t r) {
    int64_t z = o * g->stride[0] + t * g->dilation[0] - g->pad[0],
            y = p * g->stride[1] + r * g->dilation[1] - g->pad[1];
    return z < 0 || z >= g->D || y < 0 || y >= g->H ? -1 : (z * g->H + y) * g->W;
}

/* A 1 x 1 kernel with stride 1 on everything sees the image as one row. */
static inline void fac_conv_flatten(fac_conv_geom *g) {
    for (int k = 0; k < 3; k++)
        if (g->kernel[k] != 1 || g->stride[k] != 1 || g->pad[k] || g->out[k] != g->in[k]) return;
    g->W = g->Q = g->D * g->H * g->W;
    g->D = g->H = g->O = g->P = 1;
}
#endif
