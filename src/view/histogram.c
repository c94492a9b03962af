/* Histograms of tensors: equal buckets between the least and the largest number, as TensorFlow 2's
 * summaries have them. */
#include <math.h>
#include "base/error.h"
#include "view/view_internal.h"

/* Buckets are [left, right), the last one [left, right]. */
static int bucket_of(const fac_histogram *h, double x) {
    int k = (int)((x - h->min) / (h->max - h->min) * FAC_BUCKETS);
    return k < FAC_BUCKETS ? k : FAC_BUCKETS - 1;
}

static void range(fac_histogram *h, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) continue;
        if (!h->count || x[i] < h->min) h->min = x[i];
        if (!h->count || x[i] > h->max) h->max = x[i];
        h->sum += x[i];
        h->sum_squares += x[i] * x[i];
        h->count++;
    }
    h->others = n - h->count;
}

/* All numbers equal, or so near that the span has no parts, or so far that it overflows: one
 * bucket. */
static void fill(fac_histogram *h, const double *x, int64_t n) {
    double width = (h->max - h->min) / FAC_BUCKETS;
    h->buckets = !h->count ? 0
                 : isfinite(width) && h->min + width > h->min && h->max - width < h->max
                     ? FAC_BUCKETS
                     : 1;
    for (int k = 0; k < h->buckets; k++)
        h->limit[k] = k + 1 < h->buckets ? h->min + width * (k + 1) : h->max;
    if (h->buckets == 1) h->in[0] = h->count;
    for (int64_t i = 0; i < n && h->buckets > 1; i++)
        if (isfinite(x[i])) h->in[bucket_of(h, x[i])]++;
}

fac_status fac_histogram_of(const fac_tensor *t, fac_histogram *out, fac_error *err) {
    fac_tensor *as;
    FAC_TRY(fac_tensor_convert(t, FAC_F64, &as, err));
    fac_type type = fac_tensor_type(as);
    fac_histogram h = { 0 };
    const double *x = fac_tensor_data(as);
    int64_t n = fac_dims_count(&type.dims);
    range(&h, x, n);
    fill(&h, x, n);
    fac_tensor_free(as);
    *out = h;
    return FAC_OK;
}
