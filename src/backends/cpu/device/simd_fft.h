/* Kernels of Fourier transforms (simd/fft.c).  See simd.h for what all kernels have in common. */
#ifndef FACULA_CPU_SIMD_FFT_H
#define FACULA_CPU_SIMD_FFT_H
#include <stdbool.h>
#include <stdint.h>

/* Fourier transforms of as many signals as a vector has lanes, one a lane: element i of all signals
 * is a vector, of complex ones two, real parts first. */
enum { FAC_FFT_STAGES = 40 };
typedef struct fac_fft {
    int64_t n;                         /* complex elements */
    int stages, radix[FAC_FFT_STAGES]; /* each 2, 3, 4, 5 or 8 */
    const float *turns;                /* of stages of n = r m elements, for p < m and
                                          0 < k < r: cos and sin of -2 pi p k / n */
} fac_fft;
typedef struct fac_fft_out {
    float *re, *im; /* of bin k at re[k row], im[k row] */
    int64_t bins, row;
    int lanes; /* so many signals */
} fac_fft_out;
typedef struct fac_fft_kernels {
    int largest; /* radix that pays: 8 or 4 */
    void (*window)(float *x, const float *w, int64_t n);
    void (*widen)(float *x, int64_t n); /* n real elements become complex, in place */
    float *(*transform)(const fac_fft *f, float *a, float *b); /* writes to both, returns one */
    void (*whole)(const fac_fft_out *o, const float *z);
    /* z: of 2 m real elements, as m complex ones; turns: cos and sin of -pi k / m, k <= m. */
    void (*halves)(const fac_fft_out *o, const float *z, int64_t m, const float *turns);
} fac_fft_kernels;
#endif
