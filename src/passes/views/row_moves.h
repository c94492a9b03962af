/* Where ops that only move data take the rows of a value from. */
#ifndef FACULA_PASSES_ROW_MOVES_H
#define FACULA_PASSES_ROW_MOVES_H
#include "graph/graph_internal.h"

/* Rows of `size` elements along the last dim.  `images` times the same: of `have` rows of `from`,
 * row i of the result is row at[i], i below `want`. */
typedef struct fac_rows {
    fac_value *from;
    int64_t images, have, want, size;
    const int32_t *at;
    int copies;      /* steps that would copy, from `from` in its own order */
    bool transposed; /* the first op transposes it, which its producer may do itself */
} fac_rows;

/* Is v made by ops that only move data? */
bool fac_is_moved(const fac_value *v);
/* Follows v back through such ops to the one value that all its rows come from.  false: there is
 * none, or some are zeros, or parts of rows.  Memory is that of the graph `to`. */
bool fac_rows_traced(fac_graph *to, fac_value *v, fac_rows *r);
bool fac_rows_in_order(const fac_rows *r);
/* Each row of r->from is read once? */
bool fac_rows_all(fac_graph *to, const fac_rows *r);
/* Do they only change places as the elements of a matrix do that is transposed? */
bool fac_rows_transpose(const fac_rows *r, int64_t *lines);
/* The rows in one gather, one transpose, or none, with these dims. */
fac_value *fac_rows_take(fac_graph *to, const fac_rows *r, fac_dims dims);

/* ---- view_chains.c ---- */

/* Is v made by a reshape, in whichever form, or a transpose? */
bool fac_is_reordered(const fac_value *v);
/* The same as v, where a chain of these makes it, with fewer copies if there is a way. */
fac_value *fac_reordered_once(fac_value *v);
#endif
