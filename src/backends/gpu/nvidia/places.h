/* Where the results and the extras of a product lie, for kernels that take four neighbours along
 * the channels of one pixel (the columns of one row of a matrix product). */
#ifndef FACULA_GPU_NVIDIA_PLACES_H
#define FACULA_GPU_NVIDIA_PLACES_H
#include "backends/gpu/product/product.h"

/* Where the element of a pixel and a channel lies: at + the coordinates times their steps, in
 * elements.  apart: rows and columns that are no multiples of it have none, the others are divided
 * by it (0 and 1: all have). */
typedef struct fac_nv_place {
    int64_t at;
    int32_t image, depth, row, column, channel, apart;
} fac_nv_place;

/* How an extra changes: by channels alone, by both with four channels side by side, by pixels
 * alone, anyhow. */
typedef enum fac_nv_run { FAC_NV_CHANNELS, FAC_NV_FOURS, FAC_NV_PIXELS, FAC_NV_ANYHOW } fac_nv_run;

/* Element 0 is the result, after it the extras of the product in their order; the argument has 1 +
 * extras of them. */
typedef struct fac_nv_ends {
    fac_nv_place p[1 + FAC_GPU_EXTRAS];
} fac_nv_ends;
static inline size_t fac_nv_ends_bytes(const fac_gpu_product *r) {
    return (size_t)(1 + r->extras) * sizeof(fac_nv_place);
}

/* The place of a result of `rank` spatial dims [images][channels][...] and of an operand that
 * broadcasts to it. */
bool fac_nv_place_of(const fac_operand *x, const fac_dims *result, fac_nv_place *to);
/* Whether fours of it lie on 8 (16 bits) or 16 bytes. */
bool fac_nv_in_fours(const fac_nv_place *p);
fac_nv_run fac_nv_run_of(const fac_nv_place *p);

/* Extras that are not like the result (-1: none): `thin` has only the pixels that are `apart` from
 * one another, and is 0 between them; `bits` is u8, and bit c % 4 of byte c / 4 of a pixel is
 * channel c's (ops/bits.h). */
typedef struct fac_nv_unlike {
    int thin, apart, bits;
} fac_nv_unlike;

/* All places of a convolution's product r; asks for channels last where fours cannot be read or
 * written (which only an offer may do).  false: a type or a broadcast that this is not for, or more
 * than 2^31 elements away. */
bool fac_nv_ends_read(fac_problem *p, const fac_gpu_product *r, const fac_nv_unlike *unlike,
                      fac_nv_ends *e);
/* Lays x out with all channels of a pixel side by side. */
void fac_nv_lay_last(fac_operand *x);

/* Has only pixels that are apart; is the same for all pixels. */
static inline bool fac_nv_is_thin(const fac_nv_place *p) { return p->apart > 1; }
static inline bool fac_nv_is_still(const fac_nv_place *p) {
    return !(p->image | p->depth | p->row | p->column) && !fac_nv_is_thin(p);
}
#endif
