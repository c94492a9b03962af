/* Tiles of products of bytes: see backends/cpu/bytes/bytes.h.
 *
 * With VNNI one instruction multiplies four pairs of bytes and adds them to a lane (vpdpbusd).
 * Elsewhere bytes are widened to 16 bits, even ones and odd ones, and vpmaddwd adds two exact
 * products each: vpmaddubsw would be half of the work, but its sums saturate at 16 bits. */
#include "backends/cpu/bytes/bytes.h"
#include "backends/cpu/simd/ints.h"

#if VL == 16
enum { RUN = 7 };
#else
enum { RUN = 2 };
#endif

/* ---- the end of a tile ---- */

INLINE vec scaled(ivec acc, vec factor, float lo, float hi) {
    return clip(__builtin_convertvector(acc, vec) * factor, lo, hi);
}

/* The nearest whole numbers, of halves the even ones: |v| is at most 511. */
INLINE ivec whole(vec v) {
#if VL == 16
    return (ivec)_mm512_cvtps_epi32((__m512)v);
#elif defined(__AVX2__)
    return (ivec)_mm256_cvtps_epi32((__m256)v);
#else
    const float magic = 12582912.0f;
    return __builtin_convertvector((v + magic) - magic, ivec);
#endif
}

/* VL bytes as numbers. */
INLINE ivec wide_bytes(const uint8_t *p) {
#if VL == 16
    return (ivec)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif defined(__AVX2__)
    return (ivec)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
#else
    ivec v;
    for (int k = 0; k < VL; k++) v[k] = p[k];
    return v;
#endif
}

/* a b + c with one rounding. */
INLINE vec fma_of(vec a, vec b, vec c) {
#if VL == 16
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    for (int k = 0; k < VL; k++) c[k] = (float)((double)a[k] * (double)b[k] + (double)c[k]);
    return c;
#endif
}

/* Bytes v of a convolution and those at z, added. */
INLINE ivec added(const fac_byte_sum *s, ivec v, const uint8_t *z) {
    ivec w = wide_bytes(z);
    if (s->sign) w = (w << 24) >> 24;
    vec a = __builtin_convertvector(v, vec), b = __builtin_convertvector(w, vec);
    const vec rv = all(s->rv), rz = all(s->rz), off = all(s->off);
    const vec y =
        s->z_first ? fma_of(b, rz, fma_of(a, rv, off)) : fma_of(a, rv, fma_of(b, rz, off));
    return whole(clip(y, s->lo, s->hi));
}

INLINE void put_bytes(uint8_t *to, ivec v) {
#if defined(__AVX512F__)
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8((__m512i)v));
#elif defined(__AVX2__)
    const __m256i bytes = (__m256i)(v & 255);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(words, words));
#else
    for (int k = 0; k < VL; k++) to[k] = (uint8_t)v[k];
#endif
}

INLINE void finish(const fac_byte_tile *t, ivec a0, ivec a1, uint8_t *y, const uint8_t *z) {
    uint8_t some[8 * VL], others[2 * VL];
    uint8_t *to = t->columns == 2 * VL ? y : some;
    const int size = t->factor ? 1 : 4;
    if (t->factor) {
        a0 = whole(scaled(a0, load(t->factor), t->lo, t->hi)) + t->y_zero;
        a1 = whole(scaled(a1, load(t->factor + VL), t->lo, t->hi)) + t->y_zero;
        if (t->sum) {
            if (to == some) z = memcpy(others, z, (size_t)t->columns);
            a0 = added(t->sum, a0, z);
            a1 = added(t->sum, a1, z + VL);
        }
        put_bytes(to, a0);
        put_bytes(to + VL, a1);
    } else {
        memcpy(to, &a0, sizeof a0);
        memcpy(to + 4 * VL, &a1, sizeof a1);
    }
    if (to == some) memcpy(y, some, (size_t)(t->columns * size));
}

#if VL == 16
#include "backends/cpu/simd/bytes/bytes_finish.h"
#define BY_TWO 1
#elif defined(__AVX2__)
#include "backends/cpu/simd/bytes/bytes_finish_avx2.h"
#define BY_TWO 1
#else
#define BY_TWO 0
#endif

/* ---- dot products of four ---- */

#if VL == 8 && defined(__AVX2__)
/* With the mask out of memory: sums, weights and pixels take all sixteen registers. */
INLINE __m256i even_bytes(__m256i x) {
    static const int32_t mask[8]
        __attribute__((aligned(32))) = { 0x00ff00ff, 0x00ff00ff, 0x00ff00ff, 0x00ff00ff,
                                         0x00ff00ff, 0x00ff00ff, 0x00ff00ff, 0x00ff00ff };
#if defined(FAC_ROLLED)
    return _mm256_and_si256(x, _mm256_load_si256((const __m256i *)(const void *)mask));
#else
    __m256i even;
    __asm__("vpand %2, %1, %0" : "=x"(even) : "x"(x), "m"(*(const __m256i *)(const void *)mask));
    return even;
#endif
}
#endif

