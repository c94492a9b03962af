/* How numbers are spread, in little memory and in one pass: counts of cells, 64 to each power of
 * two and sign, as in DDSketch (Masson, Rim and Lee, 2019).  Rows of 64 cells are made when the
 * first number falls into them; zero has a count of its own. */
#ifndef FACULA_REPORT_SKETCH_H
#define FACULA_REPORT_SKETCH_H
#include <stdbool.h>
#include <stdint.h>

enum {
    FAC_CELLS = 64,
    FAC_ROWS = 288,
    FAC_LOWEST = -152
}; /* exponents of f32 with its denormals, and of i64 */

typedef struct fac_sketch {
    uint64_t *row[2][FAC_ROWS], zeros;
} fac_sketch; /* [1]: negative numbers */

/* One finite number; false when memory is gone. */
bool fac_sketch_add(fac_sketch *s, double x);
void fac_sketch_clear(fac_sketch *s);

/* The cells that are not empty, in ascending order of x, or of |x|: *at starts with 0; false after
 * the last. */
typedef struct fac_cell {
    double lo, hi;
    uint64_t n;
} fac_cell;
typedef bool fac_sketch_walk(const fac_sketch *s, int *at, fac_cell *out);
fac_sketch_walk fac_sketch_next, fac_sketch_next_size;
#endif
