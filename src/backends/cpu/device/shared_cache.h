/* How near the cores of a pool are to each other. */
#ifndef FACULA_CPU_APART_H
#define FACULA_CPU_APART_H
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/streams.h"

/* Two cores without a cache in common, by a look every other millisecond.  A line of which both
 * have a copy is written there at a tenth of the speed of stores past the caches; in a common cache
 * it is the other way round. */
bool fac_cpu_apart(const fac_cpu *c);
/* So results of whole vectors from y on go past the caches; whoever writes them ends with
 * fac_streams_end(). */
static inline bool fac_cpu_writes_past(const fac_cpu *c, const float *y) {
    return c->simd->streams->put && (uintptr_t)y % (sizeof *y * (size_t)c->simd->lanes) == 0 &&
           fac_cpu_apart(c);
}
#endif
