/* Where the sums of a layer of one base change their code: see ops/code_limits.c.  An item has a
 * channel.  Needs numbers of 64 bits, in which the host computes them, too.  Options: those of
 * elements.cl; X_PLANES, Y_PLANES, Y_SIGNS as in conv_bits.cl; RELU. */
#pragma OPENCL FP_CONTRACT OFF
typedef struct {
    long w, x, scale, b, y_basis, y;
    long units, reach, has_x, has_scale, has_b;
} numbers;
#define LEVELS (1 << Y_PLANES)

static bool exceeds(const double factor, const double scale, const double b, const float threshold,
                    const int turn, const long d) {
    float v = (float)((double)(d ^ (long)turn) * factor * scale + b);
#ifdef RELU
    if (v < 0) v = 0;
#endif
#ifdef Y_SIGNS
    return !(v < 0);
#else
    return v > threshold;
#endif
}

/* Thresholds halfway between levels, which rise. */
static void thresholds_of(global const float *v, float *threshold) {
    float level[LEVELS];
    for (uint e = 0; e < LEVELS; e++) {
        float sum = 0;
        int k = (int)e;
        for (int j = 0; j < Y_PLANES; j++) if (e >> j & 1) sum += v[j];
        for (; k > 0 && level[k - 1] > sum; k--) level[k] = level[k - 1];
        level[k] = sum;
    }
    for (int k = 0; k + 1 < LEVELS; k++) threshold[k] = (level[k] + level[k + 1]) * 0.5f;
}

kernel void limits(const numbers s, global const float *w, global const float *x,
                   global const float *scales, global const float *biases,
                   global const float *y_basis, global int *y) {
    const pos k = (pos)get_global_id(0), K = (pos)s.units;
    if (k >= K) return;
    double unit = s.has_x ? (double)x[s.x] : 1.0;
    for (int j = 1; j < X_PLANES; j++) unit = fmin(unit, (double)x[s.x + j]);
    const double factor = (double)w[s.w + k] * unit;
    const double scale = s.has_scale ? (double)scales[s.scale + k] : 1.0;
    const double b = s.has_b ? (double)biases[s.b + k] : 0.0;
    const int turn = factor * scale < 0 ? -1 : 0;
    float threshold[LEVELS];
    threshold[0] = 0;
#ifndef Y_SIGNS
    thresholds_of(y_basis + s.y_basis, threshold);
#endif
    y[s.y + k] = turn;
    for (int t = 0; t + 1 < LEVELS; t++) {
        long low = -s.reach - 1, high = s.reach;
        if (exceeds(factor, scale, b, threshold[t], turn, low)) {
            high = INT_MIN;
        } else if (!exceeds(factor, scale, b, threshold[t], turn, high)) {
            high = INT_MAX;
        } else {
            while (high - low > 1) {
                const long middle = low + (high - low) / 2;
                if (exceeds(factor, scale, b, threshold[t], turn, middle)) high = middle;
                else low = middle;
            }
        }
        y[s.y + (t + 1) * K + k] = (int)high;
    }
}
