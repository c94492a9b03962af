/* Products of weights in blocks of 32 with rows of 8-bit numbers: see product/block_dots.h.
 *
 * All types are w = d u + m with u of 0..255: q4_0 m = -8 d, q4_1 its own m, q8_0 u = q + 128, m =
 * -128 d.  So
 *     sum of w x = d dx sum(u xq) + m (dx sum xq)
 * where the second sums belong to x alone.  u xq are added in 32 bits: vpdpbusd takes 64 of them at
 * a time, two blocks, whose sums lie in the halves of a vector; without it products of pairs are
 * added in 16 bits, which 8-bit u would overflow: those are taken as signed numbers by their
 * magnitudes, or as bytes by NEON (sdot, where the machine has it).  q4_k's parts of 32 are blocks
 * of q4_1 with d and m of their own, q6_k has a scale for 16 numbers. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/product/block_dots.h"
#include "tensor/half.h"
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

enum type { TYPE_Q4_0, TYPE_Q4_1, TYPE_Q8_0, TYPE_Q4_K, TYPE_Q6_K };

INLINE int bytes_of(const enum type t) {
    static const int bytes[] = { 18, 20, 34, 144, 210 };
    return bytes[t];
}
INLINE int head_of(const enum type t) { return t == TYPE_Q4_1 ? 4 : 2; }

INLINE uint16_t half_at(const char *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return h;
}

/* The twelve bytes of a block of q4_k as eight scales and eight minima of 6 bits. */
INLINE void unpack_q4_k(const char *w, uint64_t *scales, uint64_t *minima) {
    uint32_t a, b, c;
    memcpy(&a, w + 4, 4);
    memcpy(&b, w + 8, 4);
    memcpy(&c, w + 12, 4);
    const uint32_t scale = (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4;
    const uint32_t least = (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4;
    *scales = (uint64_t)scale << 32 | (a & 0x3f3f3f3f);
    *minima = (uint64_t)least << 32 | (b & 0x3f3f3f3f);
}

/* What the numbers of a block of x are multiplied by to be 8-bit ones; 0 where there is no such
 * factor: all are 0, or so near to it that they count as 0, or one is infinite or no number, which
 * the block's scale then is, too, and so each sum with it. */
INLINE float factor_of(float most) {
    const float by = most > 0 ? 127 / most : 0;
    return by <= FLT_MAX ? by : 0;
}

/* What of a block's scale and sum belongs to x. */
INLINE void put_facts(char *row, int64_t K, int64_t b, float most, int sum) {
    float *d = (float *)(void *)(row + K), *sums = d + K / 32;
    d[b] = most / 127;
    sums[b] = d[b] * (float)sum;
}

#if defined(__AVX512F__)
#include "backends/cpu/simd/blocks/block_dots_512.h"
#else

#if !defined(__AVX2__)
/* To the nearest, in units of the largest / 127. */
static void round_x(const float *x, int64_t K, char *to) {
    for (int64_t b = 0; b < K / 32; b++, x += 32) {
        float most = 0;
        int sum = 0, strange = 0;
        for (int k = 0; k < 32; k++) most = fabsf(x[k]) > most ? fabsf(x[k]) : most;
        for (int k = 0; k < 32; k++) strange |= x[k] != x[k];
        if (strange) most = NAN;
        const float by = factor_of(most);
        for (int k = 0; k < 32; k++) {
            const int q = by > 0 ? (int)lrintf(x[k] * by) : 0;
            to[32 * b + k] = (char)q;
            sum += q;
        }
        put_facts(to, K, b, most, sum);
    }
}
#endif

enum { PART = 128 }; /* blocks whose scales are gathered together */

/* d of n blocks, and the sum of their m times those of x. */
INLINE float scales(const enum type t, const char *w, int n, const float *sums, float *d) {
    uint16_t halves[PART];
    float total = 0, m[PART];
    for (int b = 0; b < n; b++) halves[b] = half_at(w + b * bytes_of(t));
    for (int b = 0; b < n; b++) d[b] = fac_f16_to_f32(halves[b]);
    if (t == TYPE_Q4_1) {
        for (int b = 0; b < n; b++) halves[b] = half_at(w + b * bytes_of(t) + 2);
        for (int b = 0; b < n; b++) m[b] = fac_f16_to_f32(halves[b]);
        for (int b = 0; b < n; b++) total += m[b] * sums[b];
        return total;
    }
    for (int b = 0; b < n; b++) total += d[b] * sums[b];
    return t == TYPE_Q4_0 ? -8 * total : -128 * total;
}

#if defined(__AVX2__)

#include "backends/cpu/simd/blocks/block_dots_avx2.h"
#elif defined(__aarch64__)
#include "backends/cpu/simd/blocks/block_dots_neon.h"
#else

INLINE int signed_at(const enum type t, const char *w, int k) {
    if (t == TYPE_Q8_0) return (signed char)w[k];
    return k < 16 ? w[k] & 15 : (unsigned char)w[k - 16] >> 4;
}

/* q8_0 as it is, not q + 128. */
INLINE void part(const enum type t, const bool dots, const int m, const char *w, int n,
                 const float *d, const char *const *x, const float *const *dx, float *sum) {
    (void)dots;
    for (int b = 0; b < n; b++) {
        const char *q = w + b * bytes_of(t) + head_of(t);
        for (int j = 0; j < m; j++) {
            int p = 0;
            for (int k = 0; k < 32; k++) p += signed_at(t, q, k) * (signed char)x[j][32 * b + k];
            sum[j] += d[b] * dx[j][b] * (float)p;
        }
    }
}
typedef float sums;
INLINE sums none(void) { return 0; }
INLINE float total(sums v) { return v; }

#endif

INLINE void row(const enum type t, const bool dots, const int m, const fac_block_rows *r,
                const char *w, const char *x, float *y) {
    const int blocks = (int)(r->K / 32), bytes = bytes_of(t);
    sums sum[4];
    float rest[4] = { 0 };
    for (int j = 0; j < m; j++) sum[j] = none();
    for (int b = 0; b < blocks; b += PART) {
        const int n = blocks - b < PART ? blocks - b : PART;
        const char *q[4];
        const float *dx[4];
        float d[PART];
        for (int j = 0; j < m; j++) {
            const float *facts = (const float *)(const void *)(x + j * r->x_row + r->K);
            q[j] = x + j * r->x_row + 32 * b;
            dx[j] = facts + b;
            const float below = scales(t, w + b * bytes, n, facts + blocks + b, d);
            rest[j] += t == TYPE_Q8_0 ? 0 : below; /* it is not shifted by 128 here */
        }
        part(t, dots, m, w + b * bytes, n, d, q, dx, sum);
    }
    for (int j = 0; j < m; j++) y[j * r->y_row] = total(sum[j]) + rest[j];
}

#include "backends/cpu/simd/blocks/block_dots_large.h"

#if defined(__AVX2__)
#include "backends/cpu/simd/blocks/block_dots_rows_avx2.h"
#else
INLINE int64_t eights(const enum type t, const fac_block_rows *r) {
    (void)t, (void)r;
    return 0;
}
#endif

INLINE void rows(const enum type t, const bool dots, const fac_block_rows *r) {
    const int64_t first = eights(t, r);
    if (t == TYPE_Q4_K || t == TYPE_Q6_K) {
        rows_of_large(t, dots, r, first);
        return;
    }
    for (int64_t j = 0; j < r->m; j += 4) {
        const int64_t left = r->m - j;
        const char *x = r->x + j * r->x_row;
        for (int64_t i = first; i < r->rows; i++) {
            const char *w = r->w + i * r->w_row;
            float *y = r->y + j * r->y_row + i;
            if (left >= 4)
                row(t, dots, 4, r, w, x, y);
            else if (left == 3)
                row(t, dots, 3, r, w, x, y);
            else if (left == 2)
                row(t, dots, 2, r, w, x, y);
            else
                row(t, dots, 1, r, w, x, y);
        }
    }
}

#endif

/* Products of bytes that are added by fours: vpdpbusd, sdot. */
static bool has_dots(void) {
#if defined(__AVX512F__)
    return __builtin_cpu_supports("avx512vnni");
#elif defined(__aarch64__) && defined(__APPLE__)
    return true;
#elif defined(__aarch64__) && defined(__linux__)
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#else
    return false;
#endif
}

#define RUN(name, type)                                                                            \
    static void name(const fac_block_rows *r) {                                                    \
        if (has_dots())                                                                            \
            rows(type, true, r);                                                                   \
        else                                                                                       \
            rows(type, false, r);                                                                  \
    }
RUN(run_q4_0, TYPE_Q4_0)
RUN(run_q4_1, TYPE_Q4_1)
RUN(run_q8_0, TYPE_Q8_0)
RUN(run_q4_k, TYPE_Q4_K)
RUN(run_q6_k, TYPE_Q6_K)

/* ---- as f32 ---- */

static void decode_q4_0(const char *w, float *to, int64_t K) {
    for (int64_t b = 0; b < K / 32; b++, w += 18, to += 32) {
        const float d = fac_f16_to_f32(half_at(w));
        const unsigned char *q = (const unsigned char *)w + 2;
        for (int k = 0; k < 16; k++) to[k] = d * (float)((q[k] & 15) - 8);
        for (int k = 0; k < 16; k++) to[k + 16] = d * (float)((q[k] >> 4) - 8);
    }
}

static void decode_q4_1(const char *w, float *to, int64_t K) {
    for (int64_t b = 0; b < K / 32; b++, w += 20, to += 32) {
        const float d = fac_f16_to_f32(half_at(w)), m = fac_f16_to_f32(half_at(w + 2));
        const unsigned char *q = (const unsigned char *)w + 4;
        for (int k = 0; k < 16; k++) to[k] = d * (float)(q[k] & 15) + m;
        for (int k = 0; k < 16; k++) to[k + 16] = d * (float)(q[k] >> 4) + m;
    }
}

static void decode_q8_0(const char *w, float *to, int64_t K) {
    for (int64_t b = 0; b < K / 32; b++, w += 34, to += 32) {
        const float d = fac_f16_to_f32(half_at(w));
        for (int k = 0; k < 32; k++) to[k] = d * (float)(signed char)w[2 + k];
    }
}

const fac_block_dots FAC_SIMD(fac_block_dots)[FAC_DTYPES] = {
    [FAC_Q4_0] = { run_q4_0, round_x, decode_q4_0 },
    [FAC_Q4_1] = { run_q4_1, round_x, decode_q4_1 },
    [FAC_Q8_0] = { run_q8_0, round_x, decode_q8_0 },
    [FAC_Q4_K] = { run_q4_k, round_x, NULL },
    [FAC_Q6_K] = { run_q6_k, round_x, NULL },
};
