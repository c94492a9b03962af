/* conv2d_max_pool with everything resolved, for the solvers of the backends. */
#ifndef FACULA_OPS_CONV_POOL_H
#define FACULA_OPS_CONV_POOL_H
#include "ops/conv.h"
#include "ops/pool.h"

/* The convolution's own first: what reads those of conv2d reads them here. */
typedef struct fac_conv_pool_attrs {
    fac_conv2d_opts conv;
    int64_t pool[2], pool_stride[2],
        pool_pad[4]; /* stride 0: as pool; pad: top, left, bottom, right */
} fac_conv_pool_attrs;

/* The pool alone, as max_pool2d has it: sizes round down, no dilation. */
fac_pool2d_attrs fac_conv_pool_of(const fac_conv_pool_attrs *a);
/* Of a conv2d_max_pool node whose sizes are all numbers; pool: of what the convolution makes.
 * false: another op, or a symbol. */
bool fac_conv_pool_geometry(const fac_node *n, fac_conv_geom *conv, fac_pool_geom *pool);
/* Windows of 2 x 2 side by side, without padding: each result of the convolution is in one of them,
 * or in none. */
static inline bool fac_conv_pool_halves(const fac_pool_geom *g) {
    for (int k = 1; k < 3; k++)
        if (g->window[k].kernel != 2 || g->window[k].stride != 2 || g->window[k].pad ||
            g->window[k].pad_end)
            return false;
    return true;
}
#endif
