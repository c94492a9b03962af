/* Products of rows of x, rounded to 8 bits, with weights of 4 bits in blocks: see product/nbits.h.
 *
 * x is rounded in blocks as long as those of w: x = dx q.  With u the codes, a block adds
 *     scale dx sum (u - zero) q
 * A panel's rows are lanes; blocks go in parts of 32 numbers at most, of which a lane takes four at
 * a time.  -8 sum q is where the lane's sum begins, or is what zero / 8 multiplies: both are whole
 * numbers below 2^24, so that nothing is lost where the two nearly cancel.
 *
 * vpdpbusd adds in 32 bits.  Without it products of pairs are added in 16 bits: codes are at most
 * 15, so that all of a part fit, 8 x 2 x 15 x 127. */
#include "backends/cpu/simd/ints.h"
#include "backends/cpu/product/nbits.h"

#if defined(__AVX2__)
enum { ROWS = 2 * VL, PART = 32, MANY = VL == 16 ? 8 : 4, AHEAD = 2048 };

/* How a code becomes a weight. */
enum meaning { EIGHTS, ZEROS, OFFSETS }; /* (u - 8) scale, (u - zero) scale, u scale + offset */

/* What of a part belongs to a row of x. */
typedef struct facts {
    float d, sum;  /* sum: d sum q */
    int32_t begin; /* -8 sum q */
} facts;

/* Of m rows of x: [parts][m][numbers of a part], then facts [parts][m]. */
INLINE int64_t part_of(const fac_nbits_panels *w) { return w->block < PART ? w->block : PART; }
INLINE int64_t parts_of(const fac_nbits_panels *w) { return w->blocks * (w->block / part_of(w)); }
INLINE int64_t facts_at(const fac_nbits_panels *w, int64_t m) {
    return parts_of(w) * part_of(w) * m;
}

static size_t rounded(const fac_nbits_panels *w, int64_t m) {
    return (size_t)(facts_at(w, m) + parts_of(w) * m * (int64_t)sizeof(facts));
}

typedef uint32_t uvec __attribute__((vector_size(VL * 4)));
typedef int8_t small __attribute__((vector_size(VL)));

INLINE float most_of(vec v) {
    float most = 0;
    for (int i = 0; i < VL; i++) most = v[i] > most ? v[i] : most;
    return most;
}
INLINE vec some_at(const float *x, int64_t at, int64_t n) {
    if (at + VL <= n) return load(x + at);
    return at < n ? load_some(x + at, (int)(n - at)) : all(0);
}

/* To the nearest, ties to even, in units of `most` / 127. */
INLINE ivec nearest(vec v) {
    const vec magic = all(12582912.0f); /* 1.5 x 2^23: whole numbers are the last bits */
    return (ivec)(v + magic) - (ivec)magic;
}

/* What is not finite makes the block NaN. */
static void round_row(const fac_nbits_panels *w, const float *x, int64_t K, int64_t j, int64_t m,
                      void *to) {
    const int64_t part = part_of(w), each = w->block / part;
    int8_t *q = (int8_t *)to + j * part;
    facts *f = (facts *)(void *)((char *)to + facts_at(w, m)) + j;
    const ivec positive = 0x7fffffff - (ivec){ 0 };
    for (int64_t b = 0; b < w->blocks; b++) {
        vec most = all(0), odd = all(0);
        const int64_t first = b * w->block;
        for (int64_t k = first; k < first + w->block; k += VL) {
            const vec v = some_at(x, k, K);
            most = vmax((vec)((ivec)v & positive), most);
            odd += v * all(0);
        }
        float strange = 0;
        for (int i = 0; i < VL; i++) strange += odd[i];
        const float largest = most_of(most);
        const float by = largest >= 1e-30f && strange == 0 ? 127 / largest : 0;
        for (int64_t p = 0; p < each; p++, q += m * part, f += m) {
            ivec sum = { 0 };
            for (int64_t k = 0; k < part; k += VL) {
                const vec v = some_at(x, first + p * part + k, K);
                const ivec n = by > 0 ? nearest(held(v * all(by))) : (ivec){ 0 };
                const small s = __builtin_convertvector(n, small);
                memcpy(q + k, &s, sizeof s);
                sum += n;
            }
            int32_t total = 0;
            for (int i = 0; i < VL; i++) total += sum[i];
            const float d = largest / 127 + strange;
            *f = (facts){ d, d * (float)total, -8 * total };
        }
    }
}

/* ---- products ---- */

#if VL == 16
#define WIDE(name) _mm512_##name
typedef __m512i raw;
#else
#define WIDE(name) _mm256_##name
typedef __m256i raw;
#endif

/* More products of u and x, in 32 bits or, without vpdpbusd, in 16. */
INLINE ivec more(const bool vnni, ivec sum, ivec u, ivec x) {
#if VL == 16
    if (vnni) {
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u), "v"(x));
        return sum;
    }
#endif
    (void)vnni;
    return (ivec)WIDE(add_epi16)((raw)sum, WIDE(maddubs_epi16)((raw)u, (raw)x));
}
/* Those in 32 bits. */
INLINE ivec whole(const bool vnni, ivec sum) {
    return vnni ? sum : (ivec)WIDE(madd_epi16)((raw)sum, WIDE(set1_epi16)(1));
}

/* The sums of f32 are in memory: registers are full of those of integers, and compilers would
 * rather put these there. */
