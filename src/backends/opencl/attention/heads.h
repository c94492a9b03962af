/* Operands of attention as heads: B,H,S,D, or B,S,HD, whose heads stand side by side. */
#ifndef FACULA_OPENCL_HEADS_H
#define FACULA_OPENCL_HEADS_H
#include "backends/opencl/device/calls.h"

typedef struct fac_cl_heads {
    int64_t batch, head, row;  /* steps in elements */
    int64_t heads, rows, size; /* heads, rows of each, elements of a row */
} fac_cl_heads;

/* heads: of an operand with three dims. */
static inline fac_cl_heads fac_cl_heads_of(const fac_operand *o, int64_t heads) {
    const int64_t *s = o->layout.stride, *d = o->type.dims.d;
    if (o->type.dims.n == 4) return (fac_cl_heads){ s[0], s[1], s[2], d[1], d[2], d[3] };
    const int64_t size = heads ? d[2] / heads : 0;
    return (fac_cl_heads){ s[0], size, s[1], heads, d[1], size };
}

/* Elements of a row lie side by side; all else may lie anywhere. */
static inline void fac_cl_heads_want(fac_operand *o) {
    const int last = o->type.dims.n - 1;
    const bool gaps = o->layout.stride[last] != 1 && o->type.dims.d[last] != 1;
    if (o->layout.block || gaps) o->layout = fac_layout_plain(&o->type.dims);
    o->layout.halo = 0;
}
#endif
