/* Storages, and the windows on them. */
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "tensor/mirror.h"
#include "tensor/tensor_check.h"

/* ---- storages ---- */

static fac_storage *storage_new(fac_dtype dtype, size_t bytes) {
    fac_storage *s = fac_alloc(1, sizeof *s);
    if (s && pthread_mutex_init(&s->lock, NULL)) {
        fac_release(s);
        s = NULL;
    }
    if (!s) return NULL;
    atomic_init(&s->refs, 1);
    atomic_init(&s->version, 1);
    atomic_init(&s->away, false);
    atomic_init(&s->discarded, false);
    s->dtype = dtype;
    s->bytes = bytes;
    return s;
}

fac_storage *fac_storage_retain(fac_storage *s) {
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void fac_storage_free(fac_storage *s) {
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
    const bool watched = s->lent && !atomic_load(&s->discarded); /* its owner may look later */
    if (watched && atomic_load(&s->away)) fac_storage_home(s, NULL);
    fac_storage_drop_mirrors(s);
    fac_storage_drop_late(s);
    if (s->borrowed) {
        if (s->release) s->release(s->owner);
    } else if (s->ops) {
        if (s->memory) s->ops->free(s->device, s->memory, s->bytes);
    } else {
        fac_release_aligned(s->host);
    }
    fac_arena_free(&s->texts);
    pthread_mutex_destroy(&s->lock);
    fac_release(s);
}

/* Elements of a text storage point to the storage's own texts, or to this. */
static char *const empty = (char *)(uintptr_t) "";

/* ---- making tensors ---- */

static fac_status no_memory(const fac_type *type, size_t bytes, fac_error *err) {
    return fac_raise_memory(err, "%zu bytes of %s", bytes, fac_dtype_get(type->dtype)->name);
}

fac_status fac_check_type(const fac_type *type, size_t *bytes, fac_error *err) {
    const fac_dtype_info *info = fac_dtype_get(type->dtype);
    if (!info->block_bytes)
        return fac_raise(err, FAC_E_ARGUMENT, "a tensor needs an element type, not %d",
                         (int)type->dtype);
    if (type->dims.n < 0 || type->dims.n > FAC_DIMS)
        return fac_raise(err, FAC_E_ARGUMENT, "a tensor with %d dims: at most %d are possible",
                         type->dims.n, FAC_DIMS);
    for (int k = 0; k < type->dims.n; k++)
        if (type->dims.d[k] < 0)
            return fac_raise(err, FAC_E_ARGUMENT, "dim %d of a tensor is %" PRId64, k,
                             type->dims.d[k]);
    *bytes = fac_type_bytes(type);
    return *bytes == SIZE_MAX
               ? fac_raise(err, FAC_E_NOMEM, "a tensor of this size does not fit in any memory")
               : FAC_OK;
}

static bool row_major(const fac_type *type, const int64_t *stride) {
    int64_t plain[FAC_DIMS];
    if (!fac_dims_count(&type->dims)) return true;
    fac_dims_strides(&type->dims, type->dtype, plain);
    for (int k = 0; k < type->dims.n; k++)
        if (type->dims.d[k] != 1 && stride[k] != plain[k]) return false;
    return true;
}

/* Takes the caller's reference to s, also when it fails.  strides NULL: row-major. */
static fac_status window(fac_storage *s, fac_type type, const int64_t *strides, int64_t offset,
                         fac_tensor **out, fac_error *err) {
    fac_tensor *t = fac_alloc(1, sizeof *t);
    if (!t) {
        fac_storage_free(s);
        return no_memory(&type, sizeof *t, err);
    }
    atomic_init(&t->refs, 1);
    t->storage = s;
    t->type = type;
    t->offset = offset;
    if (strides)
        memcpy(t->stride, strides, (size_t)type.dims.n * sizeof *strides);
    else
        fac_dims_strides(&type.dims, type.dtype, t->stride);
    t->contiguous = row_major(&type, t->stride);
    *out = t;
    return FAC_OK;
}

static fac_status zero_device(fac_storage *s, fac_error *err) {
    static const char zeros[1 << 16];
    if (s->ops->zero) return s->ops->zero(s->device, s->memory, 0, s->bytes, err);
    for (size_t at = 0; at < s->bytes; at += sizeof zeros) {
        size_t n = s->bytes - at < sizeof zeros ? s->bytes - at : sizeof zeros;
        FAC_TRY(s->ops->write(s->device, s->memory, at, zeros, n, err));
    }
    return FAC_OK;
}

static fac_status fill(fac_storage *s, bool zero, fac_error *err) {
    if (s->dtype == FAC_TEXT) {
        char **elements = s->host;
        for (size_t i = 0; i < s->bytes / sizeof *elements; i++) elements[i] = empty;
    } else if (zero && s->host) {
        memset(s->host, 0, s->bytes);
    } else if (zero && s->memory) {
        return zero_device(s, err);
    }
    return FAC_OK;
}

/* Texts are always in host memory. */
fac_status fac_tensor_new_on(const fac_memory_ops *ops, fac_device *device, fac_type type,
                             bool zero, fac_tensor **out, fac_error *err) {
    size_t bytes;
    FAC_TRY(fac_check_type(&type, &bytes, err));
    fac_storage *s = storage_new(type.dtype, bytes);
    if (!s) return no_memory(&type, sizeof *s, err);
    fac_status status = FAC_OK;
    if (ops && type.dtype != FAC_TEXT) {
        s->ops = ops;
        s->device = device;
        if (bytes) status = ops->alloc(device, bytes, &s->memory, err);
        if (!status && s->memory && ops->host) s->host = ops->host(device, s->memory);
    } else {
        s->host = s->memory = fac_alloc_aligned(bytes);
        if (!s->host) status = no_memory(&type, bytes, err);
    }
    if (!status) status = fill(s, zero, err);
    if (status) {
        fac_storage_free(s);
        return status;
    }
    return window(s, type, NULL, 0, out, err);
}

fac_status fac_tensor_new_aside(fac_type type, fac_tensor **out, fac_error *err) {
    size_t bytes;
    FAC_TRY(fac_check_type(&type, &bytes, err));
    fac_storage *s = storage_new(type.dtype, bytes);
    if (!s) return no_memory(&type, sizeof *s, err);
    atomic_store(&s->away, true);
    return window(s, type, NULL, 0, out, err);
}

fac_status fac_tensor_new_late(fac_type type, const fac_late *late, fac_tensor **out,
                               fac_error *err) {
    FAC_TRY(fac_tensor_new_aside(type, out, err));
    (*out)->storage->late = *late;
    return FAC_OK;
}

fac_status fac_tensor_over(const fac_memory_ops *ops, fac_device *device, void *memory,
                           fac_type type, fac_tensor **out, fac_error *err) {
    size_t bytes;
    FAC_TRY(fac_check_type(&type, &bytes, err));
    fac_storage *s = storage_new(type.dtype, bytes);
    if (!s) return no_memory(&type, sizeof *s, err);
    fac_tensor *t;
    FAC_TRY(window(s, type, NULL, 0, &t, err));
    s->ops = ops; /* from here on it is ours */
    s->device = device;
    s->memory = memory;
    *out = t;
    return FAC_OK;
}

fac_status fac_tensor_new(fac_device *device, fac_dtype dtype, fac_dims dims, fac_tensor **out,
                          fac_error *err) {
    const fac_memory_ops *ops = NULL;
    if (device) memcpy(&ops, device, sizeof ops); /* see fac_memory_ops */
    return fac_tensor_new_on(ops, device, (fac_type){ dtype, dims }, true, out, err);
}

size_t fac_window_bytes(const fac_type *type, const int64_t *strides, int64_t offset) {
    const fac_dtype_info *info = fac_dtype_get(type->dtype);
    int64_t end = fac_dims_extent(&type->dims, strides);
    size_t bytes;
    if (end < 0 || offset < 0 || __builtin_add_overflow(end, offset, &end) ||
        end > INT64_MAX - info->block_elements)
        return SIZE_MAX;
    end = (end + info->block_elements - 1) / info->block_elements;
    return fac_size_mul((size_t)end, (size_t)info->block_bytes, &bytes) && bytes <= PTRDIFF_MAX
               ? bytes
               : SIZE_MAX;
}

/* A window of a type with blocks begins, and has its rows begin, at a block. */
fac_status fac_check_window(const fac_type *type, const int64_t *strides, int64_t offset,
                            fac_error *err) {
    int block = fac_dtype_get(type->dtype)->block_elements;
    for (int k = 0; k < type->dims.n; k++) {
        if (strides[k] < 0)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "stride %d is %" PRId64 ": it must not be negative", k, strides[k]);
        bool last = k == type->dims.n - 1;
        if (block > 1 && (last ? strides[k] != 1 : strides[k] % block))
            return fac_raise(err, FAC_E_ARGUMENT,
                             "stride %d of %s is %" PRId64 ": rows are whole blocks of %d elements",
                             k, fac_dtype_get(type->dtype)->name, strides[k], block);
    }
    if (offset % block)
        return fac_raise(err, FAC_E_ARGUMENT, "offset %" PRId64 " is inside a block of %d elements",
                         offset, block);
    return FAC_OK;
}