INLINE void keep_in_memory(float *p) { __asm__ volatile("" : : "r"(p) : "memory"); }

/* A panel with rows j .. j + m - 1 of x. */
INLINE void tile(const bool vnni, const enum meaning how, const int part, const int m,
                 const fac_nbits_task *t, int64_t panel, int64_t j) {
    const fac_nbits_panels *w = t->w;
    const uint32_t *codes = w->codes + panel * w->words * ROWS;
    const int shift = __builtin_ctzll((uint64_t)(w->block / part));
    const int64_t first = panel * w->blocks * ROWS;
    const float *scale = w->scale + first, *zero = how == ZEROS ? w->zero + first : NULL;
    const float *offset = how == OFFSETS ? w->offset + first : NULL;
    const int8_t *x = (const int8_t *)t->x + j * part;
    const facts *f = (const facts *)(const void *)((const char *)t->x + facts_at(w, t->m)) + j;
    const ivec low = 0x0f0f0f0f - (ivec){ 0 };
    const int64_t parts = parts_of(w);
    float sum[MANY][2][VL];
    UNROLL for (int i = 0; i < m; i++) UNROLL for (int v = 0; v < 2; v++) store(sum[i][v], all(0));
    for (int64_t p = 0; p < parts; p++, x += t->m * part, f += t->m) {
        ivec acc[MANY][2];
        UNROLL for (int i = 0; i < m; i++) {
            const ivec begin = vnni && how == EIGHTS ? f[i].begin - (ivec){ 0 } : (ivec){ 0 };
            UNROLL for (int v = 0; v < 2; v++) acc[i][v] = begin;
        }
        UNROLL for (int q = 0; q < part / 8; q++, codes += ROWS) {
            const ivec u0 = load_int(codes), u1 = load_int(codes + VL);
            __builtin_prefetch(codes + AHEAD);
            UNROLL for (int half = 0; half < 2; half++) {
                const ivec a = (half ? (ivec)((uvec)u0 >> 4) : u0) & low;
                const ivec b = (half ? (ivec)((uvec)u1 >> 4) : u1) & low;
                UNROLL for (int i = 0; i < m; i++) {
                    const ivec four = four_bytes(x + i * part + 8 * q + 4 * half);
                    acc[i][0] = more(vnni, acc[i][0], a, four);
                    acc[i][1] = more(vnni, acc[i][1], b, four);
                }
            }
        }
        keep_in_memory(sum[0][0]);
        UNROLL for (int v = 0; v < 2; v++) {
            const int64_t at = (p >> shift) * ROWS + v * VL;
            const vec s = load(scale + at), off = how == OFFSETS ? load(offset + at) : all(0);
            const vec z = how == ZEROS ? load(zero + at) * all(0.125f) : all(1);
            UNROLL for (int i = 0; i < m; i++) {
                ivec n = whole(vnni, acc[i][v]);
                if (how == EIGHTS && !vnni) n += f[i].begin;
                vec exact = __builtin_convertvector(n, vec), to = load(sum[i][v]);
                if (how == ZEROS) exact = add_product(exact, z, all((float)f[i].begin));
                if (how == OFFSETS) to = add_product(to, off, all(f[i].sum));
                store(sum[i][v], add_product(to, exact, s * all(f[i].d)));
            }
        }
    }
    UNROLL for (int i = 0; i < m; i++) UNROLL for (int v = 0; v < 2; v++) {
        const int64_t n = panel * ROWS + v * VL, left = t->N - n;
        float *y = t->y + (j + i) * t->y_row + n;
        if (left >= VL)
            store(y, load(sum[i][v]));
        else if (left > 0)
            store_some(y, load(sum[i][v]), (int)left);
    }
}

/* All rows of x, MANY at a time. */
INLINE void rows(const bool vnni, const enum meaning how, const int part, const fac_nbits_task *t,
                 int64_t panel) {
    int64_t j = 0;
    for (; j + MANY <= t->m; j += MANY) tile(vnni, how, part, MANY, t, panel, j);
    if (MANY > 4 && j + 4 <= t->m) {
        tile(vnni, how, part, 4, t, panel, j);
        j += 4;
    }
    if (t->m - j == 3)
        tile(vnni, how, part, 3, t, panel, j);
    else if (t->m - j == 2)
        tile(vnni, how, part, 2, t, panel, j);
    else if (t->m - j == 1)
        tile(vnni, how, part, 1, t, panel, j);
}

INLINE void panels(const bool vnni, const enum meaning how, const fac_nbits_task *t) {
    for (int64_t p = t->first; p < t->last; p++) {
        if (t->w->block < PART)
            rows(vnni, how, PART / 2, t, p);
        else
            rows(vnni, how, PART, t, p);
    }
}

INLINE void all_panels(const bool vnni, const fac_nbits_task *t) {
    if (t->w->offset)
        panels(vnni, OFFSETS, t);
    else if (t->w->zero)
        panels(vnni, ZEROS, t);
    else
        panels(vnni, EIGHTS, t);
}

static void run(const fac_nbits_task *t) {
#if VL == 16
    if (__builtin_cpu_supports("avx512vnni")) {
        all_panels(true, t);
        return;
    }
#endif
    all_panels(false, t);
}

const fac_nbits_rounded FAC_SIMD(fac_nbits_rounded) = { rounded, round_row, run };
#else
const fac_nbits_rounded FAC_SIMD(fac_nbits_rounded) = { NULL, NULL, NULL };
#endif
