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

/* What a node of these attributes does to x [.., in, .., 1 or 2] along `axis`; length: n where it
 * is given, else -1.  false: something is not known. */
bool fac_transform_of(const void *attrs, const fac_dims *x, const fac_dims *y, int axis,
                      int64_t length, fac_transform *to);

/* A convolution that is a transform of n numbers, for transforms of size >= 2 n - 1 that have no
 * prime factor above 13 (Bluestein).  turn: n pairs by which both the numbers and the result are
 * multiplied; filter: `size` pairs, the transform of what comes between, over size.  false: no
 * memory. */
bool fac_transform_chirps(double *turn, double *filter, int64_t n, int64_t size, bool inverse);

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
