/* Tensors full of one number. */
#ifndef FACULA_EDIT_NODES_CHECK_H
#define FACULA_EDIT_NODES_CHECK_H
#include <math.h>
#include "edit_check.h"
#include "graph/attr.h"
#include "op_list.h"

static fac_tensor *full(fac_dtype dtype, fac_dims dims, double x) {
    fac_tensor *wide = NULL, *t = NULL;
    const size_t n = (size_t)fac_dims_count(&dims);
    double *a = calloc(n + 1, sizeof *a);
    for (size_t k = 0; k < n; k++) a[k] = x;
    OK(fac_tensor_new(NULL, FAC_F64, dims, &wide, &err));
    OK(fac_tensor_write(wide, a, n * sizeof *a, &err));
    OK(fac_tensor_convert(wide, dtype, &t, &err));
    fac_tensor_free(wide);
    free(a);
    return t;
}
#endif
