/* The largest or smallest number of a row, for folds and for what looks for its place. */
#ifndef FACULA_CPU_EXTREME_H
#define FACULA_CPU_EXTREME_H
#include <math.h>
#include "backends/cpu/simd/vector.h"

/* NaN if there is one: that is looked for by itself.  Four parts at a time, since memory gives four
 * streams faster than one. */
INLINE bool is_beyond(const int least, float x, float y) { return least ? x < y : x > y; }

INLINE float extreme_of(const int least, const float *x, int64_t n) {
    const float start = least ? INFINITY : -INFINITY;
    const int64_t part = n / (4 * VL) * VL;
    float to = start;
    bool any = false;
    if (part) {
        vec top[4] = { all(start), all(start), all(start), all(start) };
        ivec odd = { 0 };
        for (int64_t i = 0; i < part; i += VL) {
            vec v[4];
            UNROLL for (int k = 0; k < 4; k++) {
                v[k] = load(x + k * part + i);
                top[k] = least ? vmin(top[k], v[k]) : vmax(top[k], v[k]);
            }
            odd |= unordered(v[0], v[1]) | unordered(v[2], v[3]);
        }
        UNROLL for (int k = 1; k < 4; k++) top[0] =
            least ? vmin(top[0], top[k]) : vmax(top[0], top[k]);
        float lane[VL];
        store(lane, top[0]);
        UNROLL for (int half = VL / 2; half > 0; half /= 2) UNROLL for (int k = 0; k < half; k++) {
            const float a = lane[k], b = lane[k + half];
            lane[k] = is_beyond(least, b, a) ? b : a;
        }
        to = lane[0];
        any = any_of(odd);
    }
    for (int64_t i = 4 * part; i < n; i++) {
        to = is_beyond(least, x[i], to) ? x[i] : to;
        any |= x[i] != x[i];
    }
    return any ? NAN : to;
}
#endif