/* Blocks of weights are read byte by byte. */
bool fac_is_aligned(const void *data, fac_dtype dtype) {
    const fac_dtype_info *i = fac_dtype_get(dtype);
    return i->kind == 'q' || (uintptr_t)data % (size_t)i->block_bytes == 0;
}

fac_status fac_tensor_borrow(fac_dtype dtype, fac_dims dims, const int64_t *strides,
                             const void *data, void (*release)(void *owner), void *owner,
                             fac_tensor **out, fac_error *err) {
    fac_type type = { dtype, dims };
    int64_t plain[FAC_DIMS];
    size_t bytes;
    FAC_TRY(fac_check_type(&type, &bytes, err));
    fac_dims_strides(&dims, dtype, plain);
    if (!strides) strides = plain;
    FAC_TRY(fac_check_window(&type, strides, 0, err));
    if (strides != plain) bytes = fac_window_bytes(&type, strides, 0);
    if (bytes == SIZE_MAX)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a tensor with these strides does not fit in any memory");
    if (bytes && !data) return fac_raise(err, FAC_E_ARGUMENT, "a borrowed tensor needs data");
    if (!fac_is_aligned(data, dtype))
        return fac_raise(err, FAC_E_ARGUMENT, "borrowed data is not aligned for %s",
                         fac_dtype_get(dtype)->name);
    fac_storage *s = storage_new(dtype, bytes);
    if (!s) return no_memory(&type, sizeof *s, err);
    s->borrowed = true;
    s->host = s->memory = (void *)(uintptr_t)data; /* const again by `borrowed` */
    fac_tensor *t;
    FAC_TRY(window(s, type, strides, 0, &t, err));
    s->release = release; /* from here on it is ours */
    s->owner = owner;
    *out = t;
    return FAC_OK;
}

