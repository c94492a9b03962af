/* Attention of few queries that see the same keys, as a step of decoding has it: see
 * attention/attention_row.h.
 *
 * Numbers of a head are the lanes of vectors, so that k and v are read as they lie, once for up to
 * four queries: as lanes (attention.c) three queries would leave most of a vector empty.  All
 * scores come first, then weights, then sums of values, which blocks of keys keep short. */
#include <math.h>
#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/attention_row.h"
#include "backends/cpu/simd/exp2.h"

static const double LOG2_E = 1.44269504088896340736;
enum { TOGETHER = FAC_ATTENTION_ROWS_AT_ONCE, KEYS = 256, AHEAD = 16 };

INLINE int64_t row_of_s(const fac_attention_row *t) { return (t->keys + 15) / 16 * 16; }

/* ---- scores ---- */

/* Each of four vectors as the sum of its numbers. */
INLINE void four_sums(const vec *v, float *to) {
#if defined(__AVX2__)
#if defined(__AVX512F__)
    __m256 h[4];
    UNROLL for (int k = 0; k < 4; k++) h[k] = _mm256_add_ps(
        _mm512_castps512_ps256((__m512)v[k]), _mm512_extractf32x8_ps((__m512)v[k], 1));
#else
    const vec *h = v;
#endif
    const __m256 a = _mm256_hadd_ps((__m256)h[0], (__m256)h[1]);
    const __m256 b = _mm256_hadd_ps((__m256)h[2], (__m256)h[3]), c = _mm256_hadd_ps(a, b);
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1)));
#else
    for (int k = 0; k < 4; k++) {
        to[k] = 0;
        for (int i = 0; i < VL; i++) to[k] += v[k][i];
    }
#endif
}

/* s[r][i] of n keys; R n is a multiple of 4. */
INLINE void some_scores(const int R, const int n, const fac_attention_row *t, const float *q,
                        const float *k, float *s) {
    vec sum[TOGETHER * 4];
    float to[TOGETHER * 4];
    UNROLL for (int i = 0; i < R * n; i++) sum[i] = all(0);
    for (int64_t d = 0; d < t->D; d += VL) {
        vec x[TOGETHER];
        UNROLL for (int r = 0; r < R; r++) x[r] = load(q + r * t->q_row + d);
        UNROLL for (int i = 0; i < n; i++) {
            const vec y = load(k + i * t->k_row + d);
            UNROLL for (int r = 0; r < R; r++) sum[r * n + i] =
                add_product(sum[r * n + i], x[r], y);
        }
    }
    UNROLL for (int i = 0; i < R * n; i += 4) four_sums(sum + i, to + i);
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int i = 0; i < n; i++) s[r * row_of_s(t) + i] =
        to[r * n + i];
}

INLINE void ask(const float *rows, int64_t step, int n, int64_t size) {
    enum { LINE = 16 };
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < size; k += LINE) __builtin_prefetch(rows + i * step + k);
}

/* Keys, and vectors of values, that R queries meet at once: sixteen registers are enough. */
INLINE int at_once(const int R) {
    static const int n[] = { 0, 8, 4, 4, 2 };
    return n[R];
}

/* The last keys are taken again with others before them, or one by one. */
INLINE void scores(const int R, const fac_attention_row *t, const float *q) {
    const int n = at_once(R);
    int64_t i = 0;
    for (; i + n <= t->keys; i += n) {
        ask(t->k + (i + AHEAD) * t->k_row, t->k_row, n, t->D);
        some_scores(R, n, t, q, t->k + i * t->k_row, t->s + i);
    }
    if (i == t->keys) return;
    if (t->keys >= n) {
        i = t->keys - n;
        some_scores(R, n, t, q, t->k + i * t->k_row, t->s + i);
        return;
    }
    for (; i < t->keys; i++) {
        const float *k = t->k + i * t->k_row;
        for (int r = 0; r < R; r++) {
            vec sum[4] = { all(0), all(0), all(0), all(0) };
            float to[4];
            for (int64_t d = 0; d < t->D; d += VL)
                sum[0] = add_product(sum[0], load(q + r * t->q_row + d), load(k + d));
            four_sums(sum, to);
            t->s[r * row_of_s(t) + i] = to[0];
        }
    }
}

