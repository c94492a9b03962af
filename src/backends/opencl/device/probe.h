/* Fast paths that an extension promises, and whether they really work here: a tiny kernel is run
 * once a device and its numbers are compared; the answer is kept in the cache on disk.  A solver
 * with such a path asks before it offers. */
#ifndef FACULA_OPENCL_PROBE_H
#define FACULA_OPENCL_PROBE_H
#include "backends/opencl/device/opencl.h"
#include "base/text.h"

typedef enum fac_cl_path {
    FAC_CL_DOUBLES,        /* double                                            */
    FAC_CL_HALF,           /* arithmetic in half, subnormal numbers included    */
    FAC_CL_SUBGROUPS,      /* sub_group_reduce_add, sub_group_broadcast: told, but see
                              exchange.cl */
    FAC_CL_SHUFFLE,        /* sub_group_shuffle_xor                             */
    FAC_CL_SHUFFLE_INTEL,  /* intel_sub_group_shuffle_xor                       */
    FAC_CL_SHUFFLE_NVIDIA, /* shfl.sync, by inline PTX                          */
    FAC_CL_DOT8,           /* dot products of four bytes, added to an int       */
    FAC_CL_DOT8_NVIDIA,    /* dp4a by inline PTX                                */
    FAC_CL_MMA,            /* NVIDIA: mma.sync on TF32 by inline PTX            */
    FAC_CL_MMA_B1,         /* NVIDIA: mma.sync that counts bits (sm_80 to 90)   */
    FAC_CL_WGMMA,          /* NVIDIA: wgmma on TF32 by rewritten PTX            */
    FAC_CL_WGMMA_B1,       /* NVIDIA: wgmma that counts bits, by rewritten PTX  */
    FAC_CL_MAPS,           /* NVIDIA: tensor maps that kernels make (sm_90)     */
    FAC_CL_MAPS_16,        /* NVIDIA: the same for an assembler that wants strides in 16 bytes */
    FAC_CL_LOCAL_99,       /* NVIDIA: groups with 99 KiB of local memory (sm_86) */
    FAC_CL_LOCAL_163,      /* NVIDIA: with 163 KiB (sm_80)                      */
    FAC_CL_FENCES,         /* NVIDIA: groups that see what others wrote, by inline PTX (last.cl) */
    FAC_CL_RELAY,          /* NVIDIA: groups that meet within a launch (nvidia/relay/relay.h) */
    FAC_CL_PATHS
} fac_cl_path;

/* What fac_opencl.paths holds of each; a test that hides a path, or lets it be probed again, writes
 * there.  UNTOLD: the probe had no memory, so the path is not used as long as the device is open;
 * the next process asks again. */
enum { FAC_CL_UNKNOWN, FAC_CL_GOOD, FAC_CL_BAD, FAC_CL_UNTOLD };

/* Name and extension, for people. */
const char *fac_cl_path_name(fac_cl_path path);
const char *fac_cl_path_extension(fac_cl_path path);

/* Runs the probe when nobody has: in a context of its own, since a bad path may break it.
 * FACULA_WITHOUT in the environment, as "wgmma,local163", hides paths, so that what other cards get
 * can be tried: doubles, half, subgroups, shuffle, shuffle_intel, shuffle_nvidia, dot8,
 * dot8_nvidia, mma, mma_b1, wgmma, wgmma_b1, maps, maps16, local99, local163, fences, relay. */
bool fac_cl_has_path(fac_opencl *o, fac_cl_path path);
/* The extension or version that it needs is there; nothing is run. */
bool fac_cl_promises(const fac_opencl *o, fac_cl_path path);

/* What a kernel that uses such a path has in front, and the options of its compiler, added to what
 * is there; false, and nothing is added, where the device has none. */
bool fac_cl_exchange_text(fac_opencl *o, fac_text *front, fac_text *options); /* exchange.cl */
bool fac_cl_dot_text(fac_opencl *o, fac_text *front, fac_text *options); /* product/dot.cl      */
#endif
