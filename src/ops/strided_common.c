/* See strided.h. */
#include "ops/strided.h"
#include "ops/shape.h"

const fac_attr fac_strided_table[] = { { "sizes", FAC_A_DIMS, offsetof(fac_strided, sizes), 0, 0, 0,
                                         0, NULL, "dims of the window" },
                                       { "strides", FAC_A_DIMS, offsetof(fac_strided, strides), 0,
                                         0, 0, 0, NULL, "in elements, 0 or more" },
                                       { "offset", FAC_A_INT, offsetof(fac_strided, offset), 0, 0,
                                         0, 0, NULL, "of the first element" },
                                       { 0 } };

bool fac_strided_check(fac_node *n) {
    const fac_strided *w = n->attrs;
    const int64_t count = fac_dims_count(&n->in[0]->type.dims);
    if (count < 0) return fac_fail(n, FAC_E_UNSUPPORTED, "the dims of x must be numbers");
    if (w->sizes.n != w->strides.n)
        return fac_fail(n, FAC_E_ARGUMENT, "%d sizes and %d strides", w->sizes.n, w->strides.n);
    int64_t last = w->offset;
    bool fits = w->offset >= 0, empty = false;
    for (int k = 0; k < w->sizes.n; k++) {
        int64_t reach;
        if (w->sizes.d[k] < 0 || w->strides.d[k] < 0)
            return fac_fail(n, FAC_E_ARGUMENT,
                            "size %lld with stride %lld: neither may be negative",
                            (long long)w->sizes.d[k], (long long)w->strides.d[k]);
        empty |= !w->sizes.d[k];
        fits = fits && !__builtin_mul_overflow(w->sizes.d[k] - 1, w->strides.d[k], &reach);
        fits = fits && (empty || !__builtin_add_overflow(last, reach, &last));
    }
    if (empty ? w->offset >= 0 : fits && last < count) return true;
    return fac_fail(n, FAC_E_SHAPE, "the window reaches outside of the %lld elements of x",
                    (long long)count);
}

fac_value *fac_strided_places(fac_graph *g, const fac_strided *w) {
    fac_value *sum = fac_number(g, FAC_I64, (double)w->offset);
    for (int k = 0; k < w->sizes.n; k++) {
        fac_dims along = { w->sizes.n - k, { 0 } };
        along.d[0] = w->sizes.d[k];
        for (int j = 1; j < along.n; j++) along.d[j] = 1;
        fac_value *steps =
            fac_arange(fac_number(g, FAC_I64, 0), fac_number(g, FAC_I64, (double)w->sizes.d[k]),
                       fac_number(g, FAC_I64, 1));
        steps = fac_mul(steps, fac_number(g, FAC_I64, (double)w->strides.d[k]));
        sum = fac_add(sum, fac_reshape_sizes(steps, along));
    }
    return fac_reshape(sum, fac_shape(-1));
}
