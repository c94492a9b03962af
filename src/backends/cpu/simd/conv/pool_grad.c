/* The gradient of pooling of one row of one channel block: see fac_pool_grad_row in simd_images.h.
 *
 * Lanes are channels, each with a maximum of its own: the number of the tap that holds it is a
 * vector, compared with every tap when dy is handed back.  No branch depends on data. */
#include "backends/cpu/simd/vector.h"

INLINE vec masked(ivec mask, vec v) { return (vec)((ivec)v & mask); }

extern fac_pool_grad_kernel FAC_SIMD(fac_pool_grad);
void FAC_SIMD(fac_pool_grad)(const fac_pool_grad_row *t) {
    for (int64_t q = 0; q < t->width; q++) {
        const int64_t at = q * t->stride - t->pad;
        int64_t first = 0, last = t->S; /* taps inside of the row */
        while (first < last && at + first * t->dilation < 0) first++;
        while (last > first && at + (last - 1) * t->dilation >= t->in) last--;
        if (first == last || t->rows == 0) continue;
        const vec dy = load(t->dy + q * VL);
        float *dx = t->dx + at * VL;
        if (t->across) {
            const vec each = dy / all(t->down * t->across[q]);
            for (int r = 0; r < t->rows; r++)
                for (int64_t s = first; s < last; s++) {
                    float *to = dx + r * t->dx_row + s * t->dilation * VL;
                    store(to, load(to) + each);
                }
            continue;
        }
        const float *x = t->x + at * VL;
        vec top = load(x + first * t->dilation * VL);
        ivec best = { 0 }, number = { 0 };
        for (int r = 0; r < t->rows; r++)
            for (int64_t s = first; s < last; s++, number += 1) {
                const vec v = load(x + r * t->x_row + s * t->dilation * VL);
                const ivec above = (v > top) | ((v != v) & (top == top));
                top = (vec)(((ivec)v & above) | ((ivec)top & ~above));
                best = (number & above) | (best & ~above);
            }
        number = (ivec){ 0 };
        for (int r = 0; r < t->rows; r++)
            for (int64_t s = first; s < last; s++, number += 1) {
                float *to = dx + r * t->dx_row + s * t->dilation * VL;
                store(to, load(to) + masked(best == number, dy));
            }
    }
}
