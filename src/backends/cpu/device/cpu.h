/* The cpu backend, as its own files see it: backend.c opens and closes it, the solvers read it. */
#ifndef FACULA_CPU_H
#define FACULA_CPU_H
#include <stdatomic.h>
#include "backends/cpu/device/simd.h"
#include "backends/cpu/device/speed.h"
#include "backends/device.h"
#include "base/threads.h"
#include "facula/backend.h"

/* What shared_cache.c has seen last. */
typedef struct fac_apart {
    _Atomic int64_t until;
    atomic_bool far;
} fac_apart;

typedef struct fac_cpu {
    struct fac_device device; /* first: a fac_device * of this backend is a fac_cpu * */
    const fac_simd *simd;
    const struct fac_byte_kernels
        *bytes; /* of the same vectors, or better ones that this processor has */
    const struct fac_bit_kernels *bits;             /* the same for bits */
    const struct fac_bit_table_kernels *bit_tables; /* NULL: none */
    fac_pool pool;        /* the caller's or that of `threads`; work goes through fac_parallel */
    fac_threads *threads; /* NULL: the caller brought a pool                                   */
    size_t l1, l2, l3;    /* bytes: of one core, of one core, of all                           */
    fac_apart *apart;     /* NULL: not looked at */
    double flops; /* of all threads, rough: multiplications and additions a second         */
    double bandwidth, beyond; /* bytes a second from memory; from beyond the caches of a core */
} fac_cpu;

static inline const fac_cpu *fac_cpu_of(const fac_device *d) { return (const fac_cpu *)d; }

/* simd, caches and speeds from this machine, for a pool that is already there. */
fac_status fac_cpu_detect(fac_cpu *c, const char *isa, fac_error *err);

/* The processor's name and caches, "Intel(R) Xeon(R) Processor, caches 48 K, 2048 K, 266240 K":
 * measurements are true there. */
void fac_cpu_model(const fac_cpu *c, char *to, size_t size);
/* fac_device_peaks. */
fac_status fac_cpu_peaks(fac_device *d, fac_peaks *out, fac_error *err);

/* Where a packed operand begins; NULL when it is absent. */
static inline float *fac_span_packed(fac_span s) {
    return s.memory ? (float *)((char *)s.memory + s.at) : NULL;
}
/* Where element 0 of an operand lies. */
static inline float *fac_span_floats(fac_span s, const fac_layout *l) {
    return (float *)((char *)s.memory + s.at) + l->offset;
}

/* How much longer `items` equal pieces take on these threads than if they could be shared out
 * evenly. */
static inline double fac_cpu_waste(int64_t items, int64_t threads) {
    return (double)((items + threads - 1) / threads * threads) / (double)items;
}

/* What an offer says: so many operations at this share of the peak, after or before so many bytes
 * moved. */
static inline double fac_cpu_seconds(const fac_cpu *c, double operations, double share,
                                     double bytes) {
    return fac_cpu_speeds.step + operations / (c->flops * share) + bytes / (2 * c->bandwidth);
}

extern const fac_backend fac_backend_cpu;
#endif
