/* Kernels of Fourier transforms (simd/fft.c).  See simd.h for what all kernels have in common. */
#ifndef FACULA_CPU_SIMD_FFT_H
#define FACULA_CPU_SIMD_FFT_H
#include <stdbool.h>
#include <stdint.h>

/* Fourier transforms of as many signals as a vector has lanes, one a lane: element i of all signals
 * is a vector, of complex ones two, real parts first. */
enum { FAC_FFT_STAGES = 40, FAC_FFT_PRIME = 13 };
typedef struct fac_fft {
    int64_t n;                         /* complex elements */
    int stages, radix[FAC_FFT_STAGES]; /* each 2, 3, 4, 5, 7, 8, 11 or 13 */
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
    /* writes to both, returns one; what inverses are divided by is left out */
    float *(*transform)(const fac_fft *f, bool inverse, float *a, float *b);
    void (*whole)(const fac_fft_out *o, const float *z);
    /* z: of 2 m real elements, as m complex ones; turns: cos and sin of -pi k / m, k <= m. */
    void (*halves)(const fac_fft_out *o, const float *z, int64_t m, const float *turns);
} fac_fft_kernels;

/* Before and after such transforms (simd/fft_ends.c).  `lanes`: of a vector, or 1: then what is
 * said of vectors holds of numbers, and complex elements are pairs. */
typedef struct fac_fft_ends {
    /* Element i of all signals times the pair z[i], or what is conjugate to it. */
    void (*times)(int lanes, float *x, int64_t n, const float *z, bool conjugate);
    void (*scale)(int lanes, float *x, int64_t n, float re, float im);
    void (*widen)(int lanes, float *x, int64_t n);  /* as above */
    void (*narrow)(int lanes, float *x, int64_t n); /* real parts alone, in place */
    /* n elements of which the first n / 2 + 1 are there and the others mirror them */
    void (*mirror)(int lanes, float *x, int64_t n);
    /* Of m + 1 bins the m elements whose inverse transform is 2 m real ones, times `by`; and back:
     * `bins` of the bins of m elements that a transform gave.  turns: as those of halves(). */
    void (*join)(int lanes, const float *x, float *z, int64_t m, const float *turns, float by);
    void (*apart)(int lanes, const float *z, float *x, int64_t bins, int64_t m, const float *turns);
    /* Element i of signals that lie side by side is at x[i stride], `parts` numbers a signal. */
    void (*bring)(const float *x, int64_t stride, int parts, float *to, int64_t n, int signals);
    void (*take)(const float *from, int64_t n, float *x, int64_t stride, int parts, int signals);
    /* Element i times z[i], one complex number a lane. */
    void (*twiddle)(float *x, int64_t n, const float *z, bool conjugate);
} fac_fft_ends;
#endif
