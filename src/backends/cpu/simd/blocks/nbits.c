/* Products of rows of x with weights of 4 bits in blocks: see product/nbits.h.
 *
 * A code stands for code - 8, exactly, and a block's products are added before its scale meets
 * them; what a zero point other than 8 adds is (8 - zero) scale times the sum of the block's x.  x
 * is turned once, so that codes need no shuffling: with AVX-512 vector k of 128 numbers are those
 * at 8 i + k, and a vector of eight codes a lane is shifted by 4 k and looked up in a table of 16
 * numbers; else a vector of even numbers goes before one of odd ones. */
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/product/nbits.h"

enum { TOGETHER = 4, ZERO = 8, AHEAD = 1024 };

/* Codes that are read together; numbers of them that meet one vector of x. */
#if VL == 16
enum { CHUNK = 128 };
#else
enum { CHUNK = 2 * VL };
#endif

static int64_t padded(const fac_nbits_weights *w) {
    return (w->blocks * w->block + CHUNK - 1) / CHUNK * CHUNK;
}

static int64_t turned(const fac_nbits_weights *w) {
    return padded(w) + (w->blocks + VL - 1) / VL * VL;
}

/* Where number k of a chunk goes. */
INLINE int64_t place(int64_t k) {
    enum { APART = CHUNK / VL };
    return k / CHUNK * CHUNK + k % APART * VL + k % CHUNK / APART;
}

static void turn(const fac_nbits_weights *w, const float *x, float *to) {
    const int64_t all = padded(w);
    float *sums = to + all;
    for (int64_t k = 0; k < all; k++) to[place(k)] = k < w->K ? x[k] : 0;
    for (int64_t k = w->blocks; k < turned(w) - all; k++) sums[k] = 0;
    for (int64_t b = 0; b < w->blocks; b++) {
        const int64_t from = b * w->block, end = from + w->block < w->K ? from + w->block : w->K;
        float sum = 0;
        for (int64_t k = from; k < end; k++) sum += x[k];
        sums[b] = sum;
    }
}

INLINE float total(vec v) {
    float sum = 0;
    for (int i = 0; i < VL; i++) sum += v[i];
    return sum;
}

/* ---- zero points ---- */

typedef uint8_t bytes __attribute__((vector_size(VL)));

/* Eight codes of 4 bits as bytes. */
INLINE uint64_t apart(uint64_t x) {
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
}

/* VL codes of 4 bits. */
INLINE vec codes_at(const uint8_t *p) {
    enum { WORDS = (VL + 7) / 8, READ = VL < 8 ? VL / 2 : 4 };
    uint64_t words[WORDS];
    bytes each;
    UNROLL for (int i = 0; i < WORDS; i++) {
        uint32_t word = 0;
        memcpy(&word, p + 4 * i, READ);
        words[i] = apart(word);
    }
    memcpy(&each, words, sizeof each);
    return __builtin_convertvector(each, vec);
}

INLINE vec codes_some(const uint8_t *p, int n) {
    uint8_t some[VL / 2] = { 0 };
    memcpy(some, p, (size_t)(n + 1) / 2);
    return codes_at(some);
}

/* sum over blocks of (8 - zero) scale sums, of row n. */
INLINE float shift(const fac_nbits_weights *w, int64_t n, const float *sums) {
    const float *scale = w->scale + n * w->blocks;
    const uint8_t *zero = w->zero ? w->zero + n * fac_nbits_zero_bytes(w) : NULL;
    const float *number = w->zero_number ? w->zero_number + n * w->blocks : NULL;
    vec sum = all(0);
    int64_t b = 0;
    for (; b + VL <= w->blocks; b += VL) {
        const vec z = number ? load(number + b) : codes_at(zero + b / 2);
        sum += (all(ZERO) - z) * load(scale + b) * load(sums + b);
    }
    if (b < w->blocks) {
        const int left = (int)(w->blocks - b);
        const vec z = number ? load_some(number + b, left) : codes_some(zero + b / 2, left);
        sum += (all(ZERO) - z) * load_some(scale + b, left) * load(sums + b);
    }
    return total(sum);
}

/* ---- products ---- */

#if VL == 16

