/* Statistics and linear maps of pixels of one channel block, each lane for itself: see
 * fac_lane_sums in simd_images.h. */
#include <math.h>
#include "backends/cpu/simd/vector.h"

/* v, but 0 where by is at or below lo, or at or above hi; NaN is neither. */
INLINE vec masked(vec v, vec by, vec lo, vec hi) {
    return (vec)((ivec)v & ~((by <= lo) | (by >= hi)));
}

/* Twice over rows that stay in the first cache: sums for the mean, then what is around it.  Two
 * accumulators each, which with both operands are four chains of additions. */
static void sums(const fac_lane_rows *t, fac_lane_sums *to) {
    vec a = all(0), b = a, c = a, d = a;
    const float n = (float)(t->rows * t->pixels);
    for (int64_t r = 0; r < t->rows; r++) {
        const float *x = t->x + r * t->x_row;
        int64_t i = 0;
        for (; i + 4 <= t->pixels; i += 4, x += 4 * VL) {
            a += load(x);
            b += load(x + VL);
            c += load(x + 2 * VL);
            d += load(x + 3 * VL);
        }
        for (; i < t->pixels; i++, x += VL) a += load(x);
    }
    const vec mean = ((a + b) + (c + d)) / all(n), lo = all(t->mask_lo), hi = all(t->mask_hi);
    vec spread = all(0), more = spread, sum = spread, along = spread;
    for (int64_t r = 0; r < t->rows; r++) {
        const float *x = t->x + r * t->x_row, *y = t->d ? t->d + r * t->d_row : NULL;
        int64_t i = 0;
        for (; !y && i + 2 <= t->pixels; i += 2) {
            const vec e = load(x + i * VL) - mean, f = load(x + (i + 1) * VL) - mean;
            spread += e * e;
            more += f * f;
        }
        const float *mask = t->mask ? t->mask + r * t->mask_row : NULL;
        for (; mask && i < t->pixels; i++) {
            const vec e = load(x + i * VL) - mean,
                      dy = masked(load(y + i * VL), load(mask + i * VL), lo, hi);
            spread += e * e;
            sum += dy;
            along += dy * e;
        }
        for (; i < t->pixels; i++) {
            const vec e = load(x + i * VL) - mean, dy = y ? load(y + i * VL) : e;
            spread += e * e;
            sum += dy;
            along += dy * e;
        }
    }
    store(to->mean, mean);
    store(to->spread, spread + more);
    store(to->sum, sum);
    store(to->along, along);
}

/* two: 0 without d, 2 with its mask */
INLINE void linear_rows(const int two, const int clipped, const int past, const fac_lane_rows *t) {
    const vec low = all(t->mask_lo), high = all(t->mask_hi);
    const vec mean = load(t->mean), factor = load(t->factor), shift = load(t->shift),
              other = two ? load(t->other) : all(0);
    for (int64_t r = 0; r < t->rows; r++) {
        const float *x = t->x + r * t->x_row, *d = two ? t->d + r * t->d_row : x;
        const float *mask = two > 1 ? t->mask + r * t->mask_row : x;
        float *y = t->y + r * t->y_row;
        for (int64_t i = 0; i < t->pixels * VL; i += VL) {
            vec v = (load(x + i) - mean) * factor + shift;
            if (two > 1)
                v += masked(load(d + i), load(mask + i), low, high) * other;
            else if (two)
                v += load(d + i) * other;
            if (clipped) v = clip(v, t->lo, t->hi);
            if (past)
                stream(y + i, v);
            else
                store(y + i, v);
        }
    }
}

INLINE void linear_to(const int past, const fac_lane_rows *t) {
    const int clipped = t->lo > -INFINITY || t->hi < INFINITY;
    if (t->mask)
        linear_rows(2, 0, past, t);
    else if (t->d)
        clipped ? linear_rows(1, 1, past, t) : linear_rows(1, 0, past, t);
    else
        clipped ? linear_rows(0, 1, past, t) : linear_rows(0, 0, past, t);
}

static void linear(const fac_lane_rows *t) { t->past ? linear_to(1, t) : linear_to(0, t); }

extern const fac_lane_kernels FAC_SIMD(fac_lane_kernels);
const fac_lane_kernels FAC_SIMD(fac_lane_kernels) = { sums, linear };
