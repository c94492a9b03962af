/* Tiles of convolutions of bits: see backends/cpu/bits/bits.h.
 *
 * With VPOPCNTDQ one instruction counts the bits of each lane: and, popcount,
     add.  Elsewhere bits are
 * counted in bytes (a table of 16 entries and vpshufb, cnt of NEON, or shifts and masks), which are
 * added up for up to 31 words before they could overflow. */
#include "backends/cpu/bits/bits.h"
#include "backends/cpu/simd/vector.h"

typedef uint32_t uvec __attribute__((vector_size(VL * 4)));

#if VL == 16
enum { RUN = 7 };
#else
enum { RUN = 2 };
#endif
enum { WORDS = 31 }; /* whose bytes add up to less than 256 */
#include "backends/cpu/simd/bits/bits_kinds.h"

INLINE uvec load_bits(const uint32_t *p) {
    uvec v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE uvec all_bits(uint32_t x) { return x - (uvec){ 0 }; }
INLINE uvec held_bits(uvec v) { return (uvec)held((vec)v); }

/* ---- bits of bytes ---- */

INLINE uvec byte_counts(uvec v) {
#if defined(__AVX512BW__)
    const __m512i table =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m512i low = _mm512_set1_epi8(15), x = (__m512i)v;
    const __m512i a = _mm512_shuffle_epi8(table, _mm512_and_si512(x, low));
    const __m512i b = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi32(x, 4), low));
    return (uvec)_mm512_add_epi8(a, b);
#elif defined(__AVX2__)
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1,
                                           2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15), x = (__m256i)v;
    const __m256i a = _mm256_shuffle_epi8(table, _mm256_and_si256(x, low));
    const __m256i b = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi32(x, 4), low));
    return (uvec)_mm256_add_epi8(a, b);
#elif defined(__aarch64__)
    return (uvec)vcntq_u8((uint8x16_t)v);
#else
    v -= (v >> 1) & 0x55555555u;
    v = (v & 0x33333333u) + ((v >> 2) & 0x33333333u);
    return (v + (v >> 4)) & 0x0f0f0f0fu;
#endif
}

/* The four bytes of each lane. */
INLINE uvec byte_sums(uvec v) {
    v = (v & 0x00ff00ffu) + ((v >> 8) & 0x00ff00ffu);
    return (v & 0xffffu) + (v >> 16);
}

INLINE void flush(uvec a[][2], int32_t *acc, const int n) {
    UNROLL
    for (int p = 0; p < n; p++)
        for (int k = 0; k < 2; k++) {
            uvec sum;
            int32_t *to = acc + (2 * p + k) * VL;
            memcpy(&sum, to, sizeof sum);
            sum += byte_sums(a[p][k]);
            memcpy(to, &sum, sizeof sum);
            a[p][k] = (uvec){ 0 };
        }
}

INLINE void step_bytes(uvec a[][2], const uint32_t *x, int64_t x_pixel, uvec w0, uvec w1,
                       const int n) {
    UNROLL
    for (int p = 0; p < n; p++) {
        const uvec v = all_bits(x[p * x_pixel]);
        a[p][0] = held_bits(a[p][0] + byte_counts(v & w0));
        a[p][1] = held_bits(a[p][1] + byte_counts(v & w1));
    }
}

INLINE void tile_of_bytes(const fac_bit_tile *t, const int runs, const int n) {
    uvec a[2][RUN][2];
    const uint32_t *w = t->w;
    int since = 0;
    for (int q = 0; q < runs; q++) memset(a[q], 0, sizeof a[q]);
    memset(t->acc0, 0, sizeof(uvec) * 2 * (size_t)n);
    if (runs > 1) memset(t->acc1, 0, sizeof(uvec) * 2 * (size_t)n);
    for (int r = 0; r < t->R; r++)
        for (int s = 0; s < t->S; s++)
            for (int k = 0; k < t->words;) {
                const int64_t at = r * t->x_row + s * t->x_column + k;
                const int left = t->words - k, part = left < WORDS - since ? left : WORDS - since;
                for (int i = 0; i < part; i++, w += 2 * VL) {
                    const uvec w0 = load_bits(w), w1 = load_bits(w + VL);
                    step_bytes(a[0], t->x0 + at + i, t->x_pixel, w0, w1, n);
                    if (runs > 1) step_bytes(a[1], t->x1 + at + i, t->x_pixel, w0, w1, n);
                }
                k += part;
                since += part;
                if (since < WORDS) continue;
                flush(a[0], t->acc0, n);
                if (runs > 1) flush(a[1], t->acc1, n);
                since = 0;
            }
    flush(a[0], t->acc0, n);
    if (runs > 1) flush(a[1], t->acc1, n);
}

