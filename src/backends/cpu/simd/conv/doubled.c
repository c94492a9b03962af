/* Transposed convolutions that double an image, without gaps and overlaps: see fac_doubled.
 *
 * Vectors are pixels of x, each weight is one number in all lanes: four taps of three vectors are
 * twelve sums, which with the pixels and a weight fill sixteen registers.  Of the sums of a row's
 * two taps every second pixel of y is made. */
#include "backends/cpu/simd/vector.h"

enum { TAPS = 4, VECTORS = FAC_DOUBLED_VECTORS };

#if VL == 16
#define LOWER(a, b)                                                                                \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define UPPER(a, b)                                                                                \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif VL == 8
#define LOWER(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define LOWER(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define UPPER(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

extern fac_doubled_kernel FAC_SIMD(fac_doubled);
void FAC_SIMD(fac_doubled)(const fac_doubled *d) {
    const float *x = d->x, *w = d->w;
    vec sum[TAPS][VECTORS];
    UNROLL for (int t = 0; t < TAPS; t++) UNROLL for (int v = 0; v < VECTORS; v++) sum[t][v] =
        all(d->bias);
    for (int64_t c = 0; c < d->channels; c++, x += VECTORS * VL, w += TAPS) {
        vec pixels[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) pixels[v] = held(load(x + v * VL));
        UNROLL for (int t = 0; t < TAPS; t++) {
            const vec weight = held(all(w[t]));
            UNROLL for (int v = 0; v < VECTORS; v++) sum[t][v] =
                add_product(sum[t][v], pixels[v], weight);
        }
    }
    UNROLL for (int row = 0; row < 2; row++) UNROLL for (int v = 0; v < VECTORS; v++) {
        const vec a = clip(sum[2 * row][v], d->lo, d->hi),
                  b = clip(sum[2 * row + 1][v], d->lo, d->hi);
        float *to = d->y + (row * VECTORS + v) * 2 * VL;
        store(to, LOWER(a, b));
        store(to + VL, UPPER(a, b));
    }
}
