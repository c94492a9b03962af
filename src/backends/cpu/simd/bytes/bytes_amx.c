/* Tiles of products of bytes with AMX: see backends/cpu/bytes/bytes.h.
 *
 * A tile register has 16 rows of 64 bytes.  Four of them hold sums, [pixel][output channel], of two
 * runs times two vectors; two hold pixels as they lie in x, 16 quads of each, and two weights,
 * which the order of the dot products suits as it is.  Of a run that ends within a chunk the last
 * 16 quads are read, with weights of 0 for those that were there before. */
#include "backends/cpu/bytes/amx.h"
#include "backends/cpu/bytes/bytes.h"
#include "backends/cpu/simd/vector.h"

#if VL == 16 && FAC_AMX
#include <stdalign.h>
#include "backends/cpu/simd/bytes/bytes_finish.h"

#define WITH_AMX __attribute__((target("amx-tile,amx-int8")))
enum { PIXELS = 16, QUADS = 16, SUMS = PIXELS * VL };
enum { X = 4, W = 6, TILES = 8 }; /* registers: sums, pixels, weights */

WITH_AMX static void begin(int pixels, int quads) {
    struct {
        uint8_t palette, start, rest[14];
        uint16_t bytes[16]; /* of a row */
        uint8_t rows[16];
    } shapes = { .palette = 1 };
    const int depth = quads < QUADS ? quads : QUADS;
    for (int k = 0; k < TILES; k++) {
        shapes.bytes[k] = (uint16_t)(k >= X && k < W ? 4 * depth : 4 * VL);
        shapes.rows[k] = (uint8_t)(k >= W ? depth : pixels);
    }
    __asm__ volatile("" ::: "memory"); /* compilers think that less of it is read */
    _tile_loadconfig(&shapes);
}
WITH_AMX static void end(void) { _tile_release(); }

/* sums + x w, of one chunk. */
#define STEP(DOT)                                                                                  \
    do {                                                                                           \
        _tile_loadd(6, w, 8 * VL);                                                                 \
        if (vectors > 1) _tile_loadd(7, w + 4 * VL, 8 * VL);                                       \
        _tile_loadd(4, x0, t->x_pixel);                                                            \
        DOT(0, 4, 6);                                                                              \
        if (vectors > 1) DOT(1, 4, 7);                                                             \
        if (runs > 1) {                                                                            \
            _tile_loadd(5, x1, t->x_pixel);                                                        \
            DOT(2, 5, 6);                                                                          \
            if (vectors > 1) DOT(3, 5, 7);                                                         \
        }                                                                                          \
    } while (0)

/* sums: [run][vector][pixel][lane] */
WITH_AMX INLINE void multiply(const fac_byte_tile *t, const int vectors, const int runs,
                              const bool sign, int32_t *sums) {
    const int64_t bytes = 4 * (int64_t)t->quads, last = bytes < 4 * QUADS ? 0 : bytes - 4 * QUADS;
    const int8_t *w = t->w;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int r = 0; r < t->R; r++)
        for (int s = 0; s < t->S; s++) {
            const int64_t from = r * t->x_row + s * t->x_column;
            const int depth = t->quads < QUADS ? t->quads : QUADS;
            for (int64_t k = 0; k < bytes; k += 4 * QUADS, w += (int64_t)depth * 8 * VL) {
                const int64_t at = from + (k < last ? k : last);
                const uint8_t *x0 = t->x0 + at, *x1 = runs > 1 ? t->x1 + at : NULL;
                if (sign)
                    STEP(_tile_dpbssd);
                else
                    STEP(_tile_dpbusd);
            }
        }
    _tile_stored(0, sums, 4 * VL);
    if (vectors > 1) _tile_stored(1, sums + SUMS, 4 * VL);
    if (runs > 1) _tile_stored(2, sums + 2 * SUMS, 4 * VL);
    if (runs > 1 && vectors > 1) _tile_stored(3, sums + 3 * SUMS, 4 * VL);
}

/* ---- the end of a run ---- */

typedef struct run {
    const int32_t *sums, *of_x; /* of_x: sums of what each pixel sees */
    uint8_t *y;
    const uint8_t *z;
} run;

INLINE ivec ints(const int32_t *p) { return (ivec)_mm512_loadu_si512(p); }

INLINE void sums_of(const fac_byte_tile *t, const run *u, const int vectors, int pixel, ivec a[2]) {
    a[0] = ints(u->sums + pixel * VL) + ints(t->bias);
    a[1] = vectors > 1 ? ints(u->sums + SUMS + pixel * VL) + ints(t->bias + VL) : a[0];
    if (!t->zero) return;
    a[0] -= u->of_x[pixel] * ints(t->zero);
    a[1] -= u->of_x[pixel] * ints(t->zero + VL);
}