#if VL == 16
#define EVEN(x) _mm512_and_si512((__m512i)(x), _mm512_set1_epi32(0x00ff00ff))
#define ODD(x) _mm512_srli_epi16((__m512i)(x), 8)
#define EVEN_SIGNED(w) _mm512_srai_epi16(_mm512_slli_epi16((__m512i)(w), 8), 8)
#define ODD_SIGNED(w) _mm512_srai_epi16((__m512i)(w), 8)
#define PAIRS(x, w) (ivec) _mm512_madd_epi16(x, w)
#define WIDE __m512i
#elif defined(__AVX2__)
#define EVEN(x) even_bytes((__m256i)(x))
#define ODD(x) _mm256_srli_epi16((__m256i)(x), 8)
#define EVEN_SIGNED(w) _mm256_srai_epi16(_mm256_slli_epi16((__m256i)(w), 8), 8)
#define ODD_SIGNED(w) _mm256_srai_epi16((__m256i)(w), 8)
#define PAIRS(x, w) (ivec) _mm256_madd_epi16(x, w)
#define WIDE __m256i
#elif defined(__SSE2__) && VL == 4
#define EVEN(x) _mm_and_si128((__m128i)(x), _mm_set1_epi32(0x00ff00ff))
#define ODD(x) _mm_srli_epi16((__m128i)(x), 8)
#define EVEN_SIGNED(w) _mm_srai_epi16(_mm_slli_epi16((__m128i)(w), 8), 8)
#define ODD_SIGNED(w) _mm_srai_epi16((__m128i)(w), 8)
#define PAIRS(x, w) (ivec) _mm_madd_epi16(x, w)
#define WIDE __m128i
#endif

#if defined(WIDE)
typedef struct weights {
    WIDE even, odd;
} weights;
INLINE weights weights_of(const int8_t *p) {
    const ivec w = load_int(p);
    return (weights){ EVEN_SIGNED(w), ODD_SIGNED(w) };
}
INLINE ivec dot(ivec a, ivec x, const weights *w) {
    return a + PAIRS(EVEN(x), w->even) + PAIRS(ODD(x), w->odd);
}
#else
typedef struct weights {
    ivec w;
} weights;
INLINE weights weights_of(const int8_t *p) { return (weights){ load_int(p) }; }
INLINE ivec dot(ivec a, ivec x, const weights *w) {
    for (int k = 0; k < 4; k++) {
        const ivec u = (x >> 8 * k) & 255;
        a += u * ((w->w << (24 - 8 * k)) >> 24);
    }
    return a;
}
#endif

#define TILE tile_plain
#define TARGET
#define DOT(a, x, w) dot(a, x, &(w))
#define WEIGHTS weights
#define WEIGHTS_OF weights_of
#include "backends/cpu/simd/bytes/bytes_tile.h"

#if VL == 16
#define TILE tile_vnni
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vnni")))
#define DOT(a, x, w) (ivec) _mm512_dpbusd_epi32((__m512i)(a), (__m512i)(x), (__m512i)(w))
#define WEIGHTS ivec
#define WEIGHTS_OF load_int
#include "backends/cpu/simd/bytes/bytes_tile.h"
#endif

/* ---- depthwise ---- */

INLINE ivec times(ivec x, ivec w) {
#if defined(WIDE)
    return PAIRS((WIDE)x, (WIDE)w); /* both fit into the lower 16 bits */
#else
    return x * w;
#endif
}

INLINE void put_row(const fac_byte_row *t, ivec a, uint8_t *y, int c, int n) {
    uint8_t some[4 * VL];
    if (t->factor) {
        const ivec v = whole(scaled(a, load(t->factor + c), t->lo, t->hi)) + t->y_zero;
        if (n == VL)
            put_bytes(y + c, v);
        else {
            put_bytes(some, v);
            memcpy(y + c, some, (size_t)n);
        }
    } else {
        memcpy(some, &a, sizeof a);
        memcpy(y + 4 * c, some, (size_t)n * 4);
    }
}

enum { STRIP = 4 }; /* pixels of a row at a time */

#define ROW row_plain
#define TARGET
#define ADD(a, x, w) ((a) + times(x, w))
#include "backends/cpu/simd/bytes/bytes_row.h"

#if VL == 16
#define ROW row_vnni
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vnni")))
#define ADD(a, x, w) (ivec) _mm512_dpwssd_epi32((__m512i)(a), (__m512i)(x), (__m512i)(w))
#include "backends/cpu/simd/bytes/bytes_row.h"
#endif

extern fac_byte_pair_kernel FAC_SIMD(fac_byte_pair);
extern fac_byte_most_kernel FAC_SIMD(fac_byte_most);
extern fac_byte_sum_kernel FAC_SIMD(fac_byte_sum);
extern fac_byte_quantize_kernel FAC_SIMD(fac_byte_quantize);
extern fac_byte_dequantize_kernel FAC_SIMD(fac_byte_dequantize);
extern fac_byte_table_kernel FAC_SIMD(fac_byte_table);
#define SHARED                                                                                     \
    .lanes = VL, .run = RUN, .pair = FAC_SIMD(fac_byte_pair), .most = FAC_SIMD(fac_byte_most),     \
    .sum = FAC_SIMD(fac_byte_sum), .quantize = FAC_SIMD(fac_byte_quantize),                        \
    .dequantize = FAC_SIMD(fac_byte_dequantize), .table = FAC_SIMD(fac_byte_table)
#if VL == 8 && defined(__AVX2__)
extern fac_byte_depthwise_kernel FAC_SIMD(fac_byte_depthwise_pairs);
#define DEPTHWISE .depthwise = FAC_SIMD(fac_byte_depthwise_pairs), .by_taps = true
#else
#define DEPTHWISE .depthwise = NULL
#endif
extern const fac_byte_kernels FAC_SIMD(fac_bytes);
const fac_byte_kernels FAC_SIMD(fac_bytes) = {
    .name = "widened", .share = 1.2, .tile = tile_plain, .row = row_plain, DEPTHWISE, SHARED
};
#if VL == 16
extern fac_byte_depthwise_kernel fac_byte_depthwise_vnni;
extern const fac_byte_kernels fac_bytes_vnni;
const fac_byte_kernels fac_bytes_vnni = { .name = "vnni",
                                          .share = 3.6,
                                          .tile = tile_vnni,
                                          .row = row_vnni,
                                          .depthwise = fac_byte_depthwise_vnni,
                                          SHARED };
#endif
