/* Look-ups in tables of sums: see backends/cpu/bits/bits_tables.h.
 *
 * AVX-512 with VBMI has tables of 64 entries, 6 channels (vpermb), AVX2 of 16, 4 channels
 * (vpshufb). Bytes are added up until they could overflow; then a pair of them, as 16 bits, is
 * added to sums of even bytes, and its upper one to those of odd bytes. */
#include "backends/cpu/bits/bits_tables.h"
#include "backends/cpu/simd/vector.h"

#if defined(__AVX2__)
enum { RUN = VL == 16 ? 7 : 4 };

#if VL == 16
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi")))
typedef __m512i bytes;
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define ADD(a, b) _mm512_add_epi8(a, b)
#define ADD_16(a, b) _mm512_add_epi16(a, b)
#define SUB_16(a, b) _mm512_sub_epi16(a, b)
#define UP_8(a) _mm512_slli_epi16(a, 8)
#define DOWN_8(a) _mm512_srli_epi16(a, 8)
#define TABLE_AT(p) _mm512_loadu_si512(p)
#define LOOK_UP(t, i) _mm512_permutexvar_epi8(i, t)
#define LOWER(a) _mm512_cvtepu16_epi32(_mm512_castsi512_si256(a))
#define UPPER(a) _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(a, 1))
#else
#define TARGET
typedef __m256i bytes;
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define ADD(a, b) _mm256_add_epi8(a, b)
#define ADD_16(a, b) _mm256_add_epi16(a, b)
#define SUB_16(a, b) _mm256_sub_epi16(a, b)
#define UP_8(a) _mm256_slli_epi16(a, 8)
#define DOWN_8(a) _mm256_srli_epi16(a, 8)
#define TABLE_AT(p) _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define LOOK_UP(t, i) _mm256_shuffle_epi8(t, i)
#define LOWER(a) _mm256_cvtepu16_epi32(_mm256_castsi256_si128(a))
#define UPPER(a) _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1))
#endif
enum { WIDTH = 4 * VL, VECTORS = FAC_TABLE_OUTPUTS / WIDTH, TABLE = VL == 16 ? 64 : 16 };

#if defined(FAC_ROLLED)
#define INLINE_TABLES static inline TARGET
#else
#define INLINE_TABLES static inline __attribute__((always_inline)) TARGET
#endif

/* The accumulators of one output vector of all pixels, and their sums in memory: an even part and
 * an odd one. */
INLINE_TABLES void flush(bytes a[RUN], uint8_t (*sums)[2 * WIDTH], const int n) {
    UNROLL
    for (int p = 0; p < n; p++) {
        uint8_t *to = sums[p];
        STORE(to, ADD_16(LOAD(to), a[p]));
        STORE(to + WIDTH, ADD_16(LOAD(to + WIDTH), DOWN_8(a[p])));
        a[p] = a[p] - a[p];
    }
}

INLINE_TABLES void put(uint8_t (*sums)[2 * WIDTH], int32_t *acc, const int n) {
    for (int p = 0; p < n; p++, acc += FAC_TABLE_OUTPUTS) {
        const bytes odd = LOAD(sums[p] + WIDTH), even = SUB_16(LOAD(sums[p]), UP_8(odd));
        STORE(acc, LOWER(even));
        STORE(acc + VL, UPPER(even));
        STORE(acc + 2 * VL, LOWER(odd));
        STORE(acc + 3 * VL, UPPER(odd));
    }
}

INLINE_TABLES void step(const uint8_t *x, int64_t x_pixel, const uint8_t *w0, const uint8_t *w1,
                        bytes a[][RUN], const int outs, const int n) {
    bytes i[2 * VECTORS];
    UNROLL
    for (int v = 0; v < VECTORS; v++) {
        i[v] = LOAD(w0 + v * WIDTH);
        if (outs > 1) i[VECTORS + v] = LOAD(w1 + v * WIDTH);
    }
    UNROLL
    for (int p = 0; p < n; p++) {
        const bytes table = TABLE_AT(x + p * x_pixel);
        UNROLL
        for (int v = 0; v < outs * VECTORS; v++) {
            a[v][p] = ADD(a[v][p], LOOK_UP(table, i[v]));
            __asm__("" : "+v"(a[v][p]));
        }
    }
}

INLINE_TABLES void flush_all(bytes a[][RUN], uint8_t (*sums)[RUN][2 * WIDTH], const int vectors,
                             const int n) {
    UNROLL
    for (int v = 0; v < vectors; v++) flush(a[v], sums[v], n);
}

