/* A tensor as lines along one axis: what softmax, argmax and their kin walk.  Element k of line (o,
 * i) lies at (o size + k) inner + i. */
#ifndef FACULA_OPS_LINES_H
#define FACULA_OPS_LINES_H
#include "facula/op.h"

typedef struct fac_lines {
    int64_t outer, size, inner;
} fac_lines;

/* axis in [0, d->n); a scalar is one line of one element. */
static inline fac_lines fac_lines_of(const fac_dims *d, int axis) {
    fac_lines l = { 1, d->n ? d->d[axis] : 1, 1 };
    for (int k = 0; k < axis; k++) l.outer *= d->d[k];
    for (int k = axis + 1; k < d->n; k++) l.inner *= d->d[k];
    return l;
}

/* The axis attribute of a node's input 0, or -1 after fac_fail.  A scalar has the axes 0 and -1, as
 * in torch. */
static inline int fac_lines_axis(fac_node *n, int64_t axis) {
    int rank = n->in[0]->type.dims.n, k = fac_axis(axis, rank ? rank : 1);
    if (k < 0)
        fac_fail(n, FAC_E_SHAPE, "axis %lld of a tensor with %d dims", (long long)axis, rank);
    return k;
}
#endif
