/* CIFAR-10, binary version (https://www.cs.toronto.edu/~kriz/cifar.html): records of one byte for the label and 3072 for the
 * image, its red, green and blue plane of 32 x 32. */
#include <string.h>
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/dataset_internal.h"

enum { IMAGE = 3 * 32 * 32, RECORD = IMAGE + 1, CLASSES = 10, FILES = 5 };

static const char *const names[CLASSES] = {
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"
};

static fac_status open_file(const char *folder, bool train, int k, fac_file **out, fac_error *err) {
    fac_text path = { 0 };
    if (train) fac_text_print(&path, "%s/data_batch_%d.bin", folder, k + 1);
    else fac_text_print(&path, "%s/test_batch.bin", folder);
    fac_status status = path.failed ? fac_raise(err, FAC_E_NOMEM, "no memory for a path") : fac_file_map(path.s, out, err);
    if (!status && fac_file_size(*out) % RECORD)
        status = fac_raise(err, FAC_E_FORMAT, "%s: %zu bytes are no whole number of records of %d", path.s,
                           fac_file_size(*out), RECORD);
    fac_text_free(&path);
    return status;
}

static fac_status take(const fac_file *f, const char *folder, fac_dataset *d, int64_t *at, fac_error *err) {
    const unsigned char *p = fac_file_data(f);
    for (size_t left = fac_file_size(f) / RECORD; left; left--, p += RECORD, ++*at) {
        if (*p >= CLASSES)
            return fac_raise(err, FAC_E_FORMAT, "%s: label %d of sample %lld is above 9", folder, *p, (long long)*at);
        fac_dataset_labels(d)[*at] = *p;
        memcpy(fac_dataset_bytes(d) + *at * IMAGE, p + 1, IMAGE);
    }
    return FAC_OK;
}

fac_status fac_dataset_cifar10(const char *folder, bool train, fac_dataset *out, fac_error *err) {
    fac_file *file[FILES] = { NULL };
    fac_dataset d = { 0 };
    fac_status status = FAC_OK;
    int files = train ? FILES : 1;
    int64_t count = 0, at = 0;
    for (int k = 0; k < files && !status; k++) {
        status = open_file(folder, train, k, &file[k], err);
        if (!status) count += (int64_t)(fac_file_size(file[k]) / RECORD);
    }
    if (!status) status = fac_dataset_new(&d, count, fac_shape(3, 32, 32), false, folder, err);
    for (int k = 0; k < files && !status; k++) status = take(file[k], folder, &d, &at, err);
    for (int k = 0; k < files; k++) fac_file_free(file[k]);
    if (status) {
        fac_dataset_free(&d);
        return status;
    }
    d.classes = CLASSES;
    d.class_names = names;
    static const double mean[3] = { 0.485, 0.456, 0.406 }, std[3] = { 0.229, 0.224, 0.225 };    /* as the preset "cifar10" */
    memcpy(d.mean, mean, sizeof mean);
    memcpy(d.std, std, sizeof std);
    *out = d;
    return FAC_OK;
}
