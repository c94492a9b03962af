/* What a device tells of itself, without its driver's types: all that choosing tiles and estimating
 * their time asks.  What stands in this folder knows no more of a device; src/backends/opencl fills
 * it in, reads problems, writes kernels and launches them. */
#ifndef FACULA_GPU_LIMITS_H
#define FACULA_GPU_LIMITS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fac_gpu_limits {
    size_t memory, largest, local,
        align;        /* bytes: in all, of one buffer, of a work group, of a buffer's start */
    size_t group;     /* most work items in a group */
    size_t arguments; /* bytes of a kernel's; at least 1,024 */
    unsigned units;   /* compute units */
    unsigned vector;  /* floats of the vectors that it prefers; 0: not told */
    bool fp64, fp16, gpu, subgroups;
    int major, minor; /* OpenCL C */
    char vendor[64];  /* as it calls itself */
} fac_gpu_limits;

/* Parts of `each` that n has, the last one perhaps smaller. */
static inline int64_t fac_gpu_parts(int64_t n, int64_t each) { return (n + each - 1) / each; }
#endif
