/* Gradients of softmax, log_softmax and layer_norm along one line, of one instruction set: see
 * fac_line_grads in streams.h. */
#include "backends/cpu/simd/exp2.h"
#include "backends/cpu/simd/widen.h"

enum { CHAINS = 4 }; /* additions that do not wait for each other */

/* The sum of CHAINS * rounds vectors of products, lane by lane. */
INLINE vec products(const float *x, const float *y, int64_t rounds) {
    vec sum[CHAINS];
    UNROLL for (int c = 0; c < CHAINS; c++) sum[c] = load(x + c * VL) * load(y + c * VL);
    for (int64_t k = 1; k < rounds; k++) {
        x += CHAINS * VL;
        y += CHAINS * VL;
        UNROLL for (int c = 0; c < CHAINS; c++) sum[c] += load(x + c * VL) * load(y + c * VL);
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static double dot(const float *x, const float *y, int64_t n) {
    enum { ROUND = CHAINS * VL };
    dvec sum = all_f64(0);
    int64_t i = 0, rounds;
    for (; i + ROUND <= n; i += rounds * ROUND) {
        rounds = (n - i) / ROUND < FEW_TERMS ? (n - i) / ROUND : FEW_TERMS;
        sum += folded(products(x + i, y + i, rounds));
    }
    if (i + VL <= n) {
        vec rest = all(0);
        for (; i + VL <= n; i += VL) rest += load(x + i) * load(y + i);
        sum += folded(rest);
    }
    double whole = across_f64(sum);
    for (; i < n; i++) whole += (double)x[i] * (double)y[i];
    return whole;
}

static void softmax(const float *y, const float *dy, float *dx, int64_t n, float sum) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL) store(dx + i, load(y + i) * (load(dy + i) - sum));
    for (; i < n; i++) dx[i] = y[i] * (dy[i] - sum);
}

static void log_softmax(const float *y, const float *dy, float *dx, int64_t n, float sum) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL) store(dx + i, load(dy + i) - exp_of(load(y + i)) * sum);
    const int rest = (int)(n - i);
    if (rest)
        store_some(dx + i, load_some(dy + i, rest) - exp_of(load_some(y + i, rest)) * sum, rest);
}

/* One vector of the sums over a line, and of those over all lines. */
INLINE void norm_step(const int scaled, const int params, const fac_norm_line *t, int64_t i,
                      vec *sum, vec *along) {
    const vec hat = (load(t->x + i) - t->mean) * t->inverse, dy = load(t->dy + i),
              g = scaled ? dy * load(t->scale + i) : dy;
    *sum += g;
    *along += g * hat;
    if (params) {
        store(t->dscale + i, load(t->dscale + i) + dy * hat);
        store(t->dbias + i, load(t->dbias + i) + dy);
    }
}

INLINE void norm_sums_of(const int scaled, const int params, const fac_norm_line *t, double *sum,
                         double *along) {
    int64_t i = 0;
    *sum = *along = 0;
    while (i + VL <= t->n) {
        vec a = all(0), b = a, p = a, q = a;
        const int64_t end = i + CHUNK * VL < t->n ? i + CHUNK * VL : t->n;
        for (; i + 2 * VL <= end; i += 2 * VL) {
            norm_step(scaled, params, t, i, &a, &p);
            norm_step(scaled, params, t, i + VL, &b, &q);
        }
        if (i + VL <= end) norm_step(scaled, params, t, i, &a, &p), i += VL;
        *sum += total(a + b);
        *along += total(p + q);
    }
    for (; i < t->n; i++) {
        const float hat = (t->x[i] - t->mean) * t->inverse,
                    g = scaled ? t->dy[i] * t->scale[i] : t->dy[i];
        *sum += (double)g;
        *along += (double)g * (double)hat;
        if (params) {
            t->dscale[i] += t->dy[i] * hat;
            t->dbias[i] += t->dy[i];
        }
    }
}

static void norm_sums(const fac_norm_line *t, double *sum, double *along) {
    if (t->scale)
        t->dscale ? norm_sums_of(1, 1, t, sum, along) : norm_sums_of(1, 0, t, sum, along);
    else
        t->dscale ? norm_sums_of(0, 1, t, sum, along) : norm_sums_of(0, 0, t, sum, along);
}

/* inverse (dy scale - a - hat b) = dy scale inverse - (x - mean) (inverse^2 b) - inverse a */
INLINE void norm_of(const int scaled, const fac_norm_line *t, int64_t first, int64_t n, float a,
                    float b, float *dx) {
    const float *x = t->x + first, *dy = t->dy + first, *scale = scaled ? t->scale + first : x;
    const float slope = t->inverse * t->inverse * b, shift = t->inverse * a, mean = t->mean,
                inverse = t->inverse;
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        const vec g = scaled ? load(dy + i) * load(scale + i) : load(dy + i);
        store(dx + i, g * inverse - ((load(x + i) - mean) * slope + shift));
    }
    for (; i < n; i++)
        dx[i] = (scaled ? dy[i] * scale[i] : dy[i]) * inverse - ((x[i] - mean) * slope + shift);
}

static void norm(const fac_norm_line *t, int64_t first, int64_t n, float a, float b, float *dx) {
    if (t->scale)
        norm_of(1, t, first, n, a, b, dx);
    else
        norm_of(0, t, first, n, a, b, dx);
}

extern const fac_line_grads FAC_SIMD(fac_line_grads);
const fac_line_grads FAC_SIMD(fac_line_grads) = { dot, softmax, log_softmax, norm_sums, norm };
