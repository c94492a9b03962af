/* Fourier transforms as products of matrices: what dft.c and dft_parts.c share. */
#ifndef FACULA_OPS_DFT_H
#define FACULA_OPS_DFT_H
#include "facula/op.h"

/* One transform with everything known. */
typedef struct fac_transform {
    int64_t n, in, out;
    int cin, cout;
    bool inverse, onesided;
} fac_transform;

/* How element i of x, real or imaginary part, adds to element k of y, but for the 1 / n of
 * inverses. */
double fac_transform_entry(const fac_transform *t, int64_t i, int part_in, int64_t k, int part_out);

/* x [.., in, cin] -> [.., out, cout], but for the 1 / n, as one product; the dims before may be
 * symbols. */
fac_value *fac_transform_whole(fac_value *x, const fac_transform *t);

/* Is it better made of shorter ones? */
bool fac_transform_divides(const fac_transform *t);
/* The same as fac_transform_whole of such ones; all dims are known. */
fac_value *fac_transform_parts(fac_value *x, const fac_transform *t);
#endif
