/* A plain image with the zeros that a convolution pads it with: what first layers read, whose
 * channels are too few for blocks. */
#ifndef FACULA_CPU_PADDED_H
#define FACULA_CPU_PADDED_H
#include "backends/cpu/device/cpu.h"
#include "ops/conv.h"

typedef struct fac_padded {
    bool needed; /* else the image itself will do: no padding, no window that looks past it */
    int64_t height, row, plane; /* rows of a plane; floats from row to row, from plane to plane */
} fac_padded;

fac_padded fac_padded_of(const fac_conv_geom *g);
/* Bytes of the copy, 0 when none is needed; false when they do not fit. */
bool fac_padded_bytes(const fac_conv_geom *g, const fac_padded *p, size_t *bytes);
/* Row `row` of the copy's plane number `plane` alone. */
void fac_padded_row(const fac_conv_geom *g, const fac_padded *p, const float *from, int64_t plane,
                    int64_t row, float *to);
void fac_padded_copy(const fac_pool *pool, const fac_conv_geom *g, const fac_padded *p,
                     const float *from, float *to);
#endif
