/* Products of rows of x with weights of 4 bits in blocks: see product/nbits.h.
 *
 * The rows of a panel are the lanes of two vectors, so that nothing is added across lanes, and a
 * block's scale is a vector as it lies.  A code stands for code - 8, exactly, and a block's
 * products are added before its scale meets them; what a zero point other than 8 adds is (8 - zero)
 * scale times the sum of the block's x.  With AVX-512 a lane's lowest 4 bits choose from a table of
 * 16 numbers, and codes need nothing but a shift. */
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/product/nbits.h"

enum { ZERO = 8, ROWS = 2 * VL, CHAINS = 2 };

typedef uint32_t uvec __attribute__((vector_size(VL * 4)));
typedef uint8_t bytes __attribute__((vector_size(VL)));

INLINE uvec words_at(const uint32_t *p) {
    uvec v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Half byte k of each word, less 8. */
INLINE vec code_at(uvec u, const int k) {
#if VL == 16
    const __m512 table = _mm512_set_ps(7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8);
    return (vec)_mm512_permutexvar_ps(_mm512_srli_epi32((__m512i)u, 4 * k), table);
#else
    const uvec flipped = u ^ 0x88888888u; /* code - 8 with its sign */
    return __builtin_convertvector((ivec)(flipped << (28 - 4 * k)) >> 28, vec);
#endif
}
/* Which of a word's eight codes that is. */
INLINE int number_of(const int k) { return k % 2 * 4 + k / 2; }

/* The first columns of y, of which `left` are there. */
INLINE void put(float *y, vec v, int64_t left) {
    if (left >= VL)
        store(y, v);
    else if (left > 0)
        store_some(y, v, (int)left);
}

/* A panel with m rows of x.  One row alone has two sums of each lane, which take turns: additions
 * would wait for each other. */
INLINE void tile(const bool zeros, const int m, const fac_nbits_task *t, int64_t panel) {
    const fac_nbits_panels *w = t->w;
    const uint32_t *codes = w->codes + panel * w->words * ROWS;
    const int64_t x_row = fac_nbits_x_row(w), at = panel * w->blocks * ROWS;
    const float *scale = w->scale + at, *zero = zeros ? w->zero + at : NULL;
    const float *x = t->x, *block_sums = x + w->blocks * w->block;
    vec sum[FAC_NBITS_FEW][2];
    UNROLL for (int j = 0; j < m; j++) UNROLL for (int v = 0; v < 2; v++) sum[j][v] = all(0);
    for (int64_t b = 0; b < w->blocks; b++) {
        vec part[CHAINS][FAC_NBITS_FEW][2];
        UNROLL for (int c = 0; c < CHAINS; c++) UNROLL for (int j = 0; j < m; j++)
            UNROLL for (int v = 0; v < 2; v++) part[c][j][v] = all(0);
        for (int64_t q = 0; q < w->block / 8; q++, codes += ROWS, x += 8)
            UNROLL for (int v = 0; v < 2; v++) {
                const uvec u = words_at(codes + v * VL);
                UNROLL for (int k = 0; k < 8; k++) {
                    const int chain = m == 1 ? k % CHAINS : 0;
                    const vec c = code_at(u, k);
                    UNROLL for (int j = 0; j < m; j++) part[chain][j][v] =
                        add_product(part[chain][j][v], c, all(x[j * x_row + number_of(k)]));
                }
            }
        UNROLL for (int v = 0; v < 2; v++) {
            const vec s = load(scale + b * ROWS + v * VL);
            const vec off = zeros ? all(ZERO) - load(zero + b * ROWS + v * VL) : all(0);
            UNROLL for (int j = 0; j < m; j++) {
                vec p = part[0][j][v];
                if (m == 1) p += part[1][j][v];
                if (zeros) p = add_product(p, off, all(block_sums[j * x_row + b]));
                sum[j][v] = add_product(sum[j][v], p, s);
            }
        }
    }
    UNROLL for (int j = 0; j < m; j++) UNROLL for (int v = 0; v < 2; v++) {
        const int64_t n = panel * ROWS + v * VL;
        put(t->y + j * t->y_row + n, sum[j][v], t->N - n);
    }
}

INLINE void panels(const bool zeros, const int m, const fac_nbits_task *t) {
    for (int64_t p = t->first; p < t->last; p++) tile(zeros, m, t, p);
}

INLINE void all_panels(const bool zeros, const fac_nbits_task *t) {
    if (t->m == 4)
        panels(zeros, 4, t);
    else if (t->m == 3)
        panels(zeros, 3, t);
    else if (t->m == 2)
        panels(zeros, 2, t);
    else
        panels(zeros, 1, t);
}

static void run(const fac_nbits_task *t) {
    if (t->w->zero)
        all_panels(true, t);
    else
        all_panels(false, t);
}

/* ---- as f32 ---- */

/* Eight codes of a vector of rows. */
INLINE void eight(const fac_nbits_panels *w, const uint32_t *codes, int64_t at, const int step,
                  float *to) {
    const uvec u = words_at(codes);
    const vec s = load(w->scale + at);
    const vec off = w->zero ? all(ZERO) - load(w->zero + at) : all(0);
    UNROLL for (int k = 0; k < 8; k++) store(to + number_of(k) * step, (code_at(u, k) + off) * s);
}

static void panel(const fac_nbits_panels *w, int64_t p, int vectors, int64_t k0, int64_t k1,
                  float *to) {
    const int shift = __builtin_ctzll((uint64_t)w->block);
    const uint32_t *codes = w->codes + (p * w->words + k0 / 8) * ROWS;
    const int step = vectors * VL;
    for (int64_t k = k0; k < k1; k += 8, codes += ROWS, to += 8 * step) {
        const int64_t at = (p * w->blocks + (k >> shift)) * ROWS;
        eight(w, codes, at, step, to);
        if (vectors > 1) eight(w, codes + VL, at + VL, step, to + VL);
    }
}

/* ---- weights of 2 and 8 bits as f32 ---- */

/* Sixteen codes as numbers. */
INLINE void numbers_of(const int bits, const uint8_t *codes, float zero, float scale, float *to) {
    if (bits == 8) {
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
    else
        decode_bits(8, w, n, to);
}

const fac_nbits_kernels FAC_SIMD(fac_nbits) = { run, panel, decode };
