/* Reading images at places between their pixels: what grid_sample, roi_align and deform_conv share.
 *
 * Along one axis a place is a few taps: elements `at` with weights.  In several dims the taps are
 * all combinations, whose weights are products. */
#ifndef FACULA_OPS_SAMPLING_H
#define FACULA_OPS_SAMPLING_H
#include "facula/op.h"

enum { FAC_SAMPLING_TAPS = 4 }; /* along one axis at most */

/* As values of a graph: i64 and floats of equal dims [.., taps]. */
typedef struct fac_taps {
    fac_value *at, *weight;
} fac_taps;

/* Taps below and above places c (floats [..]) along an axis of `size` elements; those outside have
 * no weight. */
fac_taps fac_taps_linear(fac_value *c, int64_t size);
/* Taps of a leading axis combined with those of the next one, which has `size` elements; all but
 * the last dims broadcast. */
fac_taps fac_taps_join(fac_taps a, fac_taps b, int64_t size);
/* What is read of x [N,C,spatial..] at taps [M,..,k] of its flat pixels, times their weights:
 * [M,P,k,C], P places.  Image: i64 [M], of which image; NULL: place m reads image m. */
fac_value *fac_taps_read(fac_value *x, fac_value *image, fac_taps taps);

/* ---- the same in C ---- */

typedef struct fac_tap_list {
    int count;
    int64_t at[FAC_SAMPLING_TAPS];
    double weight[FAC_SAMPLING_TAPS];
} fac_tap_list;

fac_tap_list fac_tap_list_linear(double c, int64_t size);
#endif
