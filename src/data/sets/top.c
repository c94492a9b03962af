/* The best classes of a row of scores. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/data/classes.h"
#include "facula/nn/zoo.h"

/* Rows and classes: [classes], or [rows, classes] before dims of one element.  A single row may
 * stand anywhere: [1,1,1,1000]. */
static bool shape_of(const fac_dims *d, int64_t *rows, int64_t *classes) {
    int wide = 0;
    *rows = *classes = 1;
    for (int k = 0; k < d->n; k++) {
        if (d->d[k] > 1) wide++;
        if (d->d[k] > 1 && !(d->n > 1 && k == 0)) *classes = d->d[k];
    }
    if (d->n > 1 && (wide > 1 || *classes > 1))
        *rows = d->d[0];
    else
        *classes = fac_dims_count(d);
    return d->n > 0 && *classes > 0 && fac_dims_count(d) == *rows * *classes;
}

/* Do the scores stand for probabilities already?  If not, *top is the largest and *sum that of
 * exp(x - top). */
static bool probabilities(const double *x, int64_t n, double *top, double *sum) {
    double total = 0;
    bool inside = true;
    *top = -INFINITY;
    *sum = 0;
    for (int64_t i = 0; i < n; i++) {
        total += x[i];
        inside &= x[i] >= 0 && x[i] <= 1.001;
        if (x[i] > *top) *top = x[i];
    }
    if (inside && fabs(total - 1) < 1e-2) return true;
    for (int64_t i = 0; i < n; i++) *sum += exp(x[i] - *top);
    return false;
}

static const char *name_of(const fac_labels *labels, int64_t index, int64_t classes) {
    if (labels) return fac_labels_get(labels, index);
    if (classes == 1000) return fac_imagenet_name((int)index);
    if (classes != 1001) return NULL;
    return index ? fac_imagenet_name((int)index - 1) : "background";
}

static bool better(double a, double b) { return a > b || (isnan(b) && !isnan(a)); }

/* Sorts x[index] into the best so far; how many there are. */
static int insert(fac_class *best, int found, int k, int64_t index, double score) {
    int at = found;
    while (at > 0 && better(score, best[at - 1].score)) at--;
    if (at >= k) return found;
    if (found < k) found++;
    for (int j = found - 1; j > at; j--) best[j] = best[j - 1];
    best[at] = (fac_class){ .index = index, .score = score };
    return found;
}

static int choose(const double *x, int64_t classes, const fac_labels *labels, int k,
                  fac_class *best) {
    double top, sum;
    int found = 0;
    const bool already = probabilities(x, classes, &top, &sum);
    for (int64_t i = 0; i < classes; i++) found = insert(best, found, k, i, x[i]);
    for (int j = 0; j < found; j++) {
        best[j].probability = already ? best[j].score : exp(best[j].score - top) / sum;
        best[j].name = name_of(labels, best[j].index, classes);
    }
    return found;
}

fac_status fac_top(const fac_tensor *scores, int64_t row, const fac_labels *labels, int k,
                   fac_class *best, int *n, fac_error *err) {
    const fac_type type = fac_tensor_type(scores);
    int64_t rows, classes;
    fac_tensor *wide = NULL;
    if (fac_dtype_get(type.dtype)->kind != 'f')
        return fac_raise(err, FAC_E_DTYPE, "fac_top: scores are floats, not %s",
                         fac_dtype_get(type.dtype)->name);
    if (!shape_of(&type.dims, &rows, &classes))
        return fac_raise(err, FAC_E_SHAPE,
                         "fac_top: scores are [classes] or [rows, classes], these have %d dims",
                         type.dims.n);
    if (row < 0 || row >= rows || k < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_top: the %d best of row %lld of %lld rows", k,
                         (long long)row, (long long)rows);
    FAC_TRY(fac_tensor_convert(scores, FAC_F64, &wide, err));
    const double *x = fac_tensor_data(wide);
    *n = choose(x + row * classes, classes, labels, k, best);
    fac_tensor_free(wide);
    return FAC_OK;
}
