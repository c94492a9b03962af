/* See sketch.h. */
#include <math.h>
#include <string.h>
#include "base/clamp.h"
#include "base/memory.h"
#include "report/tensors/sketch.h"

/* The upper bits of an IEEE 754 double are its sign, exponent and first mantissa bits: the cell.
 * Beyond the rows there are the outermost cells. */
static int place_of(double x, int *cell) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int row = (int)(bits >> 52 & 2047) - 1023 - FAC_LOWEST;
    *cell = (int)(bits >> 46 & (FAC_CELLS - 1));
    if (row < 0) *cell = 0;
    if (row >= FAC_ROWS) *cell = FAC_CELLS - 1;
    return (int)fac_clamp(row, 0, FAC_ROWS - 1);
}

bool fac_sketch_add(fac_sketch *s, double x) {
    int cell;
    if (x == 0) {
        s->zeros++;
        return true;
    }
    uint64_t **row = &s->row[x < 0][place_of(x, &cell)];
    if (!*row && !(*row = fac_alloc(FAC_CELLS, sizeof **row))) return false;
    (*row)[cell]++;
    return true;
}

void fac_sketch_clear(fac_sketch *s) {
    for (int sign = 0; sign < 2; sign++)
        for (int r = 0; r < FAC_ROWS; r++) fac_release(s->row[sign][r]);
    *s = (fac_sketch){ 0 };
}

/* How many numbers fell into a place whose row may not be there. */
static uint64_t count_at(const uint64_t *row, int place) {
    return row ? row[place % FAC_CELLS] : 0;
}

/* Of the magnitudes in a cell. */
static fac_cell cell_at(int place, uint64_t n) {
    const double one = ldexp(1, place / FAC_CELLS + FAC_LOWEST), step = one / FAC_CELLS;
    return (fac_cell){ one + place % FAC_CELLS * step, one + (place % FAC_CELLS + 1) * step, n };
}

enum { SIDE = FAC_ROWS * FAC_CELLS };

/* First the negative ones from the largest magnitude on, then zero, then the positive ones.  A row
 * that is not there is passed over whole: both directions come to it at its border. */
bool fac_sketch_next(const fac_sketch *s, int *at, fac_cell *out) {
    while (*at <= 2 * SIDE) {
        const int k = *at, negative = k < SIDE, place = negative ? SIDE - 1 - k : k - SIDE - 1;
        const uint64_t *row = k == SIDE ? NULL : s->row[negative][place / FAC_CELLS];
        *at += row || k == SIDE ? 1 : FAC_CELLS;
        const uint64_t n = k == SIDE ? s->zeros : count_at(row, place);
        if (!n) continue;
        *out = k == SIDE ? (fac_cell){ 0, 0, n } : cell_at(place, n);
        if (negative) *out = (fac_cell){ -out->hi, -out->lo, n };
        return true;
    }
    return false;
}

bool fac_sketch_next_size(const fac_sketch *s, int *at, fac_cell *out) {
    while (*at <= SIDE) {
        const int k = (*at)++, place = k - 1;
        if (!k && !s->zeros) continue;
        if (!k) {
            *out = (fac_cell){ 0, 0, s->zeros };
            return true;
        }
        const uint64_t *plus = s->row[0][place / FAC_CELLS], *minus = s->row[1][place / FAC_CELLS];
        const uint64_t n = count_at(plus, place) + count_at(minus, place);
        if (!plus && !minus) *at += FAC_CELLS - 1;
        if (!n) continue;
        *out = cell_at(place, n);
        return true;
    }
    return false;
}
