/* In which order a kernel walks the elements of an elementwise node's results. */
#ifndef FACULA_GPU_WALK_H
#define FACULA_GPU_WALK_H
#include "facula/backend.h"

enum { FAC_GPU_OPERANDS = 24 };

/* The shape of the walk: common dims, merged where all operands allow, and each operand's strides
 * in elements along them. */
typedef struct fac_gpu_walk {
    int dims, operands; /* dims: at least one; inputs first, then outputs */
    uint64_t count, size[FAC_DIMS];
    int64_t stride[FAC_GPU_OPERANDS][FAC_DIMS], offset[FAC_GPU_OPERANDS];
} fac_gpu_walk;

/* false: an operand is blocked, or they are too many for a kernel's arguments. */
bool fac_gpu_walk_of(const fac_problem *p, fac_gpu_walk *w);
/* Some element lies too far away for a number of 32 bits. */
bool fac_gpu_walk_is_wide(const fac_gpu_walk *w);
#endif
