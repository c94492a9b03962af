/* Products with weights that become f32 by pieces: a panel of columns (gemm.h), some of the sum at
 * a time, is made in the caches of a core when it is needed, and meets all rows of x there. */
#ifndef FACULA_CPU_PANELS_H
#define FACULA_CPU_PANELS_H
#include "backends/cpu/device/cpu.h"

typedef struct fac_panels {
    const fac_cpu *cpu;
    int64_t M, N, K; /* of the whole product */
    int together;    /* panels that are made before they meet x */
    size_t shared;   /* floats of scratch: x packed */
    size_t each;     /* and of each thread */
} fac_panels;

/* Fills in the rest for M, N, K > 0; false: indices would not fit. */
bool fac_panels_settle(fac_panels *p);

/* k0 .. k1 - 1 (k0 a multiple of 256) of panel `panel`, of `vectors` vectors of columns: to[k1 -
 * k0] [vectors][lanes], zeros after the last column.  Up to the next multiple of 32 after k1 it may
 * be overwritten. */
typedef void fac_panel_maker(const void *of, int64_t panel, int vectors, int64_t k0, int64_t k1,
                             float *to);
/* What comes after the products for columns first .. first + n - 1 of all rows; NULL: nothing. */
typedef void fac_panel_end(const void *of, int64_t first, int64_t n);

typedef struct fac_panels_job {
    const fac_panels *p;
    const float *x;
    float *y;
    fac_panel_maker *make;
    fac_panel_end *end;
    const void *of;
    float *scratch; /* shared + each x threads floats */
} fac_panels_job;
void fac_panels_run(const fac_panels_job *j);
#endif
