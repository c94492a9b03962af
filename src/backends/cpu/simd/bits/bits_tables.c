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
#define UP_4(a) _mm512_slli_epi16(a, 4)
#define DOWN_4(a) _mm512_srli_epi16(a, 4)
#define AND(a, b) _mm512_and_si512(a, b)
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
#define UP_4(a) _mm256_slli_epi16(a, 4)
#define DOWN_4(a) _mm256_srli_epi16(a, 4)
#define AND(a, b) _mm256_and_si256(a, b)
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
enum { TAPS = 3 };                      /* side by side, as most convolutions have them */

#if defined(FAC_ROLLED)
#define INLINE_TABLES static inline TARGET
#else
#define INLINE_TABLES static inline __attribute__((always_inline)) TARGET
#endif

#include "backends/cpu/simd/bits/bits_lookup.h"

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

/* A row of pixels. */
INLINE_TABLES void compare_row(const fac_bit_compare *t, int row, const int kind,
                               const int thresholds) {
    const fac_bit_levels *l = t->codes;
    const int32_t *windows = t->windows + row * t->windows_row;
    uint32_t *q = t->q + row * t->q_row;
    int planes = kind == TWO ? 2 : 1;
    if (kind == ANY) planes = l->planes;
    for (int p = 0; p < t->n; p++, q += t->q_pixel) {
        const uint8_t *sums = (const uint8_t *)(t->sums + row * t->sums_row) + p * PIXEL;
        const bytes window = ALL_16(windows[p]);
        for (int k = 0; k < t->words; k++) {
            const int16_t *limits = t->limits + k * 32;
            const half h = half_of(sums, k, window, limits);
            unsigned m[FAC_BIT_THRESHOLDS], bits[FAC_BIT_PLANES];
            UNROLL
            for (int i = 0; i < thresholds; i++)
                m[i] = half_at_least(h, limits + (i + 1) * t->limits_row);
            bits_as(l, kind, m, bits);
            for (int j = 0; j < planes; j++) q[j * t->q_plane + k] = bits[j] & t->valid[k];
        }
    }
}

INLINE_TABLES void compare_as(const fac_bit_compare *t, const int kind, const int thresholds) {
    for (int row = 0; row < t->rows; row++) compare_row(t, row, kind, thresholds);
}

INLINE_TABLES vec as_numbers(const half *h, int i) {
    const ivec sum = (ivec)(i % 2 ? UPPER(h->d[i / 2]) : LOWER(h->d[i / 2]));
    return __builtin_convertvector(sum, vec);
}

enum { NONE = -1 }; /* a kind: no codes */

/* 32 outputs of a pixel as numbers, and their bits in each plane; half: what half of the window
 * has. */
INLINE_TABLES void number_bits(const fac_bit_compare *t, const half h[], int k, float half_window,
                               const float *z, float *to, const int kind, const int of_weights,
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
        if (z) y += load(z + i * t->z_block);
        if (t->relu) y = vmax(y, all(0));
        if (to) store(to + i * t->y_block, y);
        if (kind == NONE) continue;
        if (t->q_relu) y = vmax(y, all(0));
        vector_bits(t->codes, y, kind, part);
        for (int j = 0; j < planes; j++) bits[j] |= (part[j] & LANES) << i * VL;
    }
}

INLINE_TABLES void numbers_row(const fac_bit_compare *t, int row, const int kind,
                               const int of_weights) {
    const uint16_t *sums = t->sums + row * t->sums_row;
    const int planes = kind == NONE ? 0 : t->codes->planes;
    for (int p = 0; p < t->n; p++)
        for (int k = 0; k < t->words; k++) {
            const int64_t block = k * (32 / VL);
            const float *z = NULL;
            float *y = NULL;
            half h[FAC_BIT_PLANES];
            unsigned bits[FAC_BIT_PLANES];
            if (t->z) z = t->z + row * t->z_row + p * t->z_pixel + block * t->z_block;
            if (t->y) y = t->y + row * t->y_row + p * t->y_pixel + block * t->y_block;
            for (int m = 0; m < of_weights; m++)
                h[m] = sums_of((const uint8_t *)(sums + m * t->plane) + p * PIXEL, k);
            number_bits(t, h, k, 0.5f * (float)t->windows[row * t->windows_row + p], z, y, kind,
                        of_weights, bits);
            for (int j = 0; j < planes; j++)
                t->q[row * t->q_row + p * t->q_pixel + j * t->q_plane + k] = bits[j] & t->valid[k];
        }
}

INLINE_TABLES void numbers_as(const fac_bit_compare *t, const int kind, const int of_weights) {
    for (int row = 0; row < t->rows; row++) numbers_row(t, row, kind, of_weights);
}

INLINE_TABLES void numbers_of(const fac_bit_compare *t, const int kind) {
    if (t->of_weights == 1)
        numbers_as(t, kind, 1);
    else if (t->of_weights == 2)
        numbers_as(t, kind, 2);
    else
        numbers_as(t, kind, t->of_weights);
}

TARGET static void numbers(const fac_bit_compare *t) {
    const int kind = t->codes ? kind_of(t->codes) : NONE;
    if (kind == NONE)
        numbers_of(t, NONE);
    else if (kind == TWO)
        numbers_of(t, TWO);
    else if (kind == ONE)
        numbers_of(t, ONE);
    else if (kind == SIGNS)
        numbers_of(t, SIGNS);
    else
        numbers_of(t, ANY);
}

TARGET static void compare(const fac_bit_compare *t) {
    const int kind = t->limits ? kind_of(t->codes) : NONE;
    if (kind == NONE)
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
                                                         .rows = VL == 16 ? 4 : 8,
                                                         .run = RUN,
                                                         .run_halves = VL == 16 ? 0 : PAIRS,
                                                         .pairs = VL == 16,
                                                         .share = VL == 16 ? 20 : 8.2,
                                                         .share_halves = VL == 16 ? 0 : 10.5,
                                                         .cycles = VL == 16 ? 3 : 0,
                                                         .plane_cycles = VL == 16 ? 0.3 : 1.2,
                                                         .lookup = lookup,
                                                         .put = put,
                                                         .compare = compare,
                                                         .build = build };
#else
typedef int no_tables; /* without a look-up of bytes */
#endif