/* Scales of the lanes of a chunk: lane i holds codes 8 i .. 8 i + 7. */
INLINE __m512 scales_of(const fac_nbits_weights *w, const float *scale, int64_t k, __m512i lanes) {
    const int64_t b = k / w->block, left = w->blocks - b;
    const int64_t n = w->block < CHUNK ? CHUNK / w->block : 1;
    const __mmask16 there = (__mmask16)((1u << (left < n ? left : n)) - 1);
    return _mm512_permutexvar_ps(lanes, _mm512_maskz_loadu_ps(there, scale + b));
}

/* R rows of w with m rows of x, one of which is 1. */
INLINE void tile(const int R, const int m, const fac_nbits_rows *t, int64_t n, const float *x,
                 float *y) {
    const fac_nbits_weights *w = t->w;
    const int64_t row = fac_nbits_row_bytes(w), x_row = turned(w), words = row / 4;
    const uint8_t *codes = w->codes + n * row;
    const float *scale = w->scale + n * w->blocks;
    const __m512i eight = _mm512_slli_epi32(
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), 3);
    const __m512i lanes =
        _mm512_srl_epi32(eight, _mm_cvtsi64_si128(__builtin_ctzll((uint64_t)w->block)));
    const __m512 table = _mm512_set_ps(7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8);
    __m512 sum[TOGETHER];
    UNROLL for (int k = 0; k < R * m; k++) sum[k] = _mm512_setzero_ps();
    for (int64_t at = 0; at < words; at += 16) {
        const __mmask16 there = (__mmask16)(words - at < 16 ? (1u << (words - at)) - 1 : 0xffff);
        const float *vectors = x + at * 8;
        UNROLL for (int r = 0; r < R; r++) {
            const uint8_t *p = codes + r * row + at * 4;
            const __m512i u = _mm512_maskz_loadu_epi32(there, p);
            const __m512 s = scales_of(w, scale + r * w->blocks, at * 8, lanes);
            __m512 part[TOGETHER];
            _mm_prefetch((const char *)p + AHEAD, _MM_HINT_T0);
            UNROLL for (int j = 0; j < m; j++) part[j] = _mm512_setzero_ps();
            UNROLL for (int k = 0; k < 8; k++) {
                const __m512 v = _mm512_permutexvar_ps(_mm512_srli_epi32(u, 4 * k), table);
                UNROLL for (int j = 0; j < m; j++) part[j] =
                    _mm512_fmadd_ps(v, _mm512_loadu_ps(vectors + j * x_row + 16 * k), part[j]);
            }
            UNROLL for (int j = 0; j < m; j++) sum[r * m + j] =
                _mm512_fmadd_ps(part[j], s, sum[r * m + j]);
        }
    }
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int j = 0; j < m; j++) y[j * t->y_row + r] =
        _mm512_reduce_add_ps(sum[r * m + j]);
}

#else

typedef uint32_t uvec __attribute__((vector_size(VL * 4)));

INLINE void tile(const int R, const int m, const fac_nbits_rows *t, int64_t n, const float *x,
                 float *y) {
    const fac_nbits_weights *w = t->w;
    const int64_t row = fac_nbits_row_bytes(w), x_row = turned(w), each = w->block / CHUNK;
    const uint8_t *codes = w->codes + n * row;
    const float *scale = w->scale + n * w->blocks;
    const ivec zero = ZERO - (ivec){ 0 };
    vec sum[TOGETHER];
    UNROLL for (int k = 0; k < R * m; k++) sum[k] = all(0);
    for (int64_t b = 0; b < w->blocks; b++) UNROLL for (int r = 0; r < R; r++) {
            const uint8_t *p = codes + r * row + b * w->block / 2;
            const float *vectors = x + b * w->block;
            vec part[TOGETHER];
            __builtin_prefetch(p + AHEAD);
            UNROLL for (int j = 0; j < m; j++) part[j] = all(0);
            for (int64_t c = 0; c < each; c++, p += VL, vectors += CHUNK) {
                bytes u;
                memcpy(&u, p, sizeof u);
                const ivec wide = __builtin_convertvector(u, ivec);
                const vec even = __builtin_convertvector((wide & 15) - zero, vec);
                const vec odd = __builtin_convertvector((wide >> 4) - zero, vec);
                UNROLL for (int j = 0; j < m; j++) {
                    part[j] = add_product(part[j], even, load(vectors + j * x_row));
                    part[j] = add_product(part[j], odd, load(vectors + j * x_row + VL));
                }
            }
            UNROLL for (int j = 0; j < m; j++) sum[r * m + j] +=
                part[j] * all(scale[r * w->blocks + b]);
        }
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int j = 0; j < m; j++) y[j * t->y_row + r] =
        total(sum[r * m + j]);
}