/* ---- weights ---- */

/* Scores of one row become weights; returns 1 / their sum. */
static float weights(const fac_attention_row *t, float *s) {
    const int64_t whole = row_of_s(t);
    double scale = t->scale * LOG2_E;
    if (t->softcap > 0) {
        const float inner = (float)(t->scale / t->softcap);
        for (int64_t i = 0; i < t->keys; i++) s[i] = tanhf(inner * s[i]);
        scale = t->softcap * LOG2_E;
    }
    vec most = all(-INFINITY), sum = all(0), some = all(0);
    for (int64_t i = t->keys; i < whole; i++) s[i] = -INFINITY;
    for (int64_t i = 0; i < whole; i += VL) most = vmax(most, load(s + i));
    float top = -INFINITY, total = 0;
    for (int i = 0; i < VL; i++) top = most[i] > top || most[i] != most[i] ? most[i] : top;
    if (top == -INFINITY) top = 0;
    for (int64_t i = 0; i < whole; i += VL) {
        const vec p = exp2_of((load(s + i) - all(top)) * all((float)scale));
        store(s + i, p);
        some += p;
        if (i % KEYS) continue;
        sum += some;
        some = all(0);
    }
    sum += some;
    for (int i = 0; i < VL; i++) total += sum[i];
    return total > 0 || total != total ? 1 / total : 0;
}

/* ---- values ---- */

/* y += sums of n vectors of values at e, of some keys. */
INLINE void some_values(const int R, const int n, const fac_attention_row *t, int64_t first,
                        int64_t keys, int64_t e, float *y) {
    const int64_t row = row_of_s(t);
    const float *v = t->v + first * t->v_row + e, *s = t->s + first;
    vec sum[TOGETHER * 8];
    UNROLL for (int i = 0; i < R * n; i++) sum[i] = all(0);
    for (int64_t i = 0; i < keys; i++, v += t->v_row) {
        vec p[TOGETHER];
        UNROLL for (int r = 0; r < R; r++) p[r] = all(s[r * row + i]);
        ask(v + AHEAD * t->v_row, 0, 1, n * VL);
        UNROLL for (int k = 0; k < n; k++) {
            const vec x = load(v + k * VL);
            UNROLL for (int r = 0; r < R; r++) sum[r * n + k] =
                add_product(sum[r * n + k], p[r], x);
        }
    }
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int k = 0; k < n; k++) {
        float *to = y + r * t->y_row + e + k * VL;
        store(to, load(to) + sum[r * n + k]);
    }
}

INLINE void values(const int R, const fac_attention_row *t, const float *factor, float *y) {
    const int n = at_once(R);
    for (int r = 0; r < R; r++)
        for (int64_t e = 0; e < t->E; e += VL) store(y + r * t->y_row + e, all(0));
    for (int64_t first = 0; first < t->keys; first += KEYS) {
        const int64_t left = t->keys - first, keys = left < KEYS ? left : KEYS;
        int64_t e = 0;
        for (; e + n * VL <= t->E; e += n * VL) some_values(R, n, t, first, keys, e, y);
        for (; e < t->E; e += VL) some_values(R, 1, t, first, keys, e, y);
    }
    for (int r = 0; r < R; r++)
        for (int64_t e = 0; e < t->E; e += VL) {
            float *to = y + r * t->y_row + e;
            store(to, load(to) * all(factor[r]));
        }
}

INLINE void rows(const int R, const fac_attention_row *t, const float *q, float *y) {
    float factor[TOGETHER];
    scores(R, t, q);
    for (int r = 0; r < R; r++) factor[r] = weights(t, t->s + r * row_of_s(t));
    values(R, t, factor, y);
}

extern void FAC_SIMD(fac_attention_of_row)(const fac_attention_row *t);
void FAC_SIMD(fac_attention_of_row)(const fac_attention_row *t) {
    for (int64_t r = 0; r < t->rows; r += TOGETHER) {
        const float *q = t->q + r * t->q_row;
        float *y = t->y + r * t->y_row;
        if (t->rows - r >= 4)
            rows(4, t, q, y);
        else if (t->rows - r == 3)
            rows(3, t, q, y);
        else if (t->rows - r == 2)
            rows(2, t, q, y);
        else
            rows(1, t, q, y);
    }
}
