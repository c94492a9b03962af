/* facula/report/diff.h: how two models differ in structure: leaves, nodes, attributes, wiring,
 * contents of parameters.
 *
 * Nodes are paired by what they compute (the same cone of ops above or below them), by the
 * parameters they read, by name, and by their neighbours, in time about linear in the size of the
 * models.  What follows from another change is not told again: readers after an inserted node are
 * as they were, and sizes that change because others did are only counted.  Whether different
 * structures are the same function is a question for facula/report/verify.h. */
#ifndef FACULA_DIFF_H
#define FACULA_DIFF_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef enum fac_change_of {
    FAC_OF_INPUT,
    FAC_OF_PARAMETER,
    FAC_OF_NODE,
    FAC_OF_OUTPUT
} fac_change_of;
typedef enum fac_change_kind {
    FAC_ADDED,
    FAC_REMOVED,
    FAC_CHANGED, /* attributes, type, contents                              */
    FAC_REWIRED, /* an input or output comes from somewhere else            */
    FAC_RENAMED, /* and otherwise as it was                                 */
    FAC_MOVED,   /* runs at another place among the others, and that is all */
    FAC_CHANGE_KINDS
} fac_change_kind;

typedef struct fac_change {
    fac_change_of of;
    fac_change_kind kind;
    const char *a, *b;     /* its name in either model; NULL where it is not          */
    const char *text;      /* in words: "stride=1,1 -> stride=2,2"                    */
    double largest, share; /* contents: largest |a - b|, share of numbers that differ */
} fac_change;

typedef struct fac_diff_opts {
    bool names, order; /* other names, another order of nodes are differences too */
    bool structure;    /* contents of parameters are not looked at                */
} fac_diff_opts;

typedef struct fac_diff_totals {
    bool same; /* nothing differs that was asked for                      */
    int nodes[FAC_CHANGE_KINDS],
        leaves[FAC_CHANGE_KINDS]; /* changes by kind; leaves: inputs, outputs, parameters */
    int nodes_a, nodes_b, params_a, params_b;
    int sizes; /* results whose type is another because of a change above */
} fac_diff_totals;

typedef struct fac_differences fac_differences;
/* opts may be NULL.  FAC_E_NOMEM; errors of the graphs themselves. */
fac_status fac_diff(const fac_graph *a, const fac_graph *b, const fac_diff_opts *opts,
                    fac_differences **out, fac_error *err);
void fac_differences_free(fac_differences *d); /* NULL is fine */
const fac_change *fac_differences_get(const fac_differences *d,
                                      int i); /* as the models go; NULL after the last */
/* Counts over all changes. */
fac_diff_totals fac_differences_totals(const fac_differences *d);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
