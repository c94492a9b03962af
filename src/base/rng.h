/* Counter-based random numbers: Philox 4x32-10 (Salmon et al., SC 2011).  Number i of a stream is a
 * function of (seed, stream, i) alone, so any thread, device and order gives the same numbers. */
#ifndef FACULA_BASE_RNG_H
#define FACULA_BASE_RNG_H
#include <stddef.h>
#include <stdint.h>

void fac_philox(uint64_t key, uint64_t stream, uint64_t counter, uint32_t out[4]);
uint64_t fac_random_bits(uint64_t seed, uint64_t stream, uint64_t i);
double fac_random_uniform(uint64_t seed, uint64_t stream, uint64_t i); /* [0, 1), 53 bits */
void fac_random_uniforms(uint64_t seed, uint64_t stream, uint64_t i, size_t n,
                         double *to); /* i .. i + n - 1, fast */
void fac_random_words_fill(uint64_t seed, uint64_t stream, uint64_t i, size_t n,
                           uint64_t *to); /* bits i .. i + n - 1, fast */
double fac_random_normal(uint64_t seed, uint64_t stream, uint64_t i); /* Box-Muller      */
void fac_random_fill(uint64_t seed, uint64_t stream, float lo, float hi, size_t n,
                     float *to); /* uniform, fast */
#endif
