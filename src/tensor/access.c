/* Reading, writing and copying what tensors hold. */
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "tensor/mirror.h"
#include "tensor/tensor_internal.h"

static fac_status no_memory(const fac_tensor *t, size_t bytes, fac_error *err) {
    return fac_raise_memory(err, "%zu bytes of %s", bytes, fac_dtype_get(t->type.dtype)->name);
}

/* ---- texts ---- */

static char *text_at(const void *elements, size_t i) {
    char *s;
    memcpy(&s, (const char *)elements + i * sizeof s, sizeof s);
    return s ? s : (char *)(uintptr_t) "";
}

/* Copies n texts into an arena; to may be from. */
static bool copy_texts(fac_arena *arena, size_t n, char **to, const void *from) {
    for (size_t i = 0; i < n; i++) {
        to[i] = fac_arena_text(arena, text_at(from, i));
        if (!to[i]) return false;
    }
    return true;
}

/* ---- reading and writing ---- */

static fac_status check_bytes(const fac_tensor *t, const void *memory, size_t bytes,
                              fac_error *err) {
    size_t need = fac_type_bytes(&t->type);
    if (bytes != need)
        return fac_raise(err, FAC_E_ARGUMENT, "the tensor has %zu bytes, the caller's memory %zu",
                         need, bytes);
    return need && !memory ? fac_raise(err, FAC_E_ARGUMENT, "the caller's memory is NULL") : FAC_OK;
}

/* Elements and sizes as fac_copy_strided wants them: blocks count as elements. */
static void in_blocks(const fac_tensor *t, fac_dims *dims, size_t *size, int64_t plain[FAC_DIMS],
                      int64_t strides[FAC_DIMS]) {
    const fac_dtype_info *info = fac_dtype_get(t->type.dtype);
    *dims = t->type.dims;
    *size = (size_t)info->block_bytes;
    for (int k = 0; k < dims->n; k++)
        strides[k] = k == dims->n - 1 ? t->stride[k] : t->stride[k] / info->block_elements;
    if (dims->n)
        dims->d[dims->n - 1] =
            (dims->d[dims->n - 1] + info->block_elements - 1) / info->block_elements;
    fac_dims_strides(dims, FAC_U8, plain);
}

/* The bytes between the first element of a window and the end of its last. */
static size_t span_of(const fac_tensor *t) { return fac_window_bytes(&t->type, t->stride, 0); }

fac_status fac_tensor_read(const fac_tensor *t, void *to, size_t bytes, fac_error *err) {
    const fac_storage *s = t->storage;
    FAC_TRY(check_bytes(t, to, bytes, err));
    if (!bytes) return FAC_OK;
    FAC_TRY(fac_storage_home(t->storage, err));
    if (t->contiguous && s->ops)
        return s->ops->read(s->device, s->memory, fac_tensor_at(t), to, bytes, err);
    if (t->contiguous) {
        memcpy(to, fac_tensor_data(t), bytes);
        return FAC_OK;
    }
    fac_dims dims;
    size_t size, span = span_of(t);
    int64_t plain[FAC_DIMS], strides[FAC_DIMS];
    in_blocks(t, &dims, &size, plain, strides);
    void *fetched = NULL;
    if (s->ops) {
        fetched = fac_alloc_aligned(span);
        if (!fetched) return no_memory(t, span, err);
        fac_status status =
            s->ops->read(s->device, s->memory, fac_tensor_at(t), fetched, span, err);
        if (status) {
            fac_release_aligned(fetched);
            return status;
        }
    }
    fac_copy_strided(&dims, size, to, plain, fetched ? fetched : fac_tensor_data(t), strides);
    fac_release_aligned(fetched);
    return FAC_OK;
}

/* Borrowed memory becomes a copy of our own; every tensor on the storage sees it. */
static fac_status own(fac_storage *s, fac_error *err) {
    if (!s->borrowed || s->lent) return FAC_OK;
    fac_arena texts = { 0 };
    void *copy = fac_alloc_aligned(s->bytes);
    bool done = copy && (s->dtype != FAC_TEXT ||
                         copy_texts(&texts, s->bytes / sizeof(char *), copy, s->host));
    if (!done) {
        fac_release_aligned(copy);
        fac_arena_free(&texts);
        return fac_raise_memory(err, "a copy of %zu borrowed bytes", s->bytes);
    }
    if (s->dtype != FAC_TEXT && s->bytes) memcpy(copy, s->host, s->bytes);
    if (s->release) s->release(s->owner);
    s->borrowed = false;
    s->host = s->memory = copy;
    s->texts = texts;
    return FAC_OK;
}

