/* Lists that steer a shape and whose length is a symbol: how many numbers such an input has shows
 * in the run that it belongs to.  Until then it may have as many as its op needs, and where the
 * length decides how many dims the result has, the result has no rank (fac_rankless). */
#ifndef FACULA_OPS_HOST_LIST_H
#define FACULA_OPS_HOST_LIST_H
#include "graph/graph_internal.h"
#include "ops/known.h"

static inline bool fac_list_is_open(const fac_value *v) {
    return v->type.dims.n == 1 && v->type.dims.d[0] < 0;
}

/* It has, or may have, that many numbers (a scalar is one). */
static inline bool fac_list_may_have(const fac_value *v, int count) {
    return fac_list_is_open(v) || fac_host_length(v) == count;
}

/* The tensor has one element, or may have, whatever its rank. */
static inline bool fac_may_be_one(const fac_value *v) {
    for (int k = 0; k < v->type.dims.n; k++)
        if (v->type.dims.d[k] >= 0 && v->type.dims.d[k] != 1) return false;
    return true;
}
#endif
