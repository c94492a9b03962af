/* Lines that go through the caches in parts. */
#ifndef FACULA_CPU_NORM_PARTS_H
#define FACULA_CPU_NORM_PARTS_H
#include "backends/cpu/device/streams.h"

/* How many of the numbers that are left of a line go next: all, or a part where they are written
 * past the caches. */
static inline int64_t fac_line_part(bool past, int64_t left) {
    return past && left > FAC_STREAM_PART ? FAC_STREAM_PART : left;
}
#endif
