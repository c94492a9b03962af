/* What estimates take a device to do.  A driver tells units, no rates: those of a GPU are an H200's
 * (measured) by its number of units, those of a cpu PoCL's on two cores.  Rates of NVIDIA's matrix
 * units are in gpu/nvidia/speed.h. */
#ifndef FACULA_GPU_SPEED_H
#define FACULA_GPU_SPEED_H
#include "backends/gpu/limits.h"

typedef struct fac_gpu_speed {
    double unit_flops;      /* operations a second of one compute unit */
    double unit_bandwidth;  /* bytes a second of memory, for each unit; 0: all units share */
    double bandwidth;       /* ...of all units together, where they share it */
    double calls_bandwidth; /* what simple kernels (calls.c) count on, of the whole device */
    double launch;          /* seconds of a launch */
    double scattered;       /* seconds for an element that is added to its place */
} fac_gpu_speed;
const fac_gpu_speed *fac_gpu_speed_of(const fac_gpu_limits *l);

/* Operations and bytes a second of all units. */
double fac_gpu_flops(const fac_gpu_limits *l);
double fac_gpu_bandwidth(const fac_gpu_limits *l);

/* Seconds that solvers count on, whatever the device. */
typedef struct fac_gpu_cost {
    double call;           /* a launch of simple kernels, norms among them */
    double quads_call;     /* ...of pools on quads */
    double product_launch; /* ...of a product by tiles */
    double vector_launch;  /* ...of a product by vectors */
    double second_launch;  /* one that packs, or adds the parts of a sum */
    double winograd_slice; /* the launches of a slice of a Winograd convolution, */
    double winograd_grads; /* ...and of its gradients by weights */
    double wave;           /* a round of a product's tiles */
    double direct_turn;    /* a turn of a direct convolution's loop, on a GPU */
    double nothing;        /* a step without elements */
} fac_gpu_cost;
extern const fac_gpu_cost fac_gpu_costs;
#endif
