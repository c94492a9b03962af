/* What solvers of several backends ask of a problem. */
#ifndef FACULA_BACKENDS_PROBLEM_H
#define FACULA_BACKENDS_PROBLEM_H
#include "facula/backend.h"

/* The index function of an op that only moves data, ready to be asked about elements of output k:
 * what its further inputs hold is known.  false when it is not.  Points into itself: not to be
 * copied. */
enum { FAC_MOVE_INPUTS = 8 };
typedef struct fac_known_move {
    fac_move move;
    fac_array in[FAC_MOVE_INPUTS];
    int64_t contents[FAC_MOVE_INPUTS][FAC_KNOWN];
} fac_known_move;
bool fac_known_move_of(const fac_problem *p, int k, fac_known_move *to);

/* How many elements stand before those of x along each axis (negative: so many of x are cut off),
 * by inputs `pads` and `axes` of pad or its gradient.  false when they are not known. */
bool fac_known_pads(const fac_problem *p, int pads, int axes, int64_t before[FAC_DIMS]);

/* The ops after the product of a fused_matmul as the one `fused` node of a graph of its own: its
 * inputs are those of n, then the product.  NULL without memory. */
fac_graph *fac_after_product(const fac_node *n);

/* Lays y, of the rank of x, without gaps in the order in which the dims of x lie: the heads of
 * attention stand beside each other in a row of the result where they do in the queries, and to
 * merge them again no data moves. */
void fac_lay_in_order(const fac_operand *x, fac_operand *y);

/* The axes that a reduction or sum_like reduces, a bit each; false: they are not known. */
bool fac_problem_axes(const fac_problem *p, unsigned *mask);
/* Whether an operand is there: it has a type. */
static inline bool fac_has_in(const fac_problem *p, int k) {
    return k < p->nin && p->in[k].type.dtype != FAC_NONE;
}
static inline bool fac_has_out(const fac_problem *p, int k) {
    return k < p->nout && p->out[k].type.dtype != FAC_NONE;
}
#endif
