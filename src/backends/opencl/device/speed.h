/* What estimates of the OpenCL solvers take a device to do.  OpenCL tells units, no rates: those of
 * a GPU are an H200's (measured) by its number of units, those of a cpu PoCL's on two cores.  Rates
 * of NVIDIA's matrix units are in nvidia/unit/speed.h. */
#ifndef FACULA_OPENCL_SPEED_H
#define FACULA_OPENCL_SPEED_H
#include "backends/opencl/device/opencl.h"

typedef struct fac_cl_speed {
    double unit_flops;      /* operations a second of one compute unit */
    double unit_bandwidth;  /* bytes a second of memory, for each unit; 0: all units share */
    double bandwidth;       /* ...of all units together, where they share it */
    double calls_bandwidth; /* what simple kernels (calls.c) count on, of the whole device */
    double launch;          /* seconds of a launch */
} fac_cl_speed;
const fac_cl_speed *fac_cl_speed_of(const fac_opencl *o);

/* Operations and bytes a second of all units. */
double fac_cl_flops(const fac_opencl *o);
double fac_cl_bandwidth(const fac_opencl *o);
#endif
