/* Dot products of rows: see fac_dots in simd_products.h.  A few rows of w pass by, once, and meet
 * some rows of x, which stay near: the sums are vectors in registers, and every row is read from
 * one end to the other, as the hardware's prefetching likes it. */
#include "backends/cpu/simd/vector.h"

#if VL == 16
enum { SET = 3, GROUP = 8 }; /* rows of w, of x: 24 sums of 32 registers */
#else
enum { SET = 2, GROUP = 4 }; /* 8 of 16 */
#endif
enum {
    AHEAD = 384, /* floats that a row of w is asked for before its turn */
    PART = 512 * VL
}; /* of a row: a lane adds up 512 terms, then their sum is put to the rest */

typedef float four __attribute__((vector_size(16)));

INLINE float total(vec v) {
    four sum, part;
    memcpy(&sum, &v, sizeof sum);
    UNROLL for (int i = 4; i < VL; i += 4) {
        memcpy(&part, (const char *)&v + i * 4, sizeof part);
        sum += part;
    }
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* Terms k .. n - 1, as a result or, from the second part of the rows on, added to it. */
INLINE void part(const int rows, const int m, const fac_dots *t, int64_t k, int64_t n,
                 const float *w, const float *x, float *to) {
    const int64_t w_row = t->w_row, x_row = t->x_row, end = t->n;
    const bool before = k > 0;
    vec sum[SET][GROUP];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int i = 0; i < m; i++) sum[r][i] = all(0);
    for (; k + VL <= n; k += VL) {
        const float *ahead = k + AHEAD < end ? w + k + AHEAD : w + rows * w_row + (k + AHEAD - end);
        vec a[SET];
        UNROLL for (int r = 0; r < rows; r++) {
            __builtin_prefetch(ahead + r * w_row, 0, 2);
            a[r] = load(w + r * w_row + k);
        }
        UNROLL for (int i = 0; i < m; i++) {
            const vec b = load(x + i * x_row + k);
            UNROLL for (int r = 0; r < rows; r++) sum[r][i] += a[r] * b;
        }
    }
    if (k < n)
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int i = 0; i < m; i++) sum[r][i] +=
            load_some(w + r * w_row + k, (int)(n - k)) * load_some(x + i * x_row + k, (int)(n - k));
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int i = 0; i < m; i++) {
        float *at = to + r * t->to_row + i;
        *at = (before ? *at : 0) + total(sum[r][i]);
    }
}

INLINE void set(const int rows, const int m, const fac_dots *t, const float *w, const float *x,
                float *to) {
    for (int64_t k = 0; k == 0 || k < t->n; k += PART)
        part(rows, m, t, k, t->n - k < PART ? t->n : k + PART, w, x, to);
}

/* One function for each number of rows of x, for one row of w and for a set. */
typedef void kernel(const fac_dots *t, const float *w, const float *x, float *to);
#define SETS(m)                                                                                    \
    static void one_##m(const fac_dots *t, const float *w, const float *x, float *to) {            \
        set(1, m, t, w, x, to);                                                                    \
    }                                                                                              \
    static void set_##m(const fac_dots *t, const float *w, const float *x, float *to) {            \
        set(SET, m, t, w, x, to);                                                                  \
    }
SETS(1)
SETS(2)
SETS(3)
SETS(4)
#if VL == 16
    SETS(5) SETS(6) SETS(7) SETS(8)
#endif

        static kernel *const kernels[GROUP][2] = {
            { one_1, set_1 }, { one_2, set_2 }, { one_3, set_3 }, { one_4, set_4 },
#if VL == 16
            { one_5, set_5 }, { one_6, set_6 }, { one_7, set_7 }, { one_8, set_8 },
#endif
        };

extern fac_dots_kernel FAC_SIMD(fac_dots);
void FAC_SIMD(fac_dots)(const fac_dots *t) {
    for (int64_t r = 0, here; r < t->rows; r += here) {
        const bool whole = t->rows - r >= SET;
        here = whole ? SET : 1;
        for (int64_t m = 0; m < t->m; m += GROUP) {
            const int64_t some = t->m - m < GROUP ? t->m - m : GROUP;
            kernels[some - 1][whole](t, t->w + r * t->w_row, t->x + m * t->x_row,
                                     t->to + r * t->to_row + m);
        }
    }
}