INLINE __m512i words_of(const fac_byte_tile *t, const ending *e, const run *u, const bool sums,
                        const int vectors, int pixel) {
    ivec a[2];
    sums_of(t, u, vectors, pixel, a);
    return words(e, sums, vectors, a[0], a[1], u->z + pixel * t->z_pixel);
}

INLINE void put_bytes(const fac_byte_tile *t, const run *u, const bool sums, const int vectors) {
    const ending e = ending_of(t);
    int p = 0;
    for (; p + 2 <= t->n; p += 2)
        put_two(&e, words_of(t, &e, u, sums, vectors, p), words_of(t, &e, u, sums, vectors, p + 1),
                u->y + p * t->y_pixel, u->y + (p + 1) * t->y_pixel);
    if (p == t->n) return;
    const __m512i v = words_of(t, &e, u, sums, vectors, p);
    put_two(&e, v, v, u->y + p * t->y_pixel, NULL);
}

INLINE void put_ints(const fac_byte_tile *t, const run *u, const int vectors) {
    const uint32_t there = t->columns < 2 * VL ? (1u << t->columns) - 1 : ~0u;
    for (int p = 0; p < t->n; p++) {
        ivec a[2];
        sums_of(t, u, vectors, p, a);
        int32_t *to = (int32_t *)(void *)(u->y + p * t->y_pixel);
        _mm512_mask_storeu_epi32(to, (__mmask16)there, (__m512i)a[0]);
        if (vectors > 1) _mm512_mask_storeu_epi32(to + VL, (__mmask16)(there >> VL), (__m512i)a[1]);
    }
}

INLINE void put(const fac_byte_tile *t, const run *u, const int vectors) {
    if (!t->factor)
        put_ints(t, u, vectors);
    else if (t->sum)
        put_bytes(t, u, true, vectors);
    else
        put_bytes(t, u, false, vectors);
}

/* ---- tiles ---- */

/* A function for each size. */
#define TILE(NAME, VECTORS, RUNS, SIGN)                                                            \
    WITH_AMX __attribute__((noinline)) static void NAME(const fac_byte_tile *t, int32_t *sums) {   \
        multiply(t, VECTORS, RUNS, SIGN, sums);                                                    \
        const run a = { sums, t->sum0, t->y0, t->z0 };                                             \
        put(t, &a, VECTORS);                                                                       \
        if (RUNS == 1) return;                                                                     \
        const run b = { sums + 2 * SUMS, t->sum1, t->y1, t->z1 };                                  \
        put(t, &b, VECTORS);                                                                       \
    }
TILE(half_one, 1, 1, false)
TILE(half_two, 1, 2, false)
TILE(whole_one, 2, 1, false)
TILE(whole_two, 2, 2, false)
TILE(signed_half_one, 1, 1, true)
TILE(signed_half_two, 1, 2, true)
TILE(signed_whole_one, 2, 1, true)
TILE(signed_whole_two, 2, 2, true)

static void tile(const fac_byte_tile *t) {
    typedef void sized(const fac_byte_tile *t, int32_t *sums);
    static sized *const sizes[2][2][2] = { { { half_one, half_two }, { whole_one, whole_two } },
                                           { { signed_half_one, signed_half_two },
                                             { signed_whole_one, signed_whole_two } } };
    alignas(64) int32_t sums[4 * SUMS];
    sizes[t->x_signed][t->columns > VL][t->x1 != NULL](t, sums);
}

/* What is not here: VNNI's. */
extern const fac_byte_kernels fac_bytes_vnni;
extern fac_byte_pair_kernel FAC_SIMD(fac_byte_pair);
extern fac_byte_most_kernel FAC_SIMD(fac_byte_most);
extern fac_byte_sum_kernel FAC_SIMD(fac_byte_sum);
extern fac_byte_quantize_kernel FAC_SIMD(fac_byte_quantize);
extern fac_byte_dequantize_kernel FAC_SIMD(fac_byte_dequantize);
extern fac_byte_table_kernel FAC_SIMD(fac_byte_table);
#define KERNELS(LEAST)                                                                             \
    {                                                                                              \
        .name = "amx", .lanes = VL, .run = PIXELS, .share = 12, .tile = tile, .chunk = QUADS,      \
        .signs = true, .begin = begin, .end = end, .few = &fac_bytes_vnni, .least = LEAST,         \
        .pair = FAC_SIMD(fac_byte_pair), .most = FAC_SIMD(fac_byte_most),                          \
        .sum = FAC_SIMD(fac_byte_sum), .quantize = FAC_SIMD(fac_byte_quantize),                    \
        .dequantize = FAC_SIMD(fac_byte_dequantize), .table = FAC_SIMD(fac_byte_table)             \
    }
extern const fac_byte_kernels fac_bytes_amx, fac_bytes_amx_always;
const fac_byte_kernels fac_bytes_amx = KERNELS(80); /* 4 quads of 16 pixels are 6 % slower */
const fac_byte_kernels fac_bytes_amx_always = KERNELS(0);
#endif
