/* The one kernel of all gradients of convolution weights: see fac_outer_tile in simd_tile.h.
 *
 * m numbers of x times n vectors of dy stay in registers while pixels pass: a pixel is m n
 * multiply-adds for m + n loads, 8 x 2 with AVX-512, 4 x 2 else, which is also what hides the
 * latency of an addition.  A sum begins at zero in every call and is then added to what is there,
 * so long sums are made of short ones. */
#include "backends/cpu/simd/vector.h"

#if VL > 8
#define MX 8
#define UP_TO_MX(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define MX 4
#define UP_TO_MX(X) X(1) X(2) X(3) X(4)
#endif

enum { AHEAD = 12 }; /* pixels: what of x is not near comes in time */

INLINE void outer(const int m, const int n, const fac_outer_tile *t) {
    vec acc[MX][2];
    UNROLL for (int i = 0; i < m; i++) UNROLL for (int k = 0; k < n; k++) acc[i][k] = all(0);
    for (int64_t plane = 0; plane < t->planes; plane++)
        for (int64_t row = 0; row < t->rows; row++) {
            const float *x = t->x + plane * t->x_plane + row * t->x_row,
                        *y = t->y + plane * t->y_plane + row * t->y_row;
            const char *soon =
                t->soon ? (const char *)(t->soon + plane * t->soon_plane + row * t->soon_row)
                        : (const char *)x;
            const int64_t soon_pixel = t->soon ? 4 * t->soon_pixel : 0;
            for (int64_t q = 0; q < t->pixels; q++, x += t->x_pixel, y += VL, soon += soon_pixel) {
                const vec y0 = load(y), y1 = n > 1 ? load(y + t->y_vector) : y0;
                __builtin_prefetch(x + AHEAD * t->x_pixel, 0, 3);
                __builtin_prefetch(soon, 0, 2);
                UNROLL for (int i = 0; i < m; i++) {
                    const vec v = all(x[i]);
                    acc[i][0] += v * y0;
                    if (n > 1) acc[i][1] += v * y1;
                }
            }
        }
    UNROLL for (int i = 0; i < m; i++) UNROLL for (int k = 0; k < n; k++) {
        float *to = t->to + i * t->to_row + k * VL;
        store(to, load(to) + acc[i][k]);
    }
}

#define KERNEL(m)                                                                                  \
    static void outer_##m##_1(const fac_outer_tile *t) { outer(m, 1, t); }                         \
    static void outer_##m##_2(const fac_outer_tile *t) { outer(m, 2, t); }
#define ENTRY(m) [m] = { outer_##m##_1, outer_##m##_2 },
UP_TO_MX(KERNEL)

extern const fac_outer_table FAC_SIMD(fac_outer);
const fac_outer_table FAC_SIMD(fac_outer) = { MX, { UP_TO_MX(ENTRY) } };