fac_status fac_tensor_own(fac_tensor *t, fac_error *err) {
    FAC_TRY(fac_storage_home(t->storage, err));
    return own(t->storage, err);
}

fac_status fac_tensor_begin_write(fac_tensor *t, void **data, fac_error *err) {
    FAC_TRY(fac_tensor_own(t, err));
    fac_tensor_touch(t);
    if (data) *data = fac_tensor_memory(t);
    return FAC_OK;
}

void fac_tensor_touch(fac_tensor *t) { atomic_fetch_add(&t->storage->version, 1); }

/* A write to the whole storage drops the texts that were there; a write to a part keeps them all.
 */
static fac_status write_texts(fac_tensor *t, const void *from, size_t n, fac_error *err) {
    fac_storage *s = t->storage;
    bool whole = n * sizeof(char *) == s->bytes;
    fac_arena fresh = { 0 }, *arena = whole ? &fresh : &s->texts;
    char **copies = fac_alloc(n, sizeof *copies);
    if (!copies || !copy_texts(arena, n, copies, from)) {
        fac_release(copies);
        fac_arena_free(&fresh);
        return fac_raise_memory(err, "%zu texts", n);
    }
    int64_t plain[FAC_DIMS];
    fac_dims_strides(&t->type.dims, FAC_TEXT, plain);
    fac_copy_strided(&t->type.dims, sizeof *copies, (char *)s->host + fac_tensor_at(t), t->stride,
                     copies, plain);
    fac_release(copies);
    if (whole) {
        fac_arena_free(&s->texts);
        s->texts = fresh;
    }
    return FAC_OK;
}

static fac_status write_strided(fac_tensor *t, const void *from, fac_error *err) {
    fac_storage *s = t->storage;
    fac_dims dims;
    size_t size, span = span_of(t), at = fac_tensor_at(t);
    int64_t plain[FAC_DIMS], strides[FAC_DIMS];
    in_blocks(t, &dims, &size, plain, strides);
    if (!s->ops) {
        fac_copy_strided(&dims, size, (char *)s->host + at, strides, from, plain);
        return FAC_OK;
    }
    char *around =
        fac_alloc_aligned(span); /* what lies between the elements is written back as it was */
    if (!around) return no_memory(t, span, err);
    fac_status status = s->ops->read(s->device, s->memory, at, around, span, err);
    if (!status) {
        fac_copy_strided(&dims, size, around, strides, from, plain);
        status = s->ops->write(s->device, s->memory, at, around, span, err);
    }
    fac_release_aligned(around);
    return status;
}

fac_status fac_tensor_write(fac_tensor *t, const void *from, size_t bytes, fac_error *err) {
    fac_storage *s = t->storage;
    FAC_TRY(check_bytes(t, from, bytes, err));
    for (int k = 0; k < t->type.dims.n; k++)
        if (t->type.dims.d[k] > 1 && !t->stride[k])
            return fac_raise(err, FAC_E_ARGUMENT,
                             "dim %d has stride 0: its %" PRId64
                             " elements are one, which cannot hold them",
                             k, t->type.dims.d[k]);
    if (!bytes) return FAC_OK;
    if (bytes == s->bytes) fac_storage_overwrite(s);
    FAC_TRY(fac_tensor_begin_write(t, NULL, err));
    if (t->type.dtype == FAC_TEXT) return write_texts(t, from, bytes / sizeof(char *), err);
    if (!t->contiguous) return write_strided(t, from, err);
    if (s->ops) return s->ops->write(s->device, s->memory, fac_tensor_at(t), from, bytes, err);
    memcpy((char *)s->host + fac_tensor_at(t), from, bytes);
    return FAC_OK;
}

fac_status fac_tensor_copy_contiguous(const fac_tensor *t, fac_tensor **out, fac_error *err) {
    fac_tensor *copy;
    size_t bytes = fac_type_bytes(&t->type);
    FAC_TRY(fac_tensor_new_on(NULL, NULL, t->type, false, &copy, err));
    fac_status status = FAC_OK;
    if (t->type.dtype != FAC_TEXT) {
        status = fac_tensor_read(t, copy->storage->host, bytes, err);
    } else {
        void *elements = fac_alloc(bytes, 1);
        status = elements ? fac_tensor_read(t, elements, bytes, err) : no_memory(t, bytes, err);
        if (!status && bytes) status = write_texts(copy, elements, bytes / sizeof(char *), err);
        fac_release(elements);
    }
    if (status)
        fac_tensor_free(copy);
    else
        *out = copy;
    return status;
}
