/* See range.h. */
#include "passes/common/range.h"
#include <float.h>

fac_range fac_range_of(fac_dtype dtype) {
    static const struct {
        fac_dtype dtype;
        fac_range range;
    } table[] = { { FAC_F16, { 65504, 0x1p-24 } },
                  { FAC_BF16, { 0x1.fep127, 0x1p-133 } },
                  { FAC_F32, { FLT_MAX, 0x1p-149 } } };
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (table[k].dtype == dtype) return table[k].range;
    return (fac_range){ DBL_MAX, 0 };
}

bool fac_range_holds(fac_dtype dtype, const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    const fac_range r = fac_range_of(dtype);
    fac_tensor *narrow = NULL, *x = NULL, *y = NULL;
    bool holds = !fac_tensor_convert(t, dtype, &narrow, NULL) &&
                 !fac_tensor_convert(t, FAC_F64, &x, NULL) &&
                 !fac_tensor_convert(narrow, FAC_F64, &y, NULL);
    const double *a = holds ? fac_tensor_data(x) : NULL;
    const double *b = holds ? fac_tensor_data(y) : NULL;
    for (int64_t k = 0; holds && k < n; k++) holds = !fac_range_over(r, a[k], b[k]);
    if (holds && n == 1) holds = !fac_range_under(a[0], b[0]);
    fac_tensor_free(narrow);
    fac_tensor_free(x);
    fac_tensor_free(y);
    return holds;
}

bool fac_range_is_zero(const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    fac_tensor *x = NULL;
    bool zero = !fac_tensor_convert(t, FAC_F64, &x, NULL);
    const double *a = zero ? fac_tensor_data(x) : NULL;
    for (int64_t k = 0; zero && k < n; k++) zero = a[k] == 0;
    fac_tensor_free(x);
    return zero;
}
