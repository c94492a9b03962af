/* Rows of depthwise convolutions of bytes, with VNNI: see backends/cpu/bytes/bytes.h.
 *
 * The rows of a window are interleaved, so that one instruction multiplies and adds four rows of a
 * column for each channel.  Of windows of three columns next to each other, a column is interleaved
 * once and added to the three outputs that see it. */
#include "backends/cpu/bytes/bytes.h"
#include "backends/cpu/simd/vector.h"

#if VL == 16
#define WITH_VNNI __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vnni")))

#define WIDTH 512
#define CHANNELS 64
#include "backends/cpu/simd/bytes/bytes_depthwise.h"

#define WIDTH 256
#define CHANNELS 32
#include "backends/cpu/simd/bytes/bytes_depthwise.h"

extern fac_byte_depthwise_kernel fac_byte_depthwise_vnni;
WITH_VNNI void fac_byte_depthwise_vnni(const fac_byte_depthwise *t) {
    int c = 0;
    for (; c + 32 < t->channels; c += 64) row_64(t, c);
    if (c < t->channels) row_32(t, c);
}
#endif
