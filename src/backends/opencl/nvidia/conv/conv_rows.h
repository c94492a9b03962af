/* Convolutions by nv_conv_rows.cl: one of them ready to run. */
#ifndef FACULA_OPENCL_NVIDIA_CONV_ROWS_H
#define FACULA_OPENCL_NVIDIA_CONV_ROWS_H
#include "backends/gpu/nvidia/conv/tiles.h"
#include "backends/opencl/nvidia/conv/conv.h"
#include "backends/opencl/nvidia/unit/mma.h"

typedef struct fac_nv_rows {
    fac_nv_conv c;
    fac_nv_tile t;
    fac_cl_kernel kernel;
    fac_span counters; /* of groups that are done with a split tile: zero between runs */
    size_t counted;    /* bytes */
} fac_nv_rows;

/* r->c and r->t are filled in. */
fac_status fac_nv_rows_make(fac_device *d, fac_nv_rows *r, fac_error *err);
void fac_nv_rows_free(fac_device *d, fac_nv_rows *r);
/* images: of c.g.N, the first so many.  w: packed as r->t.k; in: the problem's inputs, for extras.
 */
fac_status fac_nv_rows_run(fac_opencl *o, const fac_nv_rows *r, int64_t images, fac_span x,
                           fac_span w, fac_span y, const fac_span *in, fac_span work,
                           fac_error *err);
/* The text of the kernel, options in the first line. */
bool fac_nv_rows_text(const fac_opencl *o, const fac_nv_conv *c, const fac_nv_tile *t,
                      fac_text *to);
#endif
