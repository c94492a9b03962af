/* The part of a whole that a slice is, along one axis and in steps of one. */
#ifndef FACULA_PASSES_PART_H
#define FACULA_PASSES_PART_H
#include "graph/graph_internal.h"

typedef struct fac_part_range {
    int axis;
    int64_t first, count;
} fac_part_range;

/* Of a slice or slice_grad with the inputs in[], of which `whole` are the dims that it is cut from.
 * false: of several axes, in other steps, of an open size, empty, or not known. */
bool fac_part_of(fac_value *const in[], const fac_dims *whole, fac_part_range *r);
#endif
