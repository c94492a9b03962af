/* Copies between strided places as launches of copy.cl, for all that only moves data. */
#ifndef FACULA_OPENCL_COPY_H
#define FACULA_OPENCL_COPY_H
#include "backends/opencl/device/calls.h"

/* Common dims and where both sides lie along them, in elements. */
typedef struct fac_cl_moved {
    int dims;
    int64_t size[2 * FAC_DIMS], from[2 * FAC_DIMS], to[2 * FAC_DIMS], from_offset, to_offset;
} fac_cl_moved;

/* Drops dims of one, orders them as the target lies and merges neighbours. */
void fac_cl_moved_settle(fac_cl_moved *m);
static inline void fac_cl_moved_dim(fac_cl_moved *m, int64_t size, int64_t from, int64_t to) {
    m->size[m->dims] = size;
    m->from[m->dims] = from;
    m->to[m->dims++] = to;
}
/* Another launch of the plan: a settled copy from input i to output k of p, elements of `bytes`. */
fac_status fac_cl_copy_add(fac_opencl *o, fac_cl_plan *plan, const fac_problem *p, int i, int k,
                           const fac_cl_moved *m, size_t bytes, fac_error *err);
/* A type of so many bytes in OpenCL C; "" when elements are not 1, 2, 4, 8 or 16 bytes. */
const char *fac_cl_bits(size_t bytes);
#endif
