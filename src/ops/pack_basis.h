/* What pack_basis and unpack_basis share. */
#ifndef FACULA_OPS_PACK_BASIS_H
#define FACULA_OPS_PACK_BASIS_H
#include "facula/op.h"

/* Elements of a channel of x, whose first dim are channels; negative: a size is open. */
static inline int64_t fac_pack_row(const fac_dims *x) {
    int64_t n = 1;
    for (int k = 1; k < x->n; k++) {
        if (x->d[k] < 0) return -1;
        n *= x->d[k];
    }
    return n;
}

/* What unpack_basis gives, into y. */
void fac_unpack(const fac_array *bits, const fac_array *basis, const fac_array *y);
#endif
