/* A window of sizes, strides and an offset on the elements of x in row-major order. */
#ifndef FACULA_OPS_STRIDED_H
#define FACULA_OPS_STRIDED_H
#include "facula/op.h"
#include "facula/ops.h"

typedef struct fac_strided {
    fac_dims sizes, strides;
    int64_t offset;
} fac_strided;
extern const fac_attr fac_strided_table[];

/* Sizes and strides in pairs, and all of the window inside of x; false after fac_fail. */
bool fac_strided_check(fac_node *n);
/* Where each element of the window lies in x, i64[elements of the window]. */
fac_value *fac_strided_places(fac_graph *g, const fac_strided *w);
#endif
