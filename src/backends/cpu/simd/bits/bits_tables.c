/* Look-ups in tables of sums: see backends/cpu/bits/bits_tables.h.
 *
 * AVX-512 with VBMI has tables of 64 entries, 6 channels (vpermb), AVX2 of 16, 4 channels
 * (vpshufb). Bytes are added up until they could overflow; then a pair of them, as 16 bits, is
 * added to sums of even bytes, and its upper one to those of odd bytes. */
#include "backends/cpu/bits/bits_tables.h"
#include "backends/cpu/simd/vector.h"

#if defined(__AVX2__)
#include "backends/cpu/simd/bits/bits_kinds.h"

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
#define ALL_16(x) _mm512_set1_epi16((short)(x))
#define XOR(a, b) _mm512_xor_si512(a, b)
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
#define ALL_16(x) _mm256_set1_epi16((short)(x))
#define XOR(a, b) _mm256_xor_si256(a, b)
#define TABLE_AT(p) _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define LOOK_UP(t, i) _mm256_shuffle_epi8(t, i)
#define LOWER(a) _mm256_cvtepu16_epi32(_mm256_castsi256_si128(a))
#define UPPER(a) _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1))
#endif
enum { WIDTH = 4 * VL, VECTORS = FAC_TABLE_OUTPUTS / WIDTH, TABLE = VL == 16 ? 64 : 16 };
enum { PIXEL = 2 * FAC_TABLE_OUTPUTS }; /* bytes of a pixel's sums */
enum { CHUNK = VL == 16 ? 4 : 7 };      /* groups at once: look-ups of nine taps fill a byte */

#if defined(FAC_ROLLED)
#define INLINE_TABLES static inline TARGET
#else
#define INLINE_TABLES static inline __attribute__((always_inline)) TARGET
#endif

/* ---- sums: of each vector of outputs an even part and an odd one ---- */

INLINE_TABLES void flush(bytes a[][RUN], uint8_t *sums0, uint8_t *sums1, const int outs,
                         const int n) {
    UNROLL
    for (int v = 0; v < outs * VECTORS; v++) {
        uint8_t *to = (v < VECTORS ? sums0 : sums1) + v % VECTORS * 2 * WIDTH;
        UNROLL
        for (int p = 0; p < n; p++, to += PIXEL) {
            STORE(to, ADD_16(LOAD(to), a[v][p]));
            STORE(to + WIDTH, ADD_16(LOAD(to + WIDTH), DOWN_8(a[v][p])));
            a[v][p] = SUB_16(a[v][p], a[v][p]);
        }
    }
}

