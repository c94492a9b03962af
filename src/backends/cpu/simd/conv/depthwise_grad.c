/* The gradient of depthwise weights: see fac_depthwise_grad in simd_images.h.  Each tap has a
 * vector of sums; the nine of 3 x 3 stay in registers together, so that dy is loaded once, others
 * go by rows of the kernel. */
#include "backends/cpu/simd/vector.h"

/* R x S taps, at most 9 known when compiled. */
INLINE void taps(const int R, const int S, const fac_depthwise_grad *t, const float *x0,
                 float *to) {
    vec acc[9];
    UNROLL for (int k = 0; k < R * S; k++) acc[k] = all(0);
    for (int64_t row = 0; row < t->rows; row++) {
        const float *x = x0 + row * t->x_next, *y = t->y + row * t->y_row;
        for (int64_t q = 0; q < t->pixels; q++, x += t->x_pixel, y += VL) {
            const vec dy = load(y);
            UNROLL for (int r = 0; r < R; r++) UNROLL for (int s = 0; s < S; s++) acc[r * S + s] +=
                dy * load(x + r * t->x_row + s * t->x_column);
        }
    }
    UNROLL for (int k = 0; k < R * S; k++) store(to + k * VL, load(to + k * VL) + acc[k]);
}

extern fac_depthwise_grad_kernel FAC_SIMD(fac_depthwise_grad);
void FAC_SIMD(fac_depthwise_grad)(const fac_depthwise_grad *t) {
    if (t->R == 3 && t->S == 3) {
        taps(3, 3, t, t->x, t->to);
        return;
    }
    for (int r = 0; r < t->R; r++)
        for (int s = 0; s < t->S;) {
            const float *x = t->x + r * t->x_row + s * t->x_column;
            float *to = t->to + (r * t->S + s) * VL;
            if (t->S - s >= 5)
                taps(1, 5, t, x, to), s += 5;
            else if (t->S - s >= 3)
                taps(1, 3, t, x, to), s += 3;
            else
                taps(1, 1, t, x, to), s += 1;
        }
}
