/* Nodes that read one value and become one node, whose result is cut into theirs: siblings.c,
 * sibling_products.c. */
#ifndef FACULA_PASSES_JOIN_SIBLINGS_H
#define FACULA_PASSES_JOIN_SIBLINGS_H
#include "passes/common/each.h"

enum { FAC_SIBLINGS = 8 }; /* that become one at most */

typedef struct fac_siblings {
    bool (*candidate)(const fac_node *n);
    /* Do candidates of one first input differ in nothing but their weights? */
    bool (*alike)(const fac_node *a, const fac_node *b);
    /* (optional) One that is not whole comes last, and there is one of these at most. */
    bool (*whole)(const fac_node *n);
    /* The node of all n, and the axis that their results lie side by side along; NULL: none. */
    fac_value *(*join)(fac_graph *g, fac_node *const *all, int n, int *axis);
} fac_siblings;

/* Joins a candidate and those like it, where by->accept takes their node. */
void fac_join_siblings(fac_graph *g, fac_node *n, const fac_siblings *of, const fac_judge *by);
#endif