/* One tap: a table for each pixel, in memory. */
INLINE_TABLES void tap(const uint8_t *x, int64_t x_pixel, const uint8_t *w0, const uint8_t *w1,
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

enum { TAPS = 3, NEAR = RUN + TAPS - 1 };
#if VL == 16
/* Three taps side by side: their pixels share tables, which stay in registers. */
INLINE_TABLES void taps(const uint8_t *x, int64_t x_pixel, const uint8_t *w0, const uint8_t *w1,
                        bytes a[][RUN], const int outs, const int n) {
    bytes table[NEAR];
    UNROLL
    for (int p = 0; p < n + TAPS - 1; p++, x += x_pixel) {
        table[p] = LOAD(x);
        __asm__("" : "+r"(x)); /* else offsets of all pixels would take registers */
    }
    UNROLL
    for (int s = 0; s < TAPS; s++) {
        UNROLL
        for (int v = 0; v < outs; v++) {
            const bytes i = LOAD((v ? w1 : w0) + s * WIDTH);
            UNROLL
            for (int p = 0; p < n; p++) {
                a[v][p] = ADD(a[v][p], LOOK_UP(table[p + s], i));
                __asm__("" : "+v"(a[v][p]));
            }
        }
    }
}
#else
/* Three taps side by side; registers have no room for their tables. */
INLINE_TABLES void taps(const uint8_t *x, int64_t x_pixel, const uint8_t *w0, const uint8_t *w1,
                        bytes a[][RUN], const int outs, const int n) {
    UNROLL
    for (int s = 0; s < TAPS; s++, x += x_pixel) {
        tap(x, x_pixel, w0 + s * FAC_TABLE_OUTPUTS, w1 + s * FAC_TABLE_OUTPUTS, a, outs, n);
        __asm__("" : "+r"(x)); /* else offsets of all pixels would take registers */
    }
}
#endif

/* A row of tables of groups from .. end - 1; so many more look-ups fit into bytes. */
INLINE_TABLES int row_of(const fac_bit_lookup *t, const uint8_t *x, const uint8_t *w0,
                         const uint8_t *w1, int groups, int left, bytes a[][RUN], uint8_t *sums0,
                         uint8_t *sums1, const int outs, const int n, const bool three) {
    const int64_t x_pixel = t->x_pixel, x_column = t->x_column;
    for (int g = 0; g < groups; g++, x += TABLE) {
        if (three) {
            if (left < TAPS) {
                flush(a, sums0, sums1, outs, n);
                left = t->flush;
            }
            taps(x, x_pixel, w0, w1, a, outs, n);
            left -= TAPS;
            w0 += TAPS * FAC_TABLE_OUTPUTS;
            w1 += TAPS * FAC_TABLE_OUTPUTS;
            continue;
        }
        for (int s = 0; s < t->S; s++, left--) {
            if (!left) {
                flush(a, sums0, sums1, outs, n);
                left = t->flush;
            }
            tap(x + s * x_column, x_pixel, w0, w1, a, outs, n);
            w0 += FAC_TABLE_OUTPUTS;
            w1 += FAC_TABLE_OUTPUTS;
        }
    }
    return left;
}

/* Few groups of tables at a time, of all rows, so that they come from the nearest cache. */
INLINE_TABLES void lookup_of(const fac_bit_lookup *t, const int outs, const int n,
                             const bool three) {
    const int64_t each = (int64_t)t->S * FAC_TABLE_OUTPUTS, row = t->groups * each;
    bytes a[2 * VECTORS][RUN];
    UNROLL
    for (int v = 0; v < outs * VECTORS; v++) {
        UNROLL
        for (int p = 0; p < n; p++) a[v][p] = ALL_16(0);
    }
    for (int g = 0; g < t->groups; g += CHUNK) {
        const int groups = t->groups - g < CHUNK ? t->groups - g : CHUNK;
        for (int y = 0; y < t->rows; y++) {
            uint8_t *sums0 = (uint8_t *)t->sums0 + y * FAC_BIT_RUN * PIXEL;
            uint8_t *sums1 = (uint8_t *)t->sums1 + y * FAC_BIT_RUN * PIXEL;
            int left = t->flush;
            for (int r = 0; r < t->R; r++) {
                const uint8_t *x = t->x[y * t->y_row + r * t->x_row] + t->from + g * TABLE;
                const int64_t at = r * row + g * each;
                left = row_of(t, x, t->w0 + at, outs > 1 ? t->w1 + at : t->w0, groups, left, a,
                              sums0, sums1, outs, n, three);
            }
            flush(a, sums0, sums1, outs, n);
        }
    }
}

INLINE_TABLES bool near_taps(const fac_bit_lookup *t) {
    return t->S == TAPS && t->x_column == t->x_pixel && t->flush >= TAPS;
}
#if VL == 16
#define CASE(k)                                                                                    \
    case k:                                                                                        \
        if (near_taps(t) && t->w1)                                                                 \
            lookup_of(t, 2, k, true);                                                              \
        else if (near_taps(t))                                                                     \
            lookup_of(t, 1, k, true);                                                              \
        else if (t->w1)                                                                            \
            lookup_of(t, 2, k, false);                                                             \
        else                                                                                       \
            lookup_of(t, 1, k, false);                                                             \
        break;
#else
/* Accumulators of 64 outputs fill half of the registers. */
#define CASE(k)                                                                                    \
    case k:                                                                                        \
        if (near_taps(t))                                                                          \
            lookup_of(t, 1, k, true);                                                              \
        else                                                                                       \
            lookup_of(t, 1, k, false);                                                             \
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

/* ---- what becomes of the sums ---- */

INLINE_TABLES bytes odd_of(const uint8_t *sums) { return LOAD(sums + WIDTH); }
INLINE_TABLES bytes even_of(const uint8_t *sums) { return SUB_16(LOAD(sums), UP_8(odd_of(sums))); }

TARGET static void put(const uint16_t *from, int n, int32_t *acc) {
    const uint8_t *sums = (const uint8_t *)from;
    for (int k = 0; k < n * VECTORS; k++, sums += 2 * WIDTH, acc += WIDTH) {
        const bytes odd = odd_of(sums), even = even_of(sums);
        STORE(acc, LOWER(even));
        STORE(acc + VL, UPPER(even));
        STORE(acc + 2 * VL, LOWER(odd));
        STORE(acc + 3 * VL, UPPER(odd));
    }
}

/* 32 outputs, as 2 sum - of the window, inverted where codes fall. */
enum { OF_HALF = 3 - VL / 8 }; /* one vector, or two */
typedef struct half {
    bytes d[OF_HALF];
} half;

INLINE_TABLES half sums_of(const uint8_t *sums, int k) {
    half h;
#if VL == 16
    h.d[0] = k ? odd_of(sums) : even_of(sums);
#else
    h.d[0] = even_of(sums + k * 2 * WIDTH);
    h.d[1] = odd_of(sums + k * 2 * WIDTH);
#endif
    return h;
}

INLINE_TABLES half half_of(const uint8_t *sums, int k, bytes window, const int16_t *invert) {
    half h = sums_of(sums, k);
    for (int i = 0; i < OF_HALF; i++)
        h.d[i] = XOR(SUB_16(ADD_16(h.d[i], h.d[i]), window), LOAD(invert + 2 * VL * i));
    return h;
}

INLINE_TABLES unsigned half_at_least(half h, const int16_t *limit) {
#if VL == 16
    return _mm512_cmpge_epi16_mask(h.d[0], LOAD(limit));
#else
    const bytes a = _mm256_cmpgt_epi16(LOAD(limit), h.d[0]);
    const bytes b = _mm256_cmpgt_epi16(LOAD(limit + 2 * VL), h.d[1]);
    const bytes less = _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xd8);
    return ~(unsigned)_mm256_movemask_epi8(less);
#endif
}

