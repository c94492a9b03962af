/* Tensors over the bytes of a file: borrowed where they lie as they should, else copied when they
 * are first read. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "tensor/mirror.h"
#include "tensor/tensor_check.h"

static void release_file(void *file) { fac_file_free(file); }

/* Where the bytes of a tensor are in a file. */
typedef struct place {
    fac_file *file;
    size_t at;
    int swap;
} place; /* swap: bytes of an element to turn around, or 1 */

/* Elements of `size` bytes from one byte order to the other. */
static void turn_around(char *p, size_t bytes, int size) {
    for (char *end = p + bytes; size > 1 && p < end; p += size)
        for (int k = 0; k < size / 2; k++) {
            const char byte = p[k];
            p[k] = p[size - 1 - k];
            p[size - 1 - k] = byte;
        }
}

/* Step by step, so that a huge tensor is never in memory twice; a step is a whole number of
 * elements. */
static fac_status copy_from_file(void *self, void *to, size_t bytes, fac_error *err) {
    enum { STEP = 4 << 20 };
    const place *p = self;
    const char *from = (const char *)fac_file_data(p->file) + p->at;
    (void)err;
    for (size_t done = 0; done < bytes; done += STEP) {
        const size_t n = bytes - done < STEP ? bytes - done : STEP;
        memcpy((char *)to + done, from + done, n);
        turn_around((char *)to + done, n, p->swap);
        fac_file_drop(p->file, p->at + done, n);
    }
    return FAC_OK;
}

static void release_place(void *self) {
    place *p = self;
    fac_file_free(p->file);
    fac_release(p);
}

static fac_status late_file(fac_file *file, size_t at, int swap, fac_type type, fac_tensor **out,
                            fac_error *err) {
    place *p = fac_alloc(1, sizeof *p);
    if (!p) return fac_raise_memory(err, "a tensor of a file");
    *p = (place){ fac_file_retain(file), at, swap };
    fac_status status = fac_tensor_new_late(
        type, &(fac_late){ .make = copy_from_file, .release = release_place, .self = p }, out, err);
    if (status) release_place(p);
    return status;
}

static fac_status from_file(fac_file *file, size_t at, bool big, fac_type type,
                            const int64_t *strides, fac_tensor **out, fac_error *err) {
    const fac_dtype_info *info = fac_dtype_get(type.dtype);
    int64_t plain[FAC_DIMS];
    size_t bytes, end;
    FAC_TRY(fac_check_type(&type, &bytes, err));
    fac_dims_strides(&type.dims, type.dtype, plain);
    if (strides) FAC_TRY(fac_check_window(&type, strides, 0, err));
    if (strides) bytes = fac_window_bytes(&type, strides, 0);
    if (bytes == SIZE_MAX || !fac_size_add(at, bytes, &end) || end > fac_file_size(file))
        return fac_raise(err, FAC_E_FORMAT, "a tensor of %s reaches outside the file", info->name);
    if (type.dtype == FAC_TEXT)
        return fac_raise(err, FAC_E_INTERNAL, "texts cannot be borrowed from a file");
    const char *data = (const char *)fac_file_data(file) + at;
    const int swap = big ? info->block_bytes : 1;
    if (swap == 1 && fac_is_aligned(data, type.dtype)) {
        fac_status status =
            fac_tensor_borrow(type.dtype, type.dims, strides, data, release_file, file, out, err);
        if (!status) fac_file_retain(file);
        return status;
    }
    fac_tensor *late;
    const fac_dims all = {
        1, { (int64_t)(bytes / (size_t)info->block_bytes) * info->block_elements }
    };
    FAC_TRY(late_file(file, at, swap, strides ? (fac_type){ type.dtype, all } : type, &late, err));
    fac_status status = FAC_OK;
    if (strides) {
        fac_tensor *whole = late;
        status = fac_tensor_view(whole, type.dims, strides, 0, &late, err);
        fac_tensor_free(whole);
    }
    if (!status) *out = late;
    return status;
}

fac_status fac_tensor_from_file(fac_file *file, size_t at, fac_type type, const int64_t *strides,
                                fac_tensor **out, fac_error *err) {
    return from_file(file, at, false, type, strides, out, err);
}

fac_status fac_tensor_from_big_endian(fac_file *file, size_t at, fac_type type,
                                      const int64_t *strides, fac_tensor **out, fac_error *err) {
    return from_file(file, at, true, type, strides, out, err);
}
