/* MNIST and its likes.  An IDX file: two zero bytes, the element type (8: bytes), the number of
 * dims, each dim as 32 bits, big end first, then the elements (http://yann.lecun.com/exdb/mnist).
 */
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/sets/dataset_internal.h"

typedef struct idx {
    fac_text path;
    unsigned char *memory;
    const unsigned char *elements;
    int64_t dims[3];
} idx;

static uint32_t big_end(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static fac_status idx_parse(const char *path, size_t bytes, int rank, idx *f, fac_error *err) {
    const unsigned char *p = f->memory;
    size_t head = 4 + 4 * (size_t)rank, n = 1;
    if (bytes < head || p[0] || p[1] || p[2] != 8 || p[3] != rank)
        return fac_raise(err, FAC_E_FORMAT, "%s: is no IDX file of bytes with %d dims", path, rank);
    for (int k = 0; k < rank; k++) {
        f->dims[k] = big_end(p + 4 + 4 * k);
        if (!fac_size_mul(n, (size_t)f->dims[k], &n)) n = SIZE_MAX;
    }
    const size_t there = bytes - head,
                 each = f->dims[0] && n != SIZE_MAX ? n / (size_t)f->dims[0] : 0;
    if (n > there && each)
        return fac_raise(
            err, FAC_E_FORMAT,
            "%s: record %zu of %lld is cut off: its dims ask for %zu bytes, there are %zu", path,
            there / each, (long long)f->dims[0], n, there);
    if (n != there)
        return fac_raise(err, FAC_E_FORMAT, "%s: its dims ask for %zu bytes, there are %zu", path,
                         n, there);
    f->elements = p + head;
    return FAC_OK;
}

/* The file as it is or with .gz after its name. */
static fac_status idx_load(const char *folder, const char *name, int rank, idx *f, fac_error *err) {
    size_t bytes = 0;
    fac_text_print(&f->path, "%s/%s", folder, name);
    if (!f->path.failed && access(f->path.s, F_OK)) fac_text_add(&f->path, ".gz");
    if (f->path.failed) return fac_raise_memory(err, "a path");
    FAC_TRY(fac_gzip_read(f->path.s, &f->memory, &bytes, err));
    return idx_parse(f->path.s, bytes, rank, f, err);
}

static void idx_free(idx *f) {
    fac_text_free(&f->path);
    fac_release(f->memory);
}

static fac_status join(const char *folder, const idx *images, const idx *labels, fac_dataset *d,
                       fac_error *err) {
    int64_t n = images->dims[0];
    if (labels->dims[0] != n)
        return fac_raise(err, FAC_E_FORMAT, "%s: %lld images and %lld labels", folder, (long long)n,
                         (long long)labels->dims[0]);
    FAC_TRY(
        fac_dataset_new(d, n, fac_shape(1, images->dims[1], images->dims[2]), false, folder, err));
    d->classes = 10;
    memcpy(fac_dataset_bytes(d), images->elements, (size_t)(n * images->dims[1] * images->dims[2]));
    for (int64_t i = 0; i < n; i++) {
        fac_dataset_labels(d)[i] = labels->elements[i];
        if (labels->elements[i] >= d->classes)
            return fac_raise(err, FAC_E_FORMAT, "%s: record %lld has label %d, which is not 0 to 9",
                             labels->path.s, (long long)i, labels->elements[i]);
    }
    return FAC_OK;
}

fac_status fac_dataset_mnist(const char *folder, bool train, fac_dataset *out, fac_error *err) {
    idx images = { 0 }, labels = { 0 };
    fac_dataset d = { 0 };
    fac_status status = idx_load(
        folder, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte", 3, &images, err);
    if (!status)
        status = idx_load(folder, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte", 1,
                          &labels, err);
    if (!status) status = join(folder, &images, &labels, &d, err);
    idx_free(&images);
    idx_free(&labels);
    if (status)
        fac_dataset_free(&d);
    else
        *out = d;
    return status;
}
