/* What nv_bits_probe.cl has to find. */
#include "backends/opencl/nvidia/bits/bits.h"

enum { WORDS = 8 };

/* Row r has r + 1 bits in one word, and all of the next. */
static uint32_t row_word(int r, int w) {
    if (w == r % WORDS) return (UINT32_C(2) << r) - 1;
    return w == (r + 1) % WORDS ? UINT32_MAX : 0;
}

/* Column n has all bits of one word, and 4 n of the next. */
static uint32_t column_word(int n, int w) {
    if (w == n) return UINT32_MAX;
    return w == (n + 1) % WORDS ? (UINT32_C(1) << 4 * n) - 1 : 0;
}

static int both(int r, int n) {
    int sum = 0;
    for (int w = 0; w < WORDS; w++)
        for (uint32_t x = row_word(r, w) & column_word(n, w); x; x &= x - 1) sum++;
    return sum;
}

int fac_nv_bits_probe(int item) {
    const int r = item % 32 / 4, n = 2 * (item % 4);
    return both(r, n) + 100 * both(r, n + 1) + 10000 * both(r + 8, n) +
           1000000 * both(r + 8, n + 1);
}