fac_status fac_tensor_lend(fac_dtype dtype, fac_dims dims, const int64_t *strides, void *data,
                           void (*release)(void *owner), void *owner, fac_tensor **out,
                           fac_error *err) {
    if (dtype == FAC_TEXT) return fac_raise(err, FAC_E_DTYPE, "memory of texts cannot be lent");
    FAC_TRY(fac_tensor_borrow(dtype, dims, strides, data, release, owner, out, err));
    (*out)->storage->lent = true;
    return FAC_OK;
}

fac_status fac_tensor_view(fac_tensor *t, fac_dims dims, const int64_t *strides, int64_t offset,
                           fac_tensor **out, fac_error *err) {
    fac_type type = { t->type.dtype, dims };
    int64_t plain[FAC_DIMS], at;
    size_t bytes;
    FAC_TRY(fac_check_type(&type, &bytes, err));
    fac_dims_strides(&dims, type.dtype, plain);
    if (!strides) strides = plain;
    FAC_TRY(fac_check_window(&type, strides, offset, err));
    bool outside = __builtin_add_overflow(t->offset, offset, &at) || at < 0;
    if (outside || fac_window_bytes(&type, strides, at) > t->storage->bytes)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a view at offset %" PRId64 " reaches outside the storage of %zu bytes",
                         offset, t->storage->bytes);
    return window(fac_storage_retain(t->storage), type, strides, at, out, err);
}

fac_tensor *fac_tensor_retain(fac_tensor *t) {
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void fac_tensor_free(fac_tensor *t) {
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
    fac_storage_free(t->storage);
    fac_release(t);
}

void fac_tensor_discard(fac_tensor *t) {
    if (t) atomic_store(&t->storage->discarded, true);
    fac_tensor_free(t);
}

/* ---- looking at them ---- */

fac_type fac_tensor_type(const fac_tensor *t) { return t->type; }
fac_device *fac_tensor_device(const fac_tensor *t) { return t->storage->device; }
const int64_t *fac_tensor_strides(const fac_tensor *t) { return t->stride; }
bool fac_tensor_contiguous(const fac_tensor *t) { return t->contiguous; }
uint64_t fac_tensor_version(const fac_tensor *t) { return atomic_load(&t->storage->version); }

/* Without elements there may be no memory, but a tensor in host memory answers NULL only when a
 * device has its contents and does not give them. */
const void *fac_tensor_data(const fac_tensor *t) {
    if (fac_storage_home(t->storage, NULL)) return NULL;
    if (!t->storage->host) return t->storage->bytes ? NULL : empty;
    return (const char *)t->storage->host + fac_tensor_at(t);
}
