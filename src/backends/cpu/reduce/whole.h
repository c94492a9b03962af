/* Kernels of whole numbers in their own type: folds along lines and places of extremes.  Compiled
 * for each instruction set by target attributes; compilers make vectors of these loops. */
#ifndef FACULA_CPU_WHOLE_H
#define FACULA_CPU_WHOLE_H
#include <stddef.h>
#include <stdint.h>
#include "facula/op.h"

/* y[i] = x[0] f x[1] f ... of `size` > 0 numbers, for `n` lines: those of a line lie side by side
 * and lines one after the other (rows), or lines lie side by side, and `stride` numbers are between
 * two of one (columns). */
typedef void fac_whole_rows(const void *x, int64_t size, int64_t n, void *y);
typedef void fac_whole_columns(const void *x, int64_t size, int64_t stride, int64_t n, void *y);
/* The place of y[i] in its line, the first or the last one.  Columns: y and `place` are both made.
 */
typedef void fac_whole_find(const void *x, int64_t size, int64_t n, const void *y, int last,
                            int64_t *place);
typedef void fac_whole_places(const void *x, int64_t size, int64_t stride, int64_t n, void *y,
                              int last, int64_t *place);

enum { FAC_WHOLE_SUM, FAC_WHOLE_PROD, FAC_WHOLE_MAX, FAC_WHOLE_MIN, FAC_WHOLE_FOLDS };
typedef struct fac_whole_type {
    fac_whole_rows *rows[FAC_WHOLE_FOLDS];
    fac_whole_columns *columns[FAC_WHOLE_FOLDS];
    fac_whole_find *find;
    fac_whole_places *places[2]; /* of the largest, of the smallest */
} fac_whole_type;
/* NULL: the type is none of whole numbers.  A bool is a u8. */
const fac_whole_type *fac_whole_kernels(fac_dtype dtype, int isa);
#endif
