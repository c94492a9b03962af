/* Products of rows of x, rounded to 8 bits, with weights of 4 bits in blocks: see product/nbits.h.
 *
 * x is rounded in blocks as long as those of w: x = dx q.  With u the codes, a block adds
 *     scale dx sum (u - zero) q
 * A lane of 32 bits has eight codes.  Those at even places meet a first vector of q, the others a
 * second one.  -8 sum q is where the lane's sum begins, or is what zero / 8 multiplies: both are
 * whole numbers below 2^24, so that nothing is lost where the two nearly cancel. */
#include <math.h>
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/product/nbits.h"

#if defined(__AVX2__)
typedef uint32_t uvec __attribute__((vector_size(VL * 4)));
enum { TOGETHER = 4, MANY = VL == 16 ? 8 : 4, AHEAD = 1024 };
enum { CHUNK = 8 * VL, EACH = CHUNK / 4 + 2 * VL }; /* codes of a vector; floats of x for them */

static int64_t chunks(const fac_nbits_weights *w) {
    return (w->blocks * w->block + CHUNK - 1) / CHUNK;
}

static int64_t rounded(const fac_nbits_weights *w) { return chunks(w) * EACH; }

/* One block, from number `first` of the row on.  What is not finite makes the block NaN. */
static void round_block(const float *x, int64_t first, int64_t n, float *row) {
    float most = 0, odd = 0;
    for (int64_t k = 0; k < n; k++) {
        most = fabsf(x[k]) > most ? fabsf(x[k]) : most;
        odd += x[k] * 0;
    }
    const float d = most / 127 + odd;
    const float by = most >= 1e-30f && odd == 0 ? 127 / most : 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = first + k, lane = at % CHUNK / 8, place = at % 8;
        float *chunk = row + at / CHUNK * EACH;
        int32_t *begin = (int32_t *)(void *)(chunk + CHUNK / 4);
        const int q = (int)lrintf(x[k] * by);
        ((int8_t *)chunk)[place % 2 * (CHUNK / 2) + 4 * lane + place / 2] = (int8_t)q;
        begin[lane] -= 8 * q;
        chunk[CHUNK / 4 + VL + lane] = d;
    }
}

static void round_row(const fac_nbits_weights *w, const float *x, float *to) {
    memset(to, 0, (size_t)rounded(w) * sizeof *to);
    for (int64_t b = 0; b < w->blocks; b++) {
        const int64_t from = b * w->block, left = w->K - from;
        round_block(x + from, from, left < w->block ? left : w->block, to);
    }
}

/* ---- products ---- */

INLINE ivec ints_at(const void *p) {
    ivec v;
    memcpy(&v, p, sizeof v);
    return v;
}

#if VL == 16
/* Four products a lane; u is at most 15, so that pairs fit into 16 bits. */
INLINE ivec dots(const bool vnni, ivec sum, ivec u, ivec x) {
    if (vnni) {
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u), "v"(x));
        return sum;
    }
    const __m512i pairs = _mm512_maddubs_epi16((__m512i)u, (__m512i)x);
    return sum + (ivec)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
}
INLINE ivec codes_at(const uint8_t *p, int64_t words) {
    return (ivec)_mm512_maskz_loadu_epi32((__mmask16)(words < VL ? (1u << words) - 1 : 0xffff), p);
}
INLINE vec to_lanes(vec v, ivec lanes) {
    return (vec)_mm512_permutexvar_ps((__m512i)lanes, (__m512)v);
}
#else
INLINE ivec dots(const bool vnni, ivec sum, ivec u, ivec x) {
    (void)vnni;
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)u, (__m256i)x);
    return sum + (ivec)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
INLINE ivec codes_at(const uint8_t *p, int64_t words) {
    const ivec lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return (ivec)_mm256_maskload_epi32((const int *)(const void *)p,
                                       (__m256i)(lane < (int)(words < VL ? words : VL)));
}
INLINE vec to_lanes(vec v, ivec lanes) {
    return (vec)_mm256_permutevar8x32_ps((__m256)v, (__m256i)lanes);
}
#endif

INLINE float total(vec v) {
#if VL == 16
    return _mm512_reduce_add_ps((__m512)v);
#else
    const __m128 half = _mm256_castps256_ps128((__m256)v) + _mm256_extractf128_ps((__m256)v, 1);
    const __m128 pair = half + _mm_movehl_ps(half, half);
    return pair[0] + pair[1];
#endif
}

/* Scales of the lanes of a chunk, of which n are different. */
INLINE vec scales_of(const fac_nbits_weights *w, const float *scale, int64_t b, int64_t n,
                     ivec lanes) {
    const int64_t left = w->blocks - b;
    return to_lanes(load_some(scale + b, (int)(left < n ? left : n)), lanes);
}

/* Eighths of the zero points of the lanes of a chunk, which begins with block b of a row of w; at
 * most eight of them are different. */
