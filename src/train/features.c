/* Samples through a program: what nothing random changes need not be computed in each epoch. */
#include <string.h>
#include "base/error.h"
#include "data/sets/dataset_internal.h"
#include "facula/train.h"

/* What the program makes of samples first .. of the data set, to its place in `out`. */
static fac_status keep(const fac_dataset *d, const fac_tensor *y, int64_t first, fac_dataset *out,
                       fac_error *err) {
    const fac_type t = fac_tensor_type(y);
    if (t.dtype != FAC_F32 || t.dims.n < 2)
        return fac_raise(err, FAC_E_SHAPE, "features must be f32 [N, ...]");
    if (!out->memory) {
        fac_dims item = { .n = t.dims.n - 1 };
        memcpy(item.d, t.dims.d + 1, (size_t)item.n * sizeof *item.d);
        FAC_TRY(fac_dataset_new(out, d->count, item, true, "features", err));
    }
    const int64_t size = fac_dims_count(&out->item);
    if (fac_dims_count(&t.dims) != t.dims.d[0] * size)
        return fac_raise(err, FAC_E_SHAPE, "features differ in size from batch to batch");
    return fac_tensor_read(y, fac_dataset_values(out) + first * size, fac_type_bytes(&t), err);
}

static fac_status one_batch(const fac_dataset *d, fac_program *p, const fac_batches *b,
                            int64_t index, fac_dataset *out, fac_error *err) {
    fac_tensor *x = NULL, *labels = NULL, *y = NULL;
    FAC_TRY(fac_batch(d, b, 0, index, &x, &labels, err));
    fac_status status = fac_program_run(p, &x, &y, err);
    if (!status) status = keep(d, y, index * b->size, out, err);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    fac_tensor_free(y);
    return status;
}

fac_status fac_dataset_through(const fac_dataset *d, fac_program *p, int64_t batch,
                               fac_dataset *out, fac_error *err) {
    const fac_batches b = { .size = batch };
    fac_dataset made = { 0 };
    fac_status status = FAC_OK;
    if (batch < 1 || d->count < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "features of %lld samples, %lld at once",
                         (long long)d->count, (long long)batch);
    for (int64_t k = 0; k < fac_batches_count(d, &b) && !status; k++)
        status = one_batch(d, p, &b, k, &made, err);
    if (!status) status = fac_dataset_like(d, &made, err);
    if (status) {
        fac_dataset_free(&made);
        return status;
    }
    memcpy(fac_dataset_labels(&made), d->labels, (size_t)d->count * sizeof *d->labels);
    *out = made;
    return FAC_OK;
}
