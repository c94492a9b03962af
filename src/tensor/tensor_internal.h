/* Tensors and storages as the rest of the library sees them. */
#ifndef FACULA_TENSOR_INTERNAL_H
#define FACULA_TENSOR_INTERNAL_H
#include <pthread.h>
#include <stdatomic.h>
#include "base/arena.h"
#include "base/file/file.h"
#include "facula/tensor.h"

/* The memory of a device, as tensors need it.  This layer knows nothing else of devices: a pointer
 * to such a table is the FIRST member of every struct fac_device.  `at` and `bytes` count bytes;
 * write and read wait for every recorded use of the memory.  host: where the host may read and
 * write it directly, or NULL. */
typedef struct fac_memory_ops {
    fac_status (*alloc)(fac_device *d, size_t bytes, void **memory,
                        fac_error *err); /* contents undefined; bytes > 0 */
    void (*free)(fac_device *d, void *memory, size_t bytes);
    fac_status (*write)(fac_device *d, void *memory, size_t at, const void *from, size_t bytes,
                        fac_error *err);
    fac_status (*read)(fac_device *d, void *memory, size_t at, void *to, size_t bytes,
                       fac_error *err);
    void *(*host)(fac_device *d, void *memory);
    fac_status (*zero)(fac_device *d, void *memory, size_t at, size_t bytes,
                       fac_error *err); /* optional */
} fac_memory_ops;

/* Contents that are made on the first read: make fills all bytes of the storage.  release (may be
 * NULL) gives self back then, or when nobody ever looked. */
typedef struct fac_late {
    fac_status (*make)(void *self, void *to, size_t bytes, fac_error *err);
    void (*release)(void *self);
    void *self;
    bool drawn; /* at random, so what they are like is known before they are made */
} fac_late;

/* Counted memory.  While it is retained its address identifies it, so a cache that keys on
 * (storage, version) retains it. */
typedef struct fac_storage {
    atomic_int refs;
    atomic_uint_least64_t version; /* starts at 1, raised by every write */
    fac_device *device; /* NULL: host memory                                                     */
    const fac_memory_ops *ops; /* NULL: host memory of our own or borrowed */
    void *memory; /* what device memory is called by ops; host memory: host                */
    void *host;   /* the bytes, where the host can reach them; else NULL                   */
    pthread_mutex_t lock; /* of the mirrors and of where the contents are: see mirror.h */
    struct fac_mirror *mirrors;
    atomic_bool
        away; /* a mirror or `late` has newer contents than host memory, which may not even exist */
    size_t bytes;
    fac_dtype dtype; /* of the tensor it was made for                                         */
    fac_late late;   /* make NULL: nothing is left to be made                                 */
    bool borrowed;   /* host memory of somebody else, never written: a write makes a copy...  */
    bool lent;       /* ...but where that somebody lets us write                              */
    atomic_bool discarded; /* its owner does not look at it again */
    void (*release)(void *owner);
    void *owner;
    fac_arena texts; /* FAC_TEXT: what the elements point to                                  */
} fac_storage;

struct fac_tensor {
    atomic_int refs;
    bool contiguous;
    fac_storage *storage;
    fac_type type;
    int64_t stride[FAC_DIMS]; /* in elements */
    int64_t offset;           /* of the first element, in elements from the storage's first */
};

/* ---- storages ---- */

fac_storage *fac_storage_retain(fac_storage *s);
void fac_storage_free(fac_storage *s);         /* NULL is fine */
void fac_storage_drop_mirrors(fac_storage *s); /* mirror.c: the last reference is gone */
static inline fac_storage *fac_tensor_storage(const fac_tensor *t) { return t->storage; }
static inline void fac_storage_drop_late(fac_storage *s) {
    if (s->late.release) s->late.release(s->late.self);
    s->late = (fac_late){ 0 };
}
/* Where the first element is: bytes from the storage's first. */
static inline size_t fac_tensor_at(const fac_tensor *t) {
    const fac_dtype_info *i = fac_dtype_get(t->type.dtype);
    return (size_t)t->offset / (size_t)i->block_elements * (size_t)i->block_bytes;
}

/* fac_tensor_new on memory that is described by ops; ops and device NULL: host memory.  zero: fill
 * it with zeros. */
fac_status fac_tensor_new_on(const fac_memory_ops *ops, fac_device *device, fac_type type,
                             bool zero, fac_tensor **out, fac_error *err);

/* A tensor over memory of a device that is there already: ops->free gets it back when the last
 * tensor on it goes; not after an error. */
fac_status fac_tensor_over(const fac_memory_ops *ops, fac_device *device, void *memory,
                           fac_type type, fac_tensor **out, fac_error *err);

/* For a writer that goes around fac_tensor_write, such as a program that updates a parameter in
 * place: makes borrowed memory the storage's own and raises its version.  *data (may be NULL)
 * receives the first element in host memory, NULL when it is elsewhere.  The caller has waited for
 * whoever reads the old contents. */
fac_status fac_tensor_begin_write(fac_tensor *t, void **data, fac_error *err);
fac_status fac_tensor_own(fac_tensor *t, fac_error *err); /* the first half: no new version yet */

/* A contiguous host tensor of late contents; any type but FAC_TEXT.  It takes late->self, but not
 * when it fails. */
fac_status fac_tensor_new_late(fac_type type, const fac_late *late, fac_tensor **out,
                               fac_error *err);

/* ---- copies and conversions ---- */

/* n elements of one type at src to another type at dst, both contiguous, not overlapping; anything
 * but FAC_TEXT and FAC_NONE.  The rules are those of fac_tensor_convert; NaN and infinity become
 * the integer 0. */
void fac_convert(fac_dtype to, void *dst, fac_dtype from, const void *src, size_t n);

/* Elements of `size` bytes from one strided window to another; strides in elements. */
void fac_copy_strided(const fac_dims *dims, size_t size, void *to, const int64_t *to_strides,
                      const void *from, const int64_t *from_strides);

/* A new contiguous host tensor with the same contents. */
fac_status fac_tensor_copy_contiguous(const fac_tensor *t, fac_tensor **out, fac_error *err);

/* ---- shapes ---- */

void fac_dims_strides(const fac_dims *dims, fac_dtype dtype,
                      int64_t strides[FAC_DIMS]); /* row-major */
/* Elements from the first to after the last one, for dims without symbols and strides >= 0; -1
 * when it does not fit. */
int64_t fac_dims_extent(const fac_dims *dims, const int64_t *strides);
/* Bytes that a window needs from the storage's first on; SIZE_MAX when that is no possible size. */
size_t fac_window_bytes(const fac_type *type, const int64_t *strides, int64_t offset);

/* ---- tensors in files ---- */

/* A tensor of the bytes of a file from `at` on, which are checked to be inside.  It borrows them,
 * retaining the file; where they are not aligned for their type they are copied on the first read,
 * and the pages that were read for it are let go. */
fac_status fac_tensor_from_file(fac_file *file, size_t at, fac_type type, const int64_t *strides,
                                fac_tensor **out, fac_error *err);
/* The same of elements whose first byte is the highest: copied and swapped on the first read.
 */
fac_status fac_tensor_from_big_endian(fac_file *file, size_t at, fac_type type,
                                      const int64_t *strides, fac_tensor **out, fac_error *err);

/* The host memory of a tensor that is not const, such as one that was just made: what
 * fac_tensor_data gives, to be written. */
static inline void *fac_tensor_memory(const fac_tensor *t) {
    return (void *)(uintptr_t)fac_tensor_data(t);
}
#endif
