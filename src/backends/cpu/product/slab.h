/* Products with a slab: some rows of weights that became f32 in the caches of a core. */
#ifndef FACULA_CPU_SLAB_H
#define FACULA_CPU_SLAB_H
#include "backends/cpu/device/cpu.h"

typedef struct fac_slab {
    const fac_cpu *cpu;
    int64_t M, N, K;     /* of the whole product */
    int64_t rows, slabs; /* rows of weights in a slab, slabs in all */
    bool direct;         /* K is whole vectors */
} fac_slab;

/* Fills in rows and slabs for M, N, K > 0; false: indices would not fit. */
bool fac_slab_settle(fac_slab *s);
/* Floats that a thread needs: the slab, and what a matrix product packs. */
size_t fac_slab_floats(const fac_slab *s);
/* y[m][n] = sum over k of x[m][k] slab[n][k], n < rows; y: rows N apart.  `slab` lies in what
 * fac_slab_floats says, and what comes after it is overwritten. */
void fac_slab_product(const fac_slab *s, const float *x, float *slab, int64_t rows, float *y);
#endif
