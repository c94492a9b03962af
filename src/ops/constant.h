/* Constants that ops make for themselves: tables, matrices, windows. */
#ifndef FACULA_OPS_CONSTANT_H
#define FACULA_OPS_CONSTANT_H
#include "facula/op.h"

/* f64 numbers as a constant of this dtype; the poison value after an error. */
fac_value *fac_constant(fac_graph *g, fac_dtype dtype, fac_dims dims, const double *numbers);
/* The same elements under other dims, which may be 0, or symbols that v has. */
fac_value *fac_shaped(fac_value *v, fac_dims dims);
/* Are dims from..rank-1 numbers? */
bool fac_dims_known(const fac_dims *d, int from);
/* Elements of dims from..to-1, which are numbers. */
int64_t fac_dims_part(const fac_dims *d, int from, int to);
#endif
