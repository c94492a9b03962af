/* Sums of look-ups, of each vector of outputs an even part and an odd one.  See bits_tables.c,
 * which includes this. */

/* ---- from bytes to 16 bits ---- */

INLINE_TABLES void add_sums(uint8_t *to, bytes *a) {
    STORE(to, ADD_16(LOAD(to), *a));
    STORE(to + WIDTH, ADD_16(LOAD(to + WIDTH), DOWN_8(*a)));
    *a = SUB_16(*a, *a);
}

/* Pairs of pixels (bits_pairs.h): first sums of the first of them, and what both are kept in. */
enum { PAIRS = RUN / 2 };
INLINE_TABLES bytes second_of(bytes first, bytes both) { return SUB_16(both, UP_4(DOWN_8(first))); }

INLINE_TABLES void flush(bytes a[][RUN], uint8_t *sums0, uint8_t *sums1, const int outs,
                         const int n, const bool pairs) {
    UNROLL
    for (int v = 0; v < outs * VECTORS; v++) {
        uint8_t *to = (v < VECTORS ? sums0 : sums1) + v % VECTORS * 2 * WIDTH;
        UNROLL
        for (int p = 0; p < n; p++, to += PIXEL) {
            if (pairs) {
                a[v][PAIRS + p] = second_of(a[v][p], a[v][PAIRS + p]);
                add_sums(to + n * PIXEL, &a[v][PAIRS + p]);
            }
            add_sums(to, &a[v][p]);
        }
    }
}

INLINE_TABLES void clear(void *sums, const int pixels) {
    UNROLL
    for (int k = 0; k < pixels * PIXEL / WIDTH; k++) STORE((uint8_t *)sums + k * WIDTH, ALL_16(0));
}

/* ---- one look-up after another ---- */

/* One tap: a table for each pixel, in memory. */
INLINE_TABLES void tap(const uint8_t *x, int64_t x_pixel, const uint8_t *w0, const uint8_t *w1,
                       bytes a[][RUN], const int outs, const int n) {
    bytes i[2 * VECTORS];
    UNROLL
    for (int v = 0; v < VECTORS; v++) {
        i[v] = LOAD(w0 + v * WIDTH);
        if (outs > 1) i[VECTORS + v] = LOAD(w1 + v * WIDTH);
    }
    UNROLL
    for (int p = 0; p < n; p++) {
        const bytes table = TABLE_AT(x + p * x_pixel);
        UNROLL
        for (int v = 0; v < outs * VECTORS; v++) {
            a[v][p] = ADD(a[v][p], LOOK_UP(table, i[v]));
            __asm__("" : "+v"(a[v][p]));
        }
    }
}

#if VL == 16
enum { NEARBY = RUN + TAPS - 1 };
/* Three taps side by side: their pixels share tables, which stay in registers. */
INLINE_TABLES void taps(const uint8_t *x, int64_t x_pixel, const uint8_t *w0, const uint8_t *w1,
                        bytes a[][RUN], const int outs, const int n) {
    bytes table[NEARBY];
    UNROLL
    for (int p = 0; p < n + TAPS - 1; p++, x += x_pixel) {
        table[p] = LOAD(x);
        __asm__("" : "+r"(x)); /* else offsets of all pixels would take registers */
    }
    UNROLL
    for (int s = 0; s < TAPS; s++) {
        UNROLL
        for (int v = 0; v < outs; v++) {
            const bytes i = LOAD((v ? w1 : w0) + s * WIDTH);
            UNROLL
            for (int p = 0; p < n; p++) {
                a[v][p] = ADD(a[v][p], LOOK_UP(table[p + s], i));
                __asm__("" : "+v"(a[v][p]));
            }
        }
    }
}
#else
/* Three taps side by side; registers have no room for their tables. */
INLINE_TABLES void taps(const uint8_t *x, int64_t x_pixel, const uint8_t *w0, const uint8_t *w1,
                        bytes a[][RUN], const int outs, const int n) {
    UNROLL
    for (int s = 0; s < TAPS; s++, x += x_pixel) {
        tap(x, x_pixel, w0 + s * FAC_TABLE_OUTPUTS, w1 + s * FAC_TABLE_OUTPUTS, a, outs, n);
        __asm__("" : "+r"(x)); /* else offsets of all pixels would take registers */
    }
}
#endif

#include "backends/cpu/simd/bits/bits_pairs.h"

