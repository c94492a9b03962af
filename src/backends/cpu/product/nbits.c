/* Weights of 4 bits in the order in which kernels read them: see nbits.h. */
#include "backends/cpu/product/nbits.h"
#include <string.h>
#include "backends/cpu/device/cpu.h"
#include "base/threads.h"

typedef struct packing {
    const uint8_t *from;
    int64_t N, words;
    int lanes;
    uint32_t *to;
} packing;

/* Four codes of 4 bits, a byte each. */
static uint32_t apart(uint32_t x) {
    x = (x | x << 8) & 0x00ff00ff;
    return (x | x << 4) & 0x0f0f0f0f;
}

/* A few words of each row at a time, so that what is written stays in the first cache. */
static void pack_panel(void *arg, int panel, int thread) {
    enum { SOME = 16 };
    const packing *p = arg;
    const int rows = 2 * p->lanes;
    const int64_t first = (int64_t)panel * rows, left = p->N - first;
    uint32_t *to = p->to + panel * p->words * rows;
    (void)thread;
    if (left < rows) memset(to, 0, (size_t)(p->words * rows) * sizeof *to);
    for (int64_t q0 = 0; q0 < p->words; q0 += SOME)
        for (int r = 0; r < rows && r < left; r++)
            for (int64_t q = q0; q < p->words && q < q0 + SOME; q++) {
                uint32_t word;
                memcpy(&word, p->from + ((first + r) * p->words + q) * 4, sizeof word);
                to[q * rows + r] = apart(word & 0xffff) | apart(word >> 16) << 4;
            }
}

void fac_nbits_pack_codes(const fac_pool *pool, const uint8_t *codes, int64_t N, int64_t words,
                          int lanes, uint32_t *to) {
    packing p = { codes, N, words, lanes, to };
    fac_parallel(pool, (int)fac_nbits_panel_count(N, lanes), pack_panel, &p);
}

static float *place_of(int64_t n, int64_t b, int64_t blocks, int lanes, float *to) {
    const int64_t rows = 2 * (int64_t)lanes;
    return to + (n / rows * blocks + b) * rows + n % rows;
}

static void clear(int64_t N, int64_t blocks, int lanes, float *to) {
    const int64_t all = fac_nbits_panel_count(N, lanes) * blocks * 2 * lanes;
    memset(to, 0, (size_t)all * sizeof *to);
}

void fac_nbits_pack_numbers(const float *from, int64_t N, int64_t blocks, int lanes, float *to) {
    clear(N, blocks, lanes, to);
    for (int64_t n = 0; n < N; n++)
        for (int64_t b = 0; b < blocks; b++)
            *place_of(n, b, blocks, lanes, to) = from[n * blocks + b];
}

void fac_nbits_pack_zeros(const uint8_t *codes, int64_t N, int64_t blocks, int lanes, float *to) {
    const int64_t row = (blocks + 1) / 2;
    clear(N, blocks, lanes, to);
    for (int64_t n = 0; n < N; n++)
        for (int64_t b = 0; b < blocks; b++)
            *place_of(n, b, blocks, lanes, to) = (float)(codes[n * row + b / 2] >> b % 2 * 4 & 15);
}

/* ---- rounded rows ---- */

const fac_nbits_rounded *fac_nbits_rounded_of(const fac_simd *s) {
    const fac_nbits_rounded *r = &fac_nbits_rounded_base;
#if defined(__x86_64__)
    if (s->isa == FAC_ISA_AVX512) r = &fac_nbits_rounded_avx512;
    if (s->isa == FAC_ISA_AVX2) r = &fac_nbits_rounded_avx2;
#endif
    (void)s;
    return r->bytes ? r : NULL;
}

static int64_t rows_of_group(int64_t first, int64_t M) {
    return M - first < FAC_NBITS_GROUP ? M - first : FAC_NBITS_GROUP;
}

/* Bytes in front of the group that begins with row `first`: those before it are full. */
static size_t before(const fac_nbits_rounded *r, const fac_nbits_panels *w, int64_t first) {
    return r->bytes(w, FAC_NBITS_GROUP) * (size_t)(first / FAC_NBITS_GROUP);
}

size_t fac_nbits_rounded_bytes(const fac_nbits_rounded *r, const fac_nbits_panels *w, int64_t M) {
    return before(r, w, M + FAC_NBITS_GROUP - 1);
}

void fac_nbits_rounded_row(const fac_nbits_rounded *r, const fac_nbits_panels *w, const float *x,
                           int64_t K, int64_t j, int64_t M, void *to) {
    const int64_t first = j / FAC_NBITS_GROUP * FAC_NBITS_GROUP;
    r->round(w, x, K, j - first, rows_of_group(first, M), (char *)to + before(r, w, first));
}

/* A panel at a time with all rows: it comes from far away, and they are near. */
void fac_nbits_rounded_run(const fac_nbits_rounded *r, const fac_nbits_task *t) {
    for (int64_t p = t->first; p < t->last; p++)
        for (int64_t first = 0; first < t->m; first += FAC_NBITS_GROUP) {
            fac_nbits_task some = *t;
            some.first = p;
            some.last = p + 1;
            some.m = rows_of_group(first, t->m);
            some.x = (const char *)t->x + before(r, t->w, first);
            some.y = t->y + first * t->y_row;
            r->run(&some);
        }
}