INLINE vec zeros_of(const fac_nbits_weights *w, int64_t row, int64_t b, int64_t n, ivec lanes) {
    const vec eighth = all(0.125f);
    if (w->zero_number) return scales_of(w, w->zero_number + row * w->blocks, b, n, lanes) * eighth;
    const int64_t bytes = fac_nbits_zero_bytes(w), left = bytes - b / 2;
    const uint8_t *p = w->zero + row * bytes + b / 2;
    uint32_t word = 0;
    if (left >= (int64_t)sizeof word)
        memcpy(&word, p, sizeof word);
    else
        for (int64_t k = 0; k < left; k++) word |= (uint32_t)p[k] << 8 * k;
    const ivec codes = (ivec)((word - (uvec){ 0 }) >> (uvec)(4 * (lanes + (int)(b % 2)))) & 15;
    return __builtin_convertvector(codes, vec) * eighth;
}

/* R rows of w with m rows of x, one of which is 1. */
INLINE void tile(const bool vnni, const bool zeros, const int R, const int m,
                 const fac_nbits_rows *t, int64_t n, const float *x, float *y) {
    const fac_nbits_weights *w = t->w;
    const int64_t row = fac_nbits_row_bytes(w), x_row = rounded(w), all_words = row / 4;
    const uint8_t *codes = w->codes + n * row;
    const float *scale = w->scale + n * w->blocks;
    const ivec low = 0x0f0f0f0f - (ivec){ 0 };
    const int shift = __builtin_ctzll((uint64_t)w->block);
    const int64_t different = w->block < CHUNK ? CHUNK >> shift : 1;
    ivec lanes;
    vec sum[MANY];
    for (int k = 0; k < VL; k++) lanes[k] = 8 * k >> shift;
    UNROLL
    for (int k = 0; k < R * m; k++) sum[k] = all(0);
    for (int64_t at = 0; at < all_words; at += VL, x += EACH) UNROLL
    for (int r = 0; r < R; r++) {
        const uint8_t *p = codes + r * row + at * 4;
        const ivec u = codes_at(p, all_words - at), even = u & low, odd = u >> 4 & low;
        const vec s = scales_of(w, scale + r * w->blocks, at * 8 >> shift, different, lanes);
        const vec z = zeros ? zeros_of(w, n + r, at * 8 >> shift, different, lanes) : all(1);
        __builtin_prefetch(p + AHEAD);
        UNROLL
        for (int j = 0; j < m; j++) {
            const float *of_x = x + j * x_row;
            const ivec begin = ints_at(of_x + CHUNK / 4);
            ivec part = zeros ? (ivec){ 0 } : begin;
            part = dots(vnni, part, even, ints_at(of_x));
            part = dots(vnni, part, odd, ints_at(of_x + CHUNK / 8));
            vec exact = __builtin_convertvector(part, vec);
            if (zeros) exact = add_product(exact, z, __builtin_convertvector(begin, vec));
            sum[r * m + j] += exact * (s * load(of_x + CHUNK / 4 + VL));
        }
    }
    UNROLL
    for (int r = 0; r < R; r++) UNROLL
    for (int j = 0; j < m; j++) {
        y[j * t->y_row + r] = total(sum[r * m + j]);
    }
}

/* m rows of x with all rows of w. */
INLINE void rows(const bool vnni, const bool zeros, const int m, const fac_nbits_rows *t,
                 const float *x, float *y) {
    int64_t i = 0;
    if (m == 1)
        for (; i + TOGETHER <= t->rows; i += TOGETHER)
            tile(vnni, zeros, TOGETHER, 1, t, t->first + i, x, y + i);
    for (; i < t->rows; i++) tile(vnni, zeros, 1, m, t, t->first + i, x, y + i);
}

INLINE void all_rows(const bool vnni, const bool zeros, const fac_nbits_rows *t) {
    const int64_t x_row = rounded(t->w);
    for (int64_t j = 0; j < t->m;) {
        const int64_t left = t->m - j;
        const float *x = t->x + j * x_row;
        float *y = t->y + j * t->y_row;
        int m = left < 4 ? (int)left : 4;
        if (left >= MANY) m = MANY;
        if (m == MANY) rows(vnni, zeros, MANY, t, x, y);
        if (m == 4 && MANY != 4) rows(vnni, zeros, 4, t, x, y);
        if (m == 3) rows(vnni, zeros, 3, t, x, y);
        if (m == 2) rows(vnni, zeros, 2, t, x, y);
        if (m == 1) rows(vnni, zeros, 1, t, x, y);
        j += m;
    }
}

static void run(const fac_nbits_rows *t) {
    const bool zeros = t->w->zero || t->w->zero_number;
#if VL == 16
    if (__builtin_cpu_supports("avx512vnni")) {
        if (zeros)
            all_rows(true, true, t);
        else
            all_rows(true, false, t);
        return;
    }
#endif
    if (zeros)
        all_rows(false, true, t);
    else
        all_rows(false, false, t);
}

const fac_nbits_rounded FAC_SIMD(fac_nbits_rounded) = { rounded, round_row, run };
#else
const fac_nbits_rounded FAC_SIMD(fac_nbits_rounded) = { NULL, NULL, NULL };
#endif
