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

/* match_keys.c: a key for each node of a side, by place; zeros: it has none.  second: the side is
 * b, whose leaves go by their mates in a. */
typedef enum fac_match_naming {
    FAC_MATCH_GIVEN,
    FAC_MATCH_MODULE,
    FAC_MATCH_NUMBERED,
    FAC_MATCH_NAMINGS
} fac_match_naming;
/* The cone above: op and inputs, all the way to the leaves. */
void fac_match_hash_down(const fac_diff_side *s, bool second, fac_hash *to);
/* What fac_match_hash_up begins with: which outputs and updates a node makes. */
void fac_match_hash_ends(const fac_diff_side *s, bool second, fac_hash *to);
/* The cone below: op, its own leaves, and all that read it, in any order. */
void fac_match_hash_up(const fac_diff_side *s, bool second, fac_hash *to);
/* The parameters that it reads. */
void fac_match_hash_params(const fac_diff_side *s, bool second, fac_hash *to);
/* What it is called; false when memory is gone. */
bool fac_match_hash_names(const fac_diff_side *s, fac_match_naming by, fac_arena *memory,
                          fac_hash *to);

/* contents.c: bit by bit, of one type. */
bool fac_diff_same_contents(const fac_tensor *x, const fac_tensor *y);
fac_hash fac_contents_hash(fac_hash h, const fac_value *v);
/* Over tensors of the same dims: largest |x - y| (infinite where only one is NaN), and the share of
 * numbers that differ. */
fac_status fac_contents_compare(const fac_tensor *x, const fac_tensor *y, double *largest,
                                double *share, fac_error *err);
#endif
