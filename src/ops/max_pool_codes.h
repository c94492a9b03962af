/* What the op max_pool_codes and its solver agree on. */
#ifndef FACULA_OPS_MAX_POOL_CODES_H
#define FACULA_OPS_MAX_POOL_CODES_H
#include "ops/conv_basis.h"
#include "ops/pool.h"

extern const fac_op fac_op_max_pool_codes;

/* Of the images whose channels are words; false: a size is open. */
static inline bool fac_max_pool_codes_geometry(const fac_node *n, fac_pool_geom *g) {
    const fac_dims *d = &n->in[0]->type.dims;
    const fac_dims image = fac_shape(d->d[1], d->d[4], d->d[2], d->d[3]);
    return fac_pool_geometry_of(2, n->attrs, &image, g);
}
#endif
