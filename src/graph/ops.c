/* The built-in ops by name.  fac_ops is made by cmake/ops.cmake from the files of src/ops. */
#include <string.h>
#include "facula/op.h"

const fac_op *fac_op_find(const char *name) {
    size_t low = 0, high = 0;
    if (!name) return NULL;
    while (fac_ops[high]) high++;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, fac_ops[middle]->name);
        if (!order) return fac_ops[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *fac_port_name(const fac_node *n, int input) {
    const fac_port *p = n->op->in;
    if (!p || !p->name || input < 0 || input >= n->nports) return NULL;
    while (input-- > 0 && p[1].name) p++;
    return p->name;
}

bool fac_op_is_one_of(const fac_op *op, const fac_op *const *ops) {
    for (; *ops; ops++)
        if (op == *ops) return true;
    return false;
}

/* Each flag has a bit of its own: branches that both take the next one merge without a conflict. */
#define FLAGS(JOIN)                                                                                \
    (FAC_OP_NO_GRAD JOIN FAC_OP_DYNAMIC JOIN FAC_OP_INPLACE JOIN FAC_OP_PARTS JOIN FAC_OP_BARRIER  \
         JOIN FAC_OP_KNOWS JOIN FAC_OP_BODIES JOIN FAC_OP_RING JOIN FAC_OP_PICKS JOIN              \
             FAC_OP_INVERSE JOIN FAC_OP_GROWS JOIN FAC_OP_TEXTS JOIN FAC_OP_FLOW)
_Static_assert(FLAGS(+) == FLAGS(|), "two flags of operators share a bit");
