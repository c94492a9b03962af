/* Products of weights in blocks of 256 with rows of 8-bit numbers, without AVX-512: a block becomes
 * signed numbers first, which all rows of x share. */
#ifndef FACULA_CPU_BLOCK_DOTS_LARGE_H
#define FACULA_CPU_BLOCK_DOTS_LARGE_H

typedef struct large {
    signed char q[256];
    float d[16], m[8]; /* of parts of 32 (q4_k) or 16 (q6_k) numbers */
} large;

#if !defined(__aarch64__)

INLINE void numbers_q4_k(const unsigned char *q, signed char *to) {
    for (int p = 0; p < 4; p++)
        for (int k = 0; k < 32; k++) {
            to[64 * p + k] = (signed char)(q[32 * p + k] & 15);
            to[64 * p + 32 + k] = (signed char)(q[32 * p + k] >> 4);
        }
}

INLINE void numbers_q6_k(const unsigned char *low, const unsigned char *high, signed char *to) {
    for (int n = 0; n < 2; n++)
        for (int t = 0; t < 4; t++)
            for (int c = 0; c < 32; c++) {
                const int four = low[64 * n + c + 32 * (t & 1)] >> 4 * (t / 2) & 15;
                const int two = high[32 * n + c] >> 2 * t & 3;
                to[128 * n + 32 * t + c] = (signed char)((four | two << 4) - 32);
            }
}

#endif

#if defined(__AVX2__)

/* By magnitudes; a half of the vector is a part of q6_k. */
INLINE float large_products(const bool dots, const int part_, const signed char *w, const char *x,
                            const float *d, const float *dx) {
    __m256 sum = _mm256_setzero_ps();
    (void)dots;
    for (int b = 0; b < 8; b++) {
        const __m256i u = _mm256_loadu_si256((const __m256i *)(const void *)(w + 32 * b));
        const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(x + 32 * b));
        const __m256 p = _mm256_cvtepi32_ps(products(TYPE_Q8_0, u, v));
        const __m128 first = _mm_set1_ps(part_ == 32 ? d[b] : d[2 * b]);
        const __m128 second = _mm_set1_ps(part_ == 32 ? d[b] : d[2 * b + 1]);
        const __m256 scale = _mm256_mul_ps(_mm256_set_m128(second, first), _mm256_set1_ps(dx[b]));
        sum = _mm256_fmadd_ps(p, scale, sum);
    }
    return total(sum);
}

#elif !defined(__aarch64__)

INLINE float large_products(const bool dots, const int part_, const signed char *w, const char *x,
                            const float *d, const float *dx) {
    float y = 0;
    (void)dots;
    for (int j = 0; j < 256 / part_; j++) {
        int p = 0;
        for (int k = 0; k < part_; k++) p += w[part_ * j + k] * (signed char)x[part_ * j + k];
        y += d[j] * dx[part_ * j / 32] * (float)p;
    }
    return y;
}

#endif

INLINE void read_q4_k(const char *w, large *to) {
    const float d = fac_f16_to_f32(half_at(w)), least = fac_f16_to_f32(half_at(w + 2));
    uint64_t scales_, minima;
    unpack_q4_k(w, &scales_, &minima);
    for (int j = 0; j < 8; j++) to->d[j] = d * (float)(scales_ >> 8 * j & 255);
    for (int j = 0; j < 8; j++) to->m[j] = -least * (float)(minima >> 8 * j & 255);
    numbers_q4_k((const unsigned char *)w + 16, to->q);
}

INLINE void read_q6_k(const char *w, large *to) {
    const unsigned char *low = (const unsigned char *)w;
    const float d = fac_f16_to_f32(half_at(w + 208));
    for (int j = 0; j < 16; j++) to->d[j] = d * (float)(signed char)w[192 + j];
    numbers_q6_k(low, low + 128, to->q);
}

/* The products of one block with those of a row of x: dx and sums are those of its eight parts. */
INLINE float with_x(const enum type t, const bool dots, const large *w, const char *x,
                    const float *dx, const float *sums_) {
    float y = large_products(dots, t == TYPE_Q4_K ? 32 : 16, w->q, x, w->d, dx);
    for (int j = 0; j < 8 && t == TYPE_Q4_K; j++) y += w->m[j] * sums_[j];
    return y;
}

/* From row `first` of weights on. */
INLINE void rows_of_large(const enum type t, const bool dots, const fac_block_rows *r,
                          int64_t first) {
    for (int64_t i = first; i < r->rows; i++) {
        for (int64_t j = 0; j < r->m; j++) r->y[j * r->y_row + i] = 0;
        for (int64_t b = 0; b < r->K / 256; b++) {
            const char *w = r->w + i * r->w_row + b * bytes_of(t);
            large one;
            if (t == TYPE_Q4_K)
                read_q4_k(w, &one);
            else
                read_q6_k(w, &one);
            for (int64_t j = 0; j < r->m; j++) {
                const char *x = r->x + j * r->x_row;
                const float *dx = (const float *)(const void *)(x + r->K) + 8 * b;
                r->y[j * r->y_row + i] += with_x(t, dots, &one, x + 256 * b, dx, dx + r->K / 32);
            }
        }
    }
}
#endif