INLINE_TABLES void lookup_of(const fac_bit_lookup *t, const int outs, const int n) {
    bytes a[2 * VECTORS][RUN];
    uint8_t sums[2 * VECTORS][RUN][2 * WIDTH] __attribute__((aligned(64)));
    const uint8_t *w0 = t->w0, *w1 = t->w1;
    const int64_t x_pixel = t->x_pixel, x_column = t->x_column;
    const int groups = t->groups, S = t->S, most = t->flush;
    int left = most;
    memset(sums, 0, sizeof sums);
    UNROLL
    for (int v = 0; v < outs * VECTORS; v++) {
        UNROLL
        for (int p = 0; p < n; p++) a[v][p] = LOAD(sums[0][0]);
    }
    for (int r = 0; r < t->R; r++) {
        const uint8_t *row = t->x + r * t->x_row;
        for (int g = 0; g < groups; g++, row += TABLE) {
            const uint8_t *x = row;
            for (int s = 0; s < S; s++, x += x_column) {
                step(x, x_pixel, w0, w1, a, outs, n);
                w0 += FAC_TABLE_OUTPUTS;
                if (outs > 1) w1 += FAC_TABLE_OUTPUTS;
                if (--left) continue;
                left = most;
                flush_all(a, sums, outs * VECTORS, n);
            }
        }
    }
    flush_all(a, sums, outs * VECTORS, n);
    for (int v = 0; v < outs * VECTORS; v++) {
        int32_t *acc = v < VECTORS ? t->acc0 : t->acc1;
        put(sums[v], acc + v % VECTORS * WIDTH, n);
    }
}

#if VL == 16
#define CASE(k)                                                                                    \
    case k:                                                                                        \
        if (t->w1)                                                                                 \
            lookup_of(t, 2, k);                                                                    \
        else                                                                                       \
            lookup_of(t, 1, k);                                                                    \
        break;
#else
/* Accumulators of 64 outputs fill half of the registers. */
#define CASE(k)                                                                                    \
    case k:                                                                                        \
        lookup_of(t, 1, k);                                                                        \
        break;
#endif
TARGET static void lookup(const fac_bit_lookup *t) {
    switch (t->n) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#if VL == 16
        CASE(5)
        CASE(6)
        CASE(7)
#endif
    }
}

/* ---- tables ---- */

#if VL == 16
enum { GROUP = 6, EACH = 8, BYTES = 6, MASK = 63, PART = 64, EVEN = 1 }; /* 8 groups in 6 bytes */
#else
enum { GROUP = 4, EACH = 4, BYTES = 4, MASK = 255, PART = 32, EVEN = 2 }; /* pairs of groups */
#endif
enum { SHIFT = GROUP * EVEN };

INLINE_TABLES void build_of(const fac_bit_build *t, const int planes) {
    const int all = t->groups / EVEN;
    for (int64_t p = 0; p < t->pixels; p++) {
        uint8_t *to = t->to + p * t->to_pixel;
        for (int g = 0; g < all; g += EACH) {
            uint64_t x[FAC_TABLE_PLANES] = { 0 };
            const int n = all - g < EACH ? all - g : EACH;
            for (int j = 0; j < planes; j++)
                memcpy(&x[j], (const uint8_t *)(t->bits[j] + p * t->bits_pixel) + g / EACH * BYTES,
                       sizeof x[j]);
            for (int k = 0; k < n; k++, to += PART) {
                bytes sum = LOAD(t->parts[0] + (x[0] & MASK) * PART);
                UNROLL
                for (int j = 1; j < planes; j++)
                    sum = ADD(sum, LOAD(t->parts[j] + (x[j] & MASK) * PART));
                STORE(to, sum);
                for (int j = 0; j < planes; j++) x[j] >>= SHIFT;
            }
        }
    }
}

TARGET static void build(const fac_bit_build *t) {
    if (t->planes == 1)
        build_of(t, 1);
    else if (t->planes == 2)
        build_of(t, 2);
    else
        build_of(t, t->planes);
}

extern const fac_bit_table_kernels FAC_SIMD(fac_bit_tables);
const fac_bit_table_kernels FAC_SIMD(fac_bit_tables) = { .group = GROUP,
                                                         .table = TABLE,
                                                         .even = EVEN,
                                                         .codes = MASK + 1,
                                                         .part = PART,
                                                         .row = WIDTH,
                                                         .run = RUN,
                                                         .pairs = VL == 16,
                                                         .share = VL == 16 ? 14 : 7.5,
                                                         .lookup = lookup,
                                                         .build = build };
#else
typedef int no_tables; /* without a look-up of bytes */
#endif
