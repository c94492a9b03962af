/* A data set from two arrays as NumPy saves them: samples and labels. */
#include <string.h>
#include "base/error.h"
#include "data/sets/dataset_internal.h"
#include "facula/io.h"

/* As what the samples of a data set are stored; FAC_NONE: not at all. */
static fac_dtype stored_as(const fac_type *x) {
    const char kind = fac_dtype_get(x->dtype)->kind;
    if (kind == 'f') return FAC_F32;
    if (x->dtype == FAC_U8 && x->dims.n == 4) return FAC_U8;
    return (kind == 'i' || kind == 'u') && x->dims.n == 2 ? FAC_I32 : FAC_NONE;
}

static fac_status copy_samples(const fac_tensor *x, const char *path, fac_dataset *d,
                               fac_error *err) {
    fac_type type = fac_tensor_type(x);
    const fac_dtype as = stored_as(&type);
    fac_dims item = { .n = type.dims.n - 1 };
    if (as == FAC_NONE || type.dims.n < 2)
        return fac_raise(err, FAC_E_FORMAT,
                         "%s: samples are floats [N,...], u8 [N,C,H,W] or whole numbers [N,L]",
                         path);
    memcpy(item.d, type.dims.d + 1, (size_t)item.n * sizeof *item.d);
    FAC_TRY(fac_dataset_new_of(d, type.dims.d[0], item, as, path, err));
    fac_tensor *same;
    FAC_TRY(fac_tensor_convert(x, as, &same, err));
    type = fac_tensor_type(same);
    fac_status status = fac_tensor_read(same, d->memory->samples, fac_type_bytes(&type), err);
    fac_tensor_free(same);
    return status;
}

/* Numbers that do not fit in 32 bits have wrapped; they would be wrong tokens, not only unknown
 * ones. */
static fac_status check_tokens(const fac_tensor *x, const char *path, const fac_dataset *d,
                               fac_error *err) {
    fac_tensor *wide;
    FAC_TRY(fac_tensor_convert(x, FAC_I64, &wide, err));
    const int64_t *from = fac_tensor_data(wide), n = d->count * d->item.d[0];
    int64_t i = 0;
    while (i < n && from[i] >= 0 && from[i] <= INT32_MAX) i++;
    fac_status status = i == n
                            ? FAC_OK
                            : fac_raise(err, FAC_E_FORMAT, "%s: token %lld of sample %lld is %lld",
                                        path, (long long)(i % d->item.d[0]),
                                        (long long)(i / d->item.d[0]), (long long)from[i]);
    fac_tensor_free(wide);
    return status;
}

static fac_status copy_labels(const fac_tensor *y, const char *path, fac_dataset *d,
                              fac_error *err) {
    enum { CLASSES = 1 << 20 };
    const fac_type type = fac_tensor_type(y);
    const char kind = fac_dtype_get(type.dtype)->kind;
    if (type.dims.n != 1 || type.dims.d[0] != d->count || (kind != 'i' && kind != 'u'))
        return fac_raise(err, FAC_E_FORMAT,
                         "%s: labels are whole numbers, one for each of %lld samples", path,
                         (long long)d->count);
    fac_tensor *wide;
    FAC_TRY(fac_tensor_convert(y, FAC_I64, &wide, err));
    const int64_t *from = fac_tensor_data(wide);
    fac_status status = FAC_OK;
    for (int64_t i = 0; i < d->count && !status; i++) {
        if (from[i] < 0 || from[i] >= CLASSES)
            status = fac_raise(err, FAC_E_FORMAT, "%s: label %lld of sample %lld", path,
                               (long long)from[i], (long long)i);
        else if (from[i] >= d->classes)
            d->classes = (int)from[i] + 1;
        fac_dataset_labels(d)[i] = from[i];
    }
    fac_tensor_free(wide);
    return status;
}

fac_status fac_dataset_npy(const char *x, const char *y, fac_dataset *out, fac_error *err) {
    fac_tensor *samples = NULL, *labels = NULL;
    fac_dataset d = { 0 };
    fac_status status = fac_npy_load(x, &samples, err);
    if (!status) status = fac_npy_load(y, &labels, err);
    if (!status) status = copy_samples(samples, x, &d, err);
    if (!status && d.tokens) status = check_tokens(samples, x, &d, err);
    if (!status) status = copy_labels(labels, y, &d, err);
    fac_tensor_free(samples);
    fac_tensor_free(labels);
    if (status)
        fac_dataset_free(&d);
    else
        *out = d;
    return status;
}
