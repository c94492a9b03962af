/* Pooling of one row of one channel block: see fac_pool_row in simd.h.
 *
 * A window is taken apart: first the rows, once for each column of x, then the columns of that (3 x 3, stride 2: 2 + 1 maxima an
 * output for the rows instead of 6). */
#include <math.h>
#include "backends/cpu/simd/vector.h"

enum { PART = 128 };                    /* columns of x at a time: 8 KiB of the stack with the widest vectors */

/* The larger of the two; NaN wins. */
INLINE vec above(vec a, vec b) {
    const ivec odd = b != b;
    return (vec)(((ivec)b & odd) | ((ivec)vmax(a, b) & ~odd));
}
INLINE vec join(const int average, vec a, vec b) { return average ? a + b : above(a, b); }

/* Outputs q .. last - 1, which see no column outside x0 .. x0 + PART. */
INLINE void part(const int average, const fac_pool_row *t, int64_t q, int64_t last) {
    vec down[PART];
    const int64_t S = t->S, end = (last - 1) * t->stride + (S - 1) * t->dilation - t->pad + 1;
    int64_t x0 = q * t->stride - t->pad, x1 = end < t->in ? end : t->in;
    if (x0 < 0) x0 = 0;
    for (int64_t i = x0; i < x1; i++) {
        const float *x = t->x + i * VL;
        vec v = load(x);
        for (int r = 1; r < t->rows; r++) v = join(average, v, load(x + r * t->x_row));
        down[i - x0] = v;
    }
    for (; q < last; q++) {
        const int64_t at = q * t->stride - t->pad;
        vec v = all(average ? 0 : -INFINITY);
        for (int64_t s = 0; s < S; s++) {
            const int64_t i = at + s * t->dilation;
            if (i >= 0 && i < x1) v = join(average, v, down[i - x0]);
        }
        store(t->y + q * VL, average ? v / all(t->down * t->across[q]) : v);
    }
}

extern fac_pool_kernel FAC_SIMD(fac_pool);
void FAC_SIMD(fac_pool)(const fac_pool_row *t) {
    const int64_t span = (int64_t)(t->S - 1) * t->dilation + 1;
    const int64_t most = (PART - span) / t->stride + 1;         /* outputs of a part; the solver saw to span <= PART */
    for (int64_t q = 0; q < t->width; q += most) {
        const int64_t last = q + most < t->width ? q + most : t->width;
        if (t->rows == 0)
            for (int64_t i = q; i < last; i++) store(t->y + i * VL, all(t->across ? 0 : -INFINITY));
        else if (t->across) part(1, t, q, last);
        else part(0, t, q, last);
    }
}
