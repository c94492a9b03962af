/* What products of weights in blocks with rows of 8-bit numbers are made of, for AVX2: block_dots.c
 * says what is computed. */
#ifndef FACULA_CPU_BLOCK_DOTS_AVX2_H
#define FACULA_CPU_BLOCK_DOTS_AVX2_H

typedef __m256 sums;
INLINE sums none(void) { return _mm256_setzero_ps(); }

INLINE float largest_of(__m256 v) {
    const __m128 half = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 pair = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
}

/* To the nearest, in units of the largest / 127. */
static void round_x(const float *x, int64_t K, char *to) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int64_t b = 0; b < K / 32; b++, x += 32) {
        __m256 v[4], size = _mm256_setzero_ps(), odd = size;
        __m256i q[4], sum = _mm256_setzero_si256();
        UNROLL for (int k = 0; k < 4; k++) {
            v[k] = _mm256_loadu_ps(x + 8 * k);
            size = _mm256_max_ps(_mm256_andnot_ps(sign, v[k]), size);
            odd = _mm256_or_ps(odd, _mm256_cmp_ps(v[k], v[k], _CMP_UNORD_Q));
        }
        const float most = _mm256_movemask_ps(odd) ? NAN : largest_of(size);
        const float by = factor_of(most);
        UNROLL for (int k = 0; k < 4; k++) {
            const __m256 scaled = by > 0 ? _mm256_mul_ps(v[k], _mm256_set1_ps(by)) : none();
            q[k] = _mm256_cvtps_epi32(scaled);
            sum = _mm256_add_epi32(sum, q[k]);
        }
        const __m256i low = _mm256_packs_epi32(q[0], q[1]), high = _mm256_packs_epi32(q[2], q[3]);
        const __m256i all = _mm256_packs_epi16(low, high);
        _mm256_storeu_si256((__m256i *)(void *)(to + 32 * b),
                            _mm256_permutevar8x32_epi32(all, order));
        const __m128i half =
            _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        const __m128i pair = _mm_add_epi32(half, _mm_srli_si128(half, 8));
        put_facts(to, K, b, most, _mm_cvtsi128_si32(_mm_add_epi32(pair, _mm_srli_si128(pair, 4))));
    }
}

INLINE __m256i block_of(const enum type t, const char *a) {
    if (t == TYPE_Q8_0) return _mm256_loadu_si256((const __m256i *)a);
    const __m128i x = _mm_loadu_si128((const __m128i *)a);
    return _mm256_and_si256(
        _mm256_inserti128_si256(_mm256_castsi128_si256(x), _mm_srli_epi16(x, 4), 1),
        _mm256_set1_epi8(15));
}

/* q8_0 by magnitudes: the products are those of q, not of q + 128. */
INLINE __m256i products(const enum type t, __m256i u, __m256i x) {
    const __m256i ones = _mm256_set1_epi16(1);
    if (t != TYPE_Q8_0) return _mm256_madd_epi16(_mm256_maddubs_epi16(u, x), ones);
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(u), _mm256_sign_epi8(x, u)),
                             ones);
}

INLINE void part(const enum type t, const bool dots, const int m, const char *w, int n,
                 const float *d, const char *const *x, const float *const *dx, __m256 *sum) {
    const int bytes = bytes_of(t);
    (void)dots;
    w += head_of(t);
    for (int b = 0; b < n; b++) {
        const __m256i u = block_of(t, w + b * bytes);
        for (int j = 0; j < m; j++) {
            const __m256i p = products(t, u, _mm256_loadu_si256((const __m256i *)(x[j] + 32 * b)));
            sum[j] =
                _mm256_fmadd_ps(_mm256_cvtepi32_ps(p), _mm256_set1_ps(d[b] * dx[j][b]), sum[j]);
        }
    }
}
INLINE float total(sums v) {
    float all = 0;
    for (int k = 0; k < 8; k++) all += v[k];
    return all;
}
#endif