#endif

/* m rows of x with all rows of w. */
INLINE void rows(const int m, const fac_nbits_rows *t, const float *x, float *y) {
    int64_t i = 0;
    if (m == 1)
        for (; i + TOGETHER <= t->rows; i += TOGETHER) tile(TOGETHER, 1, t, t->first + i, x, y + i);
    for (; i < t->rows; i++) tile(1, m, t, t->first + i, x, y + i);
}

/* Adds to y what zero points other than 8 add: sums has those of the blocks of x, rows x_row apart.
 */
static void add_shifts(const fac_nbits_rows *t, const float *sums, int64_t x_row) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->m; j++)
            t->y[j * t->y_row + i] += shift(t->w, t->first + i, sums + j * x_row);
}

static void run(const fac_nbits_rows *t) {
    const int64_t x_row = turned(t->w);
    for (int64_t j = 0; j < t->m; j += TOGETHER) {
        const int64_t left = t->m - j;
        const float *x = t->x + j * x_row;
        float *y = t->y + j * t->y_row;
        if (left >= 4)
            rows(4, t, x, y);
        else if (left == 3)
            rows(3, t, x, y);
        else if (left == 2)
            rows(2, t, x, y);
        else
            rows(1, t, x, y);
    }
    if (t->w->zero || t->w->zero_number) add_shifts(t, t->x + padded(t->w), x_row);
}

/* ---- as f32 ---- */

/* Sixteen codes as numbers. */
INLINE void numbers_of(const int bits, const uint8_t *codes, float zero, float scale, float *to) {
    if (bits == 4) {
        UNROLL for (int i = 0; i < 16; i += VL)
            store(to + i, (codes_at(codes + i / 2) - all(zero)) * all(scale));
    } else if (bits == 8) {
        UNROLL for (int i = 0; i < 16; i += VL) {
            bytes b;
            memcpy(&b, codes + i, sizeof b);
            store(to + i, (__builtin_convertvector(b, vec) - all(zero)) * all(scale));
        }
    } else {
        for (int i = 0; i < 16; i++)
            to[i] = ((float)(codes[i / 4] >> i % 4 * 2 & 3) - zero) * scale;
    }
}

INLINE void decode_bits(const int bits, const fac_nbits_weights *w, int64_t n, float *to) {
    enum { PART = 16 };
    const int each = 8 / bits, mask = (1 << bits) - 1;
    const uint8_t *codes = w->codes + n * fac_nbits_row_bytes(w);
    const uint8_t *zeros = w->zero ? w->zero + n * fac_nbits_zero_bytes(w) : NULL;
    for (int64_t k = 0; k < w->K; k += PART, codes += PART / each) {
        const int64_t b = k / w->block, end = w->K - k < PART ? w->K - k : PART;
        const float s = w->scale[n * w->blocks + b];
        float zero = (float)(1 << (bits - 1)), part[PART];
        if (w->zero_number)
            zero = w->zero_number[n * w->blocks + b];
        else if (zeros)
            zero = (float)(zeros[b / each] >> b % each * bits & mask);
        if (end == PART) {
            numbers_of(bits, codes, zero, s, to + k);
            continue;
        }
        numbers_of(bits, codes, zero, s, part);
        memcpy(to + k, part, (size_t)end * sizeof *part);
    }
}

static void decode(const fac_nbits_weights *w, int64_t n, float *to) {
    if (w->bits == 2)
        decode_bits(2, w, n, to);
    else if (w->bits == 4)
        decode_bits(4, w, n, to);
    else
        decode_bits(8, w, n, to);
}

const fac_nbits_kernels FAC_SIMD(fac_nbits) = { turned, turn, run, decode };
