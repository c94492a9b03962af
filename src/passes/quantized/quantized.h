/* What passes over quantized graphs share. */
#ifndef FACULA_PASSES_QUANTIZED_H
#define FACULA_PASSES_QUANTIZED_H
#include "graph/graph_internal.h"

/* What stands for numbers: q, with one scale or one for each index of an axis. */
typedef struct fac_coded {
    fac_value *q, *scale, *zero;
    int64_t axis;
} fac_coded;

/* v is dequantize_linear of bytes with one scale. */
bool fac_coded_whole(const fac_value *v, fac_coded *to);
bool fac_coded_alike(const fac_coded *a, const fac_coded *b);

/* Ops that pick some of the elements of x, and are given bytes as well. */
bool fac_picks_elements(const fac_node *n);

/* Bytes of y's scale from v, elementwise ops on one value of bytes and on single numbers: by a
 * table.  NULL: v is not that. */
fac_value *fac_coded_table(const fac_value *v, const fac_coded *y);
#endif