#define TILE tile_plain
#define TARGET
#define BODY tile_of_bytes
#include "backends/cpu/simd/bits/bits_tile.h"

/* ---- bits of lanes ---- */

#if VL == 16 && !defined(FAC_ROLLED)
#define POPCOUNT __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vpopcntdq")))
#define INLINE_POPCOUNT static inline __attribute__((always_inline)) POPCOUNT

INLINE_POPCOUNT void step_lanes(__m512i a[][2], const uint32_t *x, int64_t x_pixel, __m512i w0,
                                __m512i w1, const int n) {
    UNROLL
    for (int p = 0; p < n; p++) {
        const __m512i v = _mm512_set1_epi32((int)x[p * x_pixel]);
        a[p][0] = _mm512_add_epi32(a[p][0], _mm512_popcnt_epi32(_mm512_and_si512(v, w0)));
        __asm__("" : "+v"(a[p][0]));
        a[p][1] = _mm512_add_epi32(a[p][1], _mm512_popcnt_epi32(_mm512_and_si512(v, w1)));
        __asm__("" : "+v"(a[p][1]));
    }
}

INLINE_POPCOUNT void put_lanes(__m512i a[][2], int32_t *acc, const int n) {
    UNROLL
    for (int p = 0; p < n; p++) {
        _mm512_storeu_si512(acc + 2 * p * VL, a[p][0]);
        _mm512_storeu_si512(acc + (2 * p + 1) * VL, a[p][1]);
    }
}

INLINE_POPCOUNT void tile_of_lanes(const fac_bit_tile *t, const int runs, const int n) {
    __m512i a[2][RUN][2];
    const uint32_t *w = t->w;
    UNROLL
    for (int p = 0; p < n; p++)
        a[0][p][0] = a[0][p][1] = a[1][p][0] = a[1][p][1] = _mm512_setzero_si512();
    for (int r = 0; r < t->R; r++)
        for (int s = 0; s < t->S; s++) {
            const uint32_t *x0 = t->x0 + r * t->x_row + s * t->x_column;
            const uint32_t *x1 = runs > 1 ? t->x1 + r * t->x_row + s * t->x_column : x0;
            for (int k = 0; k < t->words; k++, w += 2 * VL) {
                const __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + VL);
                step_lanes(a[0], x0 + k, t->x_pixel, w0, w1, n);
                if (runs > 1) step_lanes(a[1], x1 + k, t->x_pixel, w0, w1, n);
            }
        }
    put_lanes(a[0], t->acc0, n);
    if (runs > 1) put_lanes(a[1], t->acc1, n);
}

#define TILE tile_popcount
#define TARGET POPCOUNT
#define BODY tile_of_lanes
#include "backends/cpu/simd/bits/bits_tile.h"
#endif

#include "backends/cpu/simd/bits/bits_levels.h"

static void count(const uint32_t *x, int64_t x_pixel, int words, int64_t pixels, int32_t *to) {
    for (int64_t p = 0; p < pixels; p++, x += x_pixel) {
        int sum = 0, k = 0;
        for (uint64_t two; k + 2 <= words; k += 2) {
            memcpy(&two, x + k, sizeof two);
            sum += __builtin_popcountll(two);
        }
        for (; k < words; k++) sum += __builtin_popcount(x[k]);
        to[p] = sum;
    }
}

#include "backends/cpu/simd/bits/bits_finish.h"
#include "backends/cpu/simd/bits/bits_words.h"

extern const fac_bit_kernels FAC_SIMD(fac_bits);
const fac_bit_kernels FAC_SIMD(fac_bits) = {
#if VL == 16
    .name = "tables",
    .share = 8,
#elif defined(__AVX2__)
    .name = "tables",
    .share = 6,
    .end = 100,
#else
    .name = "portable",
    .share = 2.5,
#endif
    .lanes = VL,
    .run = RUN,
    .tile = tile_plain,
    .finish = finish,
    .words = codes_of_words,
    .pack = pack,
    .count = count
};
#if VL == 16
#if defined(FAC_ROLLED)
#define tile_popcount tile_plain
#endif
extern const fac_bit_kernels fac_bits_popcount;
const fac_bit_kernels fac_bits_popcount = { .name = "popcount",
                                            .share = 17,
                                            .lanes = VL,
                                            .run = RUN,
                                            .tile = tile_popcount,
                                            .finish = finish,
                                            .words = codes_of_words,
                                            .pack = pack,
                                            .count = count };
#endif