/* A row of tables of some groups; so many more look-ups fit into bytes. */
INLINE_TABLES int row_of(const fac_bit_lookup *t, const uint8_t *x, const uint8_t *w0,
                         const uint8_t *w1, int groups, int left, bytes a[][RUN], uint8_t *sums0,
                         uint8_t *sums1, const int outs, const int n, const bool three) {
    const int64_t x_pixel = t->x_pixel, x_column = t->x_column;
    for (int g = 0; g < groups; g++, x += TABLE) {
        if (three) {
            if (left < TAPS) {
                flush(a, sums0, sums1, outs, n, false);
                left = t->flush;
            }
            taps(x, x_pixel, w0, w1, a, outs, n);
            left -= TAPS;
            w0 += TAPS * FAC_TABLE_OUTPUTS;
            w1 += TAPS * FAC_TABLE_OUTPUTS;
            continue;
        }
        for (int s = 0; s < t->S; s++, left--) {
            if (!left) {
                flush(a, sums0, sums1, outs, n, false);
                left = t->flush;
            }
            tap(x + s * x_column, x_pixel, w0, w1, a, outs, n);
            w0 += FAC_TABLE_OUTPUTS;
            w1 += FAC_TABLE_OUTPUTS;
        }
    }
    return left;
}

/* Few groups of tables at a time, of all rows, so that they come from the nearest cache. */
INLINE_TABLES void lookup_of(const fac_bit_lookup *t, const int outs, const int n, const bool three,
                             const bool pairs) {
    const int64_t each = (int64_t)t->S * FAC_TABLE_OUTPUTS, row = t->groups * each;
    bytes a[2 * VECTORS][RUN];
    for (int y = 0; y < t->rows; y++) {
        clear(t->sums0[y], n * (1 + pairs));
        if (outs > 1) clear(t->sums1[y], n);
    }
    UNROLL
    for (int v = 0; v < outs * VECTORS; v++) {
        UNROLL
        for (int p = 0; p < RUN; p++) a[v][p] = ALL_16(0);
    }
    for (int g = 0; g < t->groups; g += CHUNK) {
        const int groups = t->groups - g < CHUNK ? t->groups - g : CHUNK;
        for (int y = 0; y < t->rows; y++) {
            uint8_t *sums0 = (uint8_t *)t->sums0 + y * FAC_BIT_RUN * PIXEL;
            uint8_t *sums1 = (uint8_t *)t->sums1 + y * FAC_BIT_RUN * PIXEL;
            int left = t->flush;
            for (int r = 0; r < t->R; r++) {
                const uint8_t *x = t->x[y * t->y_row + r * t->x_row] + t->from + g * TABLE;
                const int64_t at = r * row + g * each;
                if (pairs)
                    left = row_of_pairs(t, x, t->w0 + at, groups, left, a, sums0, n, three);
                else
                    left = row_of(t, x, t->w0 + at, outs > 1 ? t->w1 + at : t->w0, groups, left, a,
                                  sums0, sums1, outs, n, three);
            }
            flush(a, sums0, sums1, outs, n, pairs);
        }
    }
}

/* Three taps whose pixels are tables side by side. */
INLINE_TABLES bool near_taps(const fac_bit_lookup *t) {
    return t->S == TAPS && t->x_column == t->x_pixel && (t->halves || t->flush >= TAPS);
}
#define NEAR(outs, k, pairs)                                                                       \
    if (near_taps(t))                                                                              \
        lookup_of(t, outs, k, true, pairs);                                                        \
    else                                                                                           \
        lookup_of(t, outs, k, false, pairs)
#if VL == 16
#define CASE(k)                                                                                    \
    case k:                                                                                        \
        if (t->w1) {                                                                               \
            NEAR(2, k, false);                                                                     \
        } else {                                                                                   \
            NEAR(1, k, false);                                                                     \
        }                                                                                          \
        break;
#else
/* Accumulators of 64 outputs fill half of the registers. */
#define CASE(k)                                                                                    \
    case k:                                                                                        \
        NEAR(1, k, false);                                                                         \
        break;
#endif
TARGET static void lookup_singles(const fac_bit_lookup *t) {
    switch (t->n) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#if VL == 16
        CASE(5)
        CASE(6)
        CASE(7)
#endif
    }
}

TARGET static void lookup(const fac_bit_lookup *t) {
#if VL == 8
    if (t->halves && t->n == 1) {
        NEAR(1, 1, true);
        return;
    }
    if (t->halves) {
        NEAR(1, 2, true);
        return;
    }
#endif
    lookup_singles(t);
}
