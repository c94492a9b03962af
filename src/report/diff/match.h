/* Which leaf and which node of one model is which of another. */
#ifndef FACULA_REPORT_MATCH_H
#define FACULA_REPORT_MATCH_H
#include "graph/graph_internal.h"

typedef struct fac_diff_side {
    const fac_graph *g;
    const fac_node **nodes; /* in their order */
    int n;
    int *place;       /* of a node, by its id */
    int *mate;        /* by place: that in the other model, or -1 */
    fac_value **leaf; /* by id of a leaf that is no constant: the other model's, or NULL */
} fac_diff_side;

typedef struct fac_match {
    fac_diff_side a, b;
    bool structure;
} fac_match;

/* structure: parameters are not paired by their contents.  Free it in any case. */
fac_status fac_match_graphs(const fac_graph *a, const fac_graph *b, bool structure, fac_match *out,
                            fac_error *err);
void fac_match_free(fac_match *m);

/* Do x of a and y of b stand for the same?  Constants do when their contents are equal. */
bool fac_match_same(const fac_match *m, const fac_value *x, const fac_value *y);

/* contents.c: bit by bit, of one type. */
bool fac_contents_equal(const fac_tensor *x, const fac_tensor *y);
fac_hash fac_contents_hash(fac_hash h, const fac_value *v);
/* Over tensors of the same dims: largest |x - y| (infinite where only one is NaN), and the share of
 * numbers that differ. */
fac_status fac_contents_compare(const fac_tensor *x, const fac_tensor *y, double *largest,
                                double *share, fac_error *err);
#endif