INLINE_TABLES void compare_as(const fac_bit_compare *t, const int kind, const int thresholds) {
    const fac_bit_levels *l = t->codes;
    int planes = kind == TWO ? 2 : 1;
    if (kind == ANY) planes = l->planes;
    for (int p = 0; p < t->n; p++) {
        const uint8_t *sums = (const uint8_t *)t->sums + p * PIXEL;
        const bytes window = ALL_16(t->windows[p]);
        for (int k = 0; k < t->words; k++) {
            const int16_t *limits = t->limits + k * 32;
            const half h = half_of(sums, k, window, limits);
            unsigned m[FAC_BIT_THRESHOLDS], bits[FAC_BIT_PLANES];
            UNROLL
            for (int i = 0; i < thresholds; i++)
                m[i] = half_at_least(h, limits + (i + 1) * t->limits_row);
            bits_as(l, kind, m, bits);
            for (int j = 0; j < planes; j++)
                t->q[p * t->q_pixel + j * t->q_plane + k] = bits[j] & t->valid[k];
        }
    }
}

INLINE_TABLES vec as_numbers(const half *h, int i) {
    const ivec sum = (ivec)(i % 2 ? UPPER(h->d[i / 2]) : LOWER(h->d[i / 2]));
    return __builtin_convertvector(sum, vec);
}

/* The bits of 32 outputs of a pixel in each plane; half: what half of the window has. */
INLINE_TABLES void number_bits(const fac_bit_compare *t, const half h[], int k, float half_window,
                               const int kind, const int of_weights,
                               unsigned bits[FAC_BIT_PLANES]) {
    unsigned part[FAC_BIT_PLANES] = { 0 };
    int planes = kind == TWO ? 2 : 1;
    if (kind == ANY) planes = t->codes->planes;
    for (int j = 0; j < FAC_BIT_PLANES; j++) bits[j] = 0;
    UNROLL
    for (int i = 0; i < 2 * OF_HALF; i++) {
        const int at = k * 32 + i * VL;
        vec y = load(t->b + at);
        UNROLL
        for (int m = 0; m < of_weights; m++)
            y += load(t->f + m * t->f_row + at) * (2 * t->u * (as_numbers(&h[m], i) - half_window));
        if (t->relu) y = vmax(y, all(0));
        vector_bits(t->codes, y, kind, part);
        for (int j = 0; j < planes; j++) bits[j] |= (part[j] & LANES) << i * VL;
    }
}

INLINE_TABLES void numbers_as(const fac_bit_compare *t, const int kind, const int of_weights) {
    for (int p = 0; p < t->n; p++)
        for (int k = 0; k < t->words; k++) {
            half h[FAC_BIT_PLANES];
            unsigned bits[FAC_BIT_PLANES];
            for (int m = 0; m < of_weights; m++)
                h[m] = sums_of((const uint8_t *)(t->sums + m * t->plane) + p * PIXEL, k);
            number_bits(t, h, k, 0.5f * (float)t->windows[p], kind, of_weights, bits);
            for (int j = 0; j < t->codes->planes; j++)
                t->q[p * t->q_pixel + j * t->q_plane + k] = bits[j] & t->valid[k];
        }
}

TARGET static void numbers(const fac_bit_compare *t) {
    const int kind = kind_of(t->codes);
    if (kind == TWO && t->of_weights == 2)
        numbers_as(t, TWO, 2);
    else if (kind == ONE && t->of_weights == 2)
        numbers_as(t, ONE, 2);
    else if (kind == SIGNS)
        numbers_as(t, SIGNS, t->of_weights);
    else
        numbers_as(t, ANY, t->of_weights);
}

TARGET static void compare(const fac_bit_compare *t) {
    const int kind = kind_of(t->codes);
    if (!t->limits)
        numbers(t);
    else if (kind == TWO)
        compare_as(t, TWO, 3);
    else if (kind == ANY)
        compare_as(t, ANY, t->codes->thresholds);
    else
        compare_as(t, ONE, 1);
}

#include "backends/cpu/simd/bits/bits_build.h"

extern const fac_bit_table_kernels FAC_SIMD(fac_bit_tables);
const fac_bit_table_kernels FAC_SIMD(fac_bit_tables) = { .group = GROUP,
                                                         .table = TABLE,
                                                         .even = EVEN,
                                                         .codes = CODES,
                                                         .part = PART,
                                                         .block = BLOCK,
                                                         .row = WIDTH,
                                                         .run = RUN,
                                                         .pairs = VL == 16,
                                                         .share = VL == 16 ? 20 : 8.2,
                                                         .cycles = VL == 16 ? 3 : 0,
                                                         .plane_cycles = VL == 16 ? 0.3 : 2.5,
                                                         .lookup = lookup,
                                                         .put = put,
                                                         .compare = compare,
                                                         .build = build };
#else
typedef int no_tables; /* without a look-up of bytes */
#endif
