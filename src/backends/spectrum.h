/* What the solvers "stft/fft" of all devices share: what a problem asks for, the stages of a fast
 * transform, and its turns. */
#ifndef FACULA_BACKENDS_SPECTRUM_H
#define FACULA_BACKENDS_SPECTRUM_H
#include "facula/backend.h"

/* Inputs of stft. */
enum { FAC_STFT_X, FAC_STFT_WINDOW, FAC_STFT_STEP, FAC_STFT_LENGTH };

typedef struct fac_stft_sizes {
    bool complex, windowed;
    int64_t length, wide, step; /* samples of a frame, of its window, between frames */
    int64_t batch, samples, bins, frames;
} fac_stft_sizes;
/* false: step or length are not known, or a frame is longer than 2^24. */
bool fac_stft_sizes_of(const fac_problem *p, fac_stft_sizes *to);

/* A transform of n complex elements in Stockham's order (src/backends/cpu/simd/fft.c says what a
 * stage is): its radices, each 2, 4, 8 or an odd prime, and how many they are; -1: n has a greater
 * prime factor than `prime`, 5 to 13.  largest: 8 or 4. */
enum { FAC_FFT_RADICES = 40 };
int fac_fft_radices(int64_t n, int largest, int prime, int radix[FAC_FFT_RADICES]);

/* Numbers of a table: for each stage of r m elements the cos and sin of -2 pi p k / (r m) for p < m
 * and 0 < k < r. */
int64_t fac_fft_turns(int64_t n, int stages, const int *radix);
/* These, then the cos and sin of -pi k / n, k <= n, as floats or doubles; computed in f64.
 * fac_release; NULL: no memory. */
void *fac_fft_table(int64_t n, int stages, const int *radix, fac_dtype dtype, size_t *bytes);
#endif
