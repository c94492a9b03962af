/* Copies between strided windows. */
#include <string.h>
#include "tensor/tensor_internal.h"

/* Drops dims of size 1 and joins neighbours that lie together on both sides, so that the inner loop
 * is as long as it can be. */
static int simplify(const fac_dims *dims, const int64_t *to, const int64_t *from,
                    int64_t size[FAC_DIMS], int64_t a[FAC_DIMS], int64_t b[FAC_DIMS]) {
    int n = 0;
    for (int k = 0; k < dims->n; k++) {
        int64_t d = dims->d[k];
        if (d == 1) continue;
        if (n && a[n - 1] == to[k] * d && b[n - 1] == from[k] * d) n--, d *= size[n];
        size[n] = d;
        a[n] = to[k];
        b[n] = from[k];
        n++;
    }
    return n;
}

static void copy_run(size_t n, size_t size, char *to, int64_t to_stride, const char *from,
                     int64_t from_stride) {
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, n * size);
        return;
    }
    ptrdiff_t a = (ptrdiff_t)to_stride * (ptrdiff_t)size,
              b = (ptrdiff_t)from_stride * (ptrdiff_t)size;
    switch (size) { /* a memcpy of constant size is one move */
    case 1:
        for (; n; n--, to += a, from += b) *to = *from;
        break;
    case 2:
        for (; n; n--, to += a, from += b) memcpy(to, from, 2);
        break;
    case 4:
        for (; n; n--, to += a, from += b) memcpy(to, from, 4);
        break;
    case 8:
        for (; n; n--, to += a, from += b) memcpy(to, from, 8);
        break;
    default:
        for (; n; n--, to += a, from += b) memcpy(to, from, size);
    }
}

void fac_copy_strided(const fac_dims *dims, size_t size, void *to, const int64_t *to_strides,
                      const void *from, const int64_t *from_strides) {
    int64_t d[FAC_DIMS], a[FAC_DIMS], b[FAC_DIMS], at[FAC_DIMS] = { 0 };
    if (fac_dims_count(dims) <= 0) return;
    int n = simplify(dims, to_strides, from_strides, d, a, b), outer = n ? n - 1 : 0;
    char *y = to;
    const char *x = from;
    for (;;) {
        if (n)
            copy_run((size_t)d[outer], size, y, a[outer], x, b[outer]);
        else
            memcpy(y, x, size);
        int k = outer - 1;
        for (; k >= 0; k--) {
            y += a[k] * (int64_t)size;
            x += b[k] * (int64_t)size;
            if (++at[k] < d[k]) break;
            y -= a[k] * d[k] * (int64_t)size;
            x -= b[k] * d[k] * (int64_t)size;
            at[k] = 0;
        }
        if (k < 0) return;
    }
}
