/* See constant.h. */
#include "ops/constant.h"
#include "base/error.h"
#include "facula/ops.h"

fac_value *fac_constant(fac_graph *g, fac_dtype dtype, fac_dims dims, const double *numbers) {
    fac_tensor *wide = NULL, *t = NULL;
    fac_error err = { 0 };
    const size_t bytes = (size_t)fac_dims_count(&dims) * sizeof *numbers;
    fac_status s = fac_tensor_new(NULL, FAC_F64, dims, &wide, &err);
    if (!s) s = fac_tensor_write(wide, numbers, bytes, &err);
    if (!s) s = fac_tensor_convert(wide, dtype, &t, &err);
    fac_value *v = s ? fac_fail_graph(g, s, "%s", err.text) : fac_const(g, t);
    fac_tensor_free(wide);
    fac_tensor_free(t);
    return v;
}

fac_value *fac_shaped(fac_value *v, fac_dims dims) {
    return fac_reshape_exactly(v, fac_ints(fac_value_graph(v), dims));
}

bool fac_dims_known(const fac_dims *d, int from) {
    for (int k = from; k < d->n; k++)
        if (d->d[k] < 0) return false;
    return true;
}

int64_t fac_dims_part(const fac_dims *d, int from, int to) {
    int64_t count = 1;
    for (int k = from; k < to; k++) count *= d->d[k];
    return count;
}
