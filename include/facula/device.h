/* facula/device.h: where work runs.  A device owns everything that outlives one program: its queue,
 * its memory, compiled kernels, packed weights, wisdom.  Nothing of that is global: two devices
 * share nothing.  All calls are thread safe. */
#ifndef FACULA_DEVICE_H
#define FACULA_DEVICE_H

#include "facula/tensor.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* The caller's threads.  run() calls task(arg, i) for every i in [0, n), in any order, and returns
 * when all are done. It must be re-entrant: two programs may call it at once. */
typedef struct fac_pool {
    int threads;
    void *self;
    void (*run)(void *self, int n, void (*task)(void *arg, int i), void *arg);
} fac_pool;

typedef struct fac_device_opts { /* zero is the default everywhere */
    int threads;                 /* cpu, at most 256: 0 = one a core                  */
    const fac_pool *pool;        /* cpu: NULL = our own                              */
    size_t memory_limit;         /* bytes this device may hold; 0 = what there is    */
    int plans;       /* compiled plans kept by a program, least recently used go first; 0 = 256 */
    const char *isa; /* cpu: "avx512", "avx2", "neon", "portable": at most this; NULL = the best */
    const char *wisdom; /* file of measured choices (facula/tune.h); NULL = FACULA_WISDOM or the
                           user's own, when it is there; "" = none                              */
    const char *packed_cache; /* folder that keeps packed weights between processes; NULL = none; ""
                                 = the user's own (XDG_CACHE_HOME/facula/packed) */
    const char *kernel_texts; /* opencl: folder that the text of every kernel is written to, a file
                                 for each, called by its hash; NULL = none.  Read while the device
                                 opens; the folder must exist                            */
} fac_device_opts;

/* How close the products inside f32 ops (matrix products, convolutions, attention) come to f32
 * arithmetic, as errors against exact sums, relative to the largest: the default within about 1e-5
 * by fast algorithms (Winograd as far as its accuracy rule goes, sums of split numbers on tensor
 * cores); highest within 3e-6; high about 1e-3 where the device multiplies TF32 (10 bits of
 * fraction, f32's range); medium about 1e-2 where it multiplies bf16 (7 bits).  Where a device has
 * no such units, the next better is done.  Tensors of other dtypes are not touched by it. */
typedef enum fac_precision {
    FAC_PRECISION_DEFAULT,
    FAC_PRECISION_HIGHEST,
    FAC_PRECISION_HIGH,
    FAC_PRECISION_MEDIUM
} fac_precision;
const char *fac_precision_name(fac_precision p); /* "default", "highest", "high", "medium" */
bool fac_precision_parse(const char *name,
                         fac_precision *out); /* false: another word; *out stays */

/* name: "cpu", "opencl", "opencl:1", "opencl:nvidia".  FAC_E_UNSUPPORTED when this build or machine
 * has none. */
fac_status fac_device_open(const char *name, const fac_device_opts *opts, fac_device **out,
                           fac_error *err);
void fac_device_free(
    fac_device *device); /* tensors and programs on it must be gone; NULL is fine */
const char *fac_device_name(const fac_device *device);  /* "cpu" */
const char *fac_device_about(const fac_device *device); /* "avx512, 2 threads": for people */

/* What the device is, one fact a call: platform, driver, memory, compute units.  Paths: the faster
 * ways that extensions promise, each with "yes, by" its extension or why not; their probes are run.
 * Nothing for the cpu. */
typedef void fac_fact(void *self, const char *name, const char *value);
void fac_device_facts(fac_device *device, fac_fact *tell, void *self);
/* The faster ways, told in the same manner. */
void fac_device_paths(fac_device *device, fac_fact *tell, void *self);

/* Waits for all submitted work.  Errors of asynchronous work surface here and in fac_tensor_read,
 * naming the node; after FAC_E_DEVICE the device answers every call with the same error. */
fac_status fac_device_sync(fac_device *device, fac_error *err);
/* Tells what kernels found wrong in data, an index out of range, as fac_device_sync does.  Waits
 * only if a kernel that looks at its data was submitted since it, or a sync, told last. */
fac_status fac_device_check(fac_device *device, fac_error *err);

/* Memory that the device holds now and held at most, bytes, and what for: tensors on it, its copies
 * of host tensors (parameters and results), the values between the steps of programs, packed
 * weights, operands of runs.  reserved: taken from the driver, which may be more than is in use:
 * fac_device_trim gives back what nothing uses. */
typedef struct fac_memory_stat {
    size_t now, peak, tensors, mirrors, arenas, packed, operands, reserved;
} fac_memory_stat;
fac_memory_stat fac_device_memory(const fac_device *device);
size_t fac_device_trim(fac_device *device); /* how many bytes were given back to the driver */

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
