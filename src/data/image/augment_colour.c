/* Colour jitter, as torchvision's ColorJitter computes it, always in the order brightness,
 * contrast, saturation, hue. */
#include <math.h>
#include "data/image/augment.h"

static float byte(double x) { return (float)fmin(fmax(x, 0), 255); }

/* What is seen of a colour without colour (ITU-R BT.601, as torchvision rounds it). */
static double grey(const float *x, int64_t plane) {
    return 0.2989 * (double)x[0] + 0.587 * (double)x[plane] + 0.114 * (double)x[2 * plane];
}

/* A factor from 1 - strength (at least 0) to 1 + strength. */
static double factor(double strength, const fac_drawn *s, fac_draw what) {
    const double low = fmax(0, 1 - strength);
    return low + (1 + strength - low) * fac_sample_draw(s, what);
}

/* x = k x + (1 - k) mean */
static void blend(float *x, int64_t n, double k, double mean) {
    for (int64_t i = 0; i < n; i++) x[i] = byte(k * (double)x[i] + (1 - k) * mean);
}

static double mean_grey(const float *x, int64_t channels, int64_t plane) {
    double sum = 0;
    if (channels == 3)
        for (int64_t i = 0; i < plane; i++) sum += grey(x + i, plane);
    else
        for (int64_t i = 0; i < channels * plane; i++) sum += (double)x[i];
    return sum / (double)(channels == 3 ? plane : channels * plane);
}

static void saturate(float *x, int64_t plane, double k) {
    for (int64_t i = 0; i < plane; i++) {
        const double g = grey(x + i, plane);
        for (int64_t c = 0; c < 3; c++)
            x[c * plane + i] = byte(k * (double)x[c * plane + i] + (1 - k) * g);
    }
}

/* Channel n (5 red, 3 green, 1 blue) of hue h (in turns), saturation s and value v:
 *   v - v s max(0, min(k, 4 - k, 1)),   k = n + 6 h mod 6 */
static double channel(double n, double h, double s, double v) {
    const double k = fmod(n + 6 * h, 6);
    return v - v * s * fmax(0, fmin(fmin(k, 4 - k), 1));
}

/* The hue goes on by a part of a turn; saturation and value stay. */
static void turn(float *x, int64_t plane, double by) {
    for (int64_t i = 0; i < plane; i++) {
        float *p = x + i;
        const double r = (double)p[0], g = (double)p[plane], b = (double)p[2 * plane];
        const double most = fmax(r, fmax(g, b)), span = most - fmin(r, fmin(g, b));
        if (!(span > 0)) continue;
        const double h = most == r   ? (g - b) / span
                         : most == g ? 2 + (b - r) / span
                                     : 4 + (r - g) / span;
        const double next = h / 6 + by + 1; /* above 0 for fmod */
        for (int c = 0; c < 3; c++)
            p[c * plane] = byte(channel(5 - 2 * c, next, span / most, most));
    }
}

void fac_augment_colour(const fac_augment *a, const fac_drawn *s, int64_t channels, int64_t plane,
                        float *x) {
    if (a->brightness > 0)
        blend(x, channels * plane, factor(a->brightness, s, FAC_DRAW_BRIGHTNESS), 0);
    if (a->contrast > 0)
        blend(x, channels * plane, factor(a->contrast, s, FAC_DRAW_CONTRAST),
              mean_grey(x, channels, plane));
    if (channels != 3) return;
    if (a->saturation > 0) saturate(x, plane, factor(a->saturation, s, FAC_DRAW_SATURATION));
    if (a->hue > 0) turn(x, plane, a->hue * (2 * fac_sample_draw(s, FAC_DRAW_HUE) - 1));
}
