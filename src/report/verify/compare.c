/* Two tensors, element by element, as doubles; in pieces, so that nothing of their size is
 * allocated. */
#include <math.h>
#include <stdio.h>
#include "base/error.h"
#include "report/apart.h"
#include "report/verify/verify.h"
#include "tensor/tensor_internal.h"

enum { PIECE = 1024 };

void fac_tensor_doubles(const fac_tensor *t, int64_t from, int64_t n, double *to) {
    const fac_dtype dtype = fac_tensor_type(t).dtype;
    const char *data = fac_tensor_data(t);
    fac_convert(FAC_F64, to, dtype, data + (size_t)from * (size_t)fac_dtype_get(dtype)->block_bytes,
                (size_t)n);
}

static void print_pair(const fac_tensor *a, const fac_tensor *b, int64_t at, char *to,
                       size_t size) {
    const fac_dtype dtype = fac_tensor_type(a).dtype;
    const void *p = fac_tensor_data(a), *q = fac_tensor_data(b);
    double x, y;
    if (dtype != fac_tensor_type(b).dtype || !fac_is_wide(dtype)) {
        fac_tensor_doubles(a, at, 1, &x);
        fac_tensor_doubles(b, at, 1, &y);
        snprintf(to, size, "%.9g against %.9g", x, y);
    } else if (dtype == FAC_I64)
        snprintf(to, size, "%lld against %lld", (long long)fac_wide_at(p, at),
                 (long long)fac_wide_at(q, at));
    else
        snprintf(to, size, "%llu against %llu", (unsigned long long)fac_wide_at(p, at),
                 (unsigned long long)fac_wide_at(q, at));
}

/* ---- one number ---- */

/* off: how far a and b are apart.  Whether it is the first that is too far. */
static bool compare_one(double a, double b, double off, double room, fac_difference *d) {
    d->elements++;
    if (off == 0 || (a == b && isinf(a)) || (isnan(a) && isnan(b))) return false;
    const double ratio = room > 0 ? off / room : INFINITY;
    if (off > d->worst || isnan(off)) d->worst = isnan(off) ? INFINITY : off;
    if (!isfinite(room)) return d->unbounded++, false;
    if (ratio > d->ratio || isnan(ratio)) d->ratio = isnan(ratio) ? INFINITY : ratio;
    return !(ratio <= 1) && !d->count++;
}

static void print_sizes(const fac_dims *d, char *to, size_t size) {
    size_t used = (size_t)snprintf(to, size, "[");
    for (int k = 0; k < d->n && used < size; k++)
        used +=
            (size_t)snprintf(to + used, size - used, "%s%lld", k ? "," : "", (long long)d->d[k]);
    if (used < size) snprintf(to + used, size - used, "]");
}

/* Sizes may follow from data. */
static bool other_sizes(const fac_dims *a, const fac_dims *b, fac_difference *d) {
    char x[36], y[36];
    if (fac_dims_equal(a, b)) return false;
    print_sizes(a, x, sizeof x);
    print_sizes(b, y, sizeof y);
    if (!*d->sizes) snprintf(d->sizes, sizeof d->sizes, "%s against %s", x, y);
    d->count++;
    d->elements++;
    d->worst = d->ratio = INFINITY;
    return true;
}

fac_status fac_compare(const fac_tensor *a, const fac_tensor *b, const fac_tensor *ea,
                       const fac_tensor *eb, double rtol, double atol, fac_difference *d,
                       fac_error *err) {
    const fac_tensor *t[4] = { a, b, ea, eb };
    double x[4][PIECE] = { { 0 } };
    const fac_type type = fac_tensor_type(a), other = fac_tensor_type(b);
    const int64_t n = fac_dims_count(&type.dims);
    const bool bits = type.dtype == other.dtype && fac_is_wide(type.dtype);
    if (type.dtype == FAC_TEXT) return fac_raise(err, FAC_E_UNSUPPORTED, "texts are not compared");
    for (int i = 0; i < 4; i++)
        if (t[i] && !fac_tensor_data(t[i])) return fac_raise_memory(err, "the results");
    if (other_sizes(&type.dims, &other.dims, d)) return FAC_OK;
    for (int64_t from = 0; from < n; from += PIECE) {
        const int64_t count = n - from < PIECE ? n - from : PIECE;
        for (int i = 0; i < 4; i++)
            if (t[i]) fac_tensor_doubles(t[i], from, count, x[i]);
        for (int64_t k = 0; k < count; k++) {
            const double size = isfinite(x[1][k]) ? fabs(x[1][k]) : 0;
            const double off =
                bits ? fac_wide_apart(type.dtype, fac_tensor_data(a), fac_tensor_data(b), from + k)
                     : fabs(x[0][k] - x[1][k]);
            const double room = atol + rtol * size + x[2][k] + x[3][k];
            if (!compare_one(x[0][k], x[1][k], off, room, d)) continue;
            d->at = from + k;
            print_pair(a, b, d->at, d->pair, sizeof d->pair);
        }
    }
    return FAC_OK;
}
