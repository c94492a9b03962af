/* Two pixels in a byte of a table: its lower four bits are of one, its upper ones of another pixel
 * of the same row.  One look-up then adds to both, and three of them, of sums up to 4, fill four
 * bits; then the lower sums go to bytes, and all but the lowest ones to 16 bits:
 *     16 bits of look-ups    upper1 lower1 upper0 lower0, four bits each
 *     lower: byte by byte    sum of lower1, sum of lower0
 *     both                   256 sum of upper1 + 16 sum of lower1 + sum of upper0
 * from which the lower sums, which are known, are taken away in the end.  See bits_lookup.h, which
 * includes this. */
enum { FULL = 3 };

INLINE_TABLES int fewer(int a, int b) { return a < b ? a : b; }

/* Of the first PAIRS of a[vector] the lower sums, of the others both. */
INLINE_TABLES void add_pair(bytes sum, bytes *lower, bytes *both) {
    *both = ADD_16(*both, DOWN_4(sum));
    *lower = ADD(*lower, AND(sum, ALL_16(0x0f0f)));
    __asm__("" : "+v"(*lower), "+v"(*both));
}

/* Indices of FULL look-ups or fewer, each read once: registers have room for them, and two loads at
 * a time would take as long as the sums. */
typedef struct indices {
    bytes of[FULL];
} indices;
INLINE_TABLES indices indices_at(const uint8_t *w, const int count) {
    indices i = { 0 };
    UNROLL
    for (int k = 0; k < count; k++) {
        i.of[k] = LOAD(w + k * FAC_TABLE_OUTPUTS);
        __asm__("" : "+v"(i.of[k]));
    }
    return i;
}

/* Up to FULL look-ups of each pixel, whose tables are `step` apart. */
INLINE_TABLES void some_pairs(const uint8_t *x, int64_t x_pixel, int64_t step, const uint8_t *w,
                              bytes a[][RUN], const int n, const int count) {
    UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const indices i = indices_at(w + v * WIDTH, count);
        UNROLL
        for (int p = 0; p < n; p++) {
            bytes sum = LOOK_UP(TABLE_AT(x + p * x_pixel), i.of[0]);
            UNROLL
            for (int k = 1; k < count; k++)
                sum = ADD(sum, LOOK_UP(TABLE_AT(x + p * x_pixel + k * step), i.of[k]));
            add_pair(sum, &a[v][p], &a[v][PAIRS + p]);
        }
    }
}

/* Three taps side by side: a pixel's table is that of up to three results.  It is read again for
 * each vector of outputs, since registers have no room for all tables. */
INLINE_TABLES void near_pairs(const uint8_t *x, int64_t x_pixel, const uint8_t *w, bytes a[][RUN],
                              const int n) {
    UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const indices i = indices_at(w + v * WIDTH, TAPS);
        bytes sum[PAIRS];
        const uint8_t *far = x + 2 * x_pixel;
        __asm__ volatile("" : "+r"(x), "+r"(far));
        UNROLL
        for (int at = 0; at < n + TAPS - 1; at++) {
            const bytes table = TABLE_AT((at < 2 ? x : far) + at % 2 * x_pixel);
            UNROLL
            for (int p = 0; p < n; p++) {
                const int tap = at - p;
                if (tap < 0 || tap >= TAPS) continue;
                const bytes found = LOOK_UP(table, i.of[tap]);
                sum[p] = tap ? ADD(sum[p], found) : found;
                __asm__ volatile("" : "+v"(sum[p]));
                if (tap == TAPS - 1) add_pair(sum[p], &a[v][p], &a[v][PAIRS + p]);
            }
        }
    }
}

/* As row_of; `left`: of FULL look-ups each, at least as many as there are groups at once. */
INLINE_TABLES int row_of_pairs(const fac_bit_lookup *t, const uint8_t *x, const uint8_t *w,
                               int groups, int left, bytes a[][RUN], uint8_t *sums, const int n,
                               const bool three) {
    const int64_t x_pixel = t->x_pixel;
    int64_t step = t->x_column;
    int lines = groups, length = t->S; /* look-ups of a line are `step` apart */
    if (t->S == 1) {
        step = TABLE;
        lines = 1;
        length = groups;
    }
    if (three && left < groups) {
        flush(a, sums, NULL, 1, n, true);
        left = t->flush;
    }
    if (three) {
        for (const uint8_t *end = x + groups * TABLE; x < end; x += TABLE) {
            near_pairs(x, x_pixel, w, a, n);
            w += TAPS * FAC_TABLE_OUTPUTS;
        }
        return left - groups;
    }
    for (int g = 0; g < lines; g++, x += TABLE) {
        const uint8_t *at = x;
        for (int k = length; k > 0; k -= FULL, left--) {
            if (!left) {
                flush(a, sums, NULL, 1, n, true);
                left = t->flush;
            }
            if (k >= FULL)
                some_pairs(at, x_pixel, step, w, a, n, FULL);
            else if (k == 2)
                some_pairs(at, x_pixel, step, w, a, n, 2);
            else
                some_pairs(at, x_pixel, step, w, a, n, 1);
            at += FULL * step;
            w += fewer(k, FULL) * FAC_TABLE_OUTPUTS;
        }
    }
    return left;
}
