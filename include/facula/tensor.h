/* facula/tensor.h: concrete data.
 *
 * A tensor is a typed, strided window on a storage; storages are counted, tensors share them. Every
 * write to a storage raises its version: programs use that to know when something prepared from it
 * (packed weights, a copy on another device) is stale.
 *
 * Thread safety: counting and versions are atomic; two threads may read one tensor, a write needs
 * it to itself. */
#ifndef FACULA_TENSOR_H
#define FACULA_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "facula/status.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_device fac_device;
typedef struct fac_tensor fac_tensor;

typedef enum fac_dtype {
    FAC_NONE = 0, /* in options: "as the input" */
    FAC_F32,
    FAC_F64,
    FAC_F16,
    FAC_BF16,
    FAC_I8,
    FAC_I16,
    FAC_I32,
    FAC_I64,
    FAC_U8,
    FAC_U16,
    FAC_U32,
    FAC_U64,
    FAC_BOOL, /* one byte, 0 or 1 */
    FAC_BIT,  /* one bit an element, 64 to a word along the packed axis */
    FAC_TEXT, /* an element is a char * of the storage's own, UTF-8; host only: a few ONNX ops; no
                 arithmetic */
    /* Blocks of 32 or 256 weights with scales of their own, as GGUF files hold them.  For storage:
     * `linear` and `gather` take them as weights, fac_tensor_convert and `cast` make floats of
     * them. A row is whole blocks. */
    FAC_Q4_0,
    FAC_Q4_1,
    FAC_Q5_0,
    FAC_Q5_1,
    FAC_Q8_0,
    FAC_IQ4_NL,
    FAC_Q2_K,
    FAC_Q3_K,
    FAC_Q4_K,
    FAC_Q5_K,
    FAC_Q6_K,
    FAC_IQ4_XS,
    /* What quantized models store: a byte an element in memory, packed in ONNX files.  Cast,
     * quantize_linear, dequantize_linear and what only moves data take them; there is no
     * arithmetic. */
    FAC_F8E4M3,
    FAC_F8E4M3UZ,
    FAC_F8E5M2,
    FAC_F8E5M2UZ,
    FAC_F8E8M0,
    FAC_F4E2M1,
    FAC_I4,
    FAC_U4,
    FAC_I2,
    FAC_U2,
    FAC_DTYPES
} fac_dtype;

/* Storage facts of an element type.  Size only through this table: some types have no byte per
 * element. */
typedef struct fac_dtype_info {
    const char *name; /* "f32" */
    char kind; /* 'f' float, 'i' signed, 'u' unsigned, 'b' bool, 't' text, 'q' blocks, 0 none */
    int block_elements, block_bytes; /* f32 1,4   bit 64,8   a 32-element 4-bit block 32,18 */
    int bits;                        /* of a value: 4 of i4, though a byte holds it */
} fac_dtype_info;
const fac_dtype_info *fac_dtype_get(
    fac_dtype dtype);                       /* never NULL; name "none" for what is no dtype */
bool fac_dtype_is_stored(fac_dtype dtype);  /* FAC_F8E4M3 .. FAC_U2 */
fac_dtype fac_dtype_find(const char *name); /* "f32", "i64"; FAC_NONE when there is no such type */

enum { FAC_DIMS = 8 };
typedef struct fac_dims {
    int n;               /* 0 for a scalar */
    int64_t d[FAC_DIMS]; /* >= 0 a size; < 0 a symbol of the graph (see fac_symbol) */
} fac_dims;
/* fac_shape(1, 3, 224, 224): one size or more, at most FAC_DIMS; a macro in C, a function template
 * in C++. */
#ifdef __cplusplus
}
template <typename... Sizes> inline fac_dims fac_shape(Sizes... sizes) {
    static_assert(sizeof...(sizes) >= 1 && sizeof...(sizes) <= FAC_DIMS,
                  "fac_shape takes 1 to 8 sizes");
    return fac_dims{ static_cast<int>(sizeof...(sizes)), { static_cast<int64_t>(sizes)... } };
}
extern "C" {
#else
#define fac_shape(...)                                                                             \
    ((fac_dims){ (int)(sizeof(int64_t[]){ __VA_ARGS__ } / sizeof(int64_t)), { __VA_ARGS__ } })
#endif

typedef struct fac_type {
    fac_dtype dtype;
    fac_dims dims;
} fac_type;

/* Elements in all; -1 when a dim is a symbol or the product does not fit in 62 bits. */
int64_t fac_dims_count(const fac_dims *dims);
/* The same rank and the same dims; a symbol equals itself alone. */
bool fac_dims_equal(const fac_dims *a, const fac_dims *b);
/* Bytes of a contiguous tensor of this type; SIZE_MAX when it has symbols or does not fit. */
size_t fac_type_bytes(const fac_type *type);

/* A new contiguous tensor of zeros (FAC_TEXT: of empty strings); device NULL is host memory. */
fac_status fac_tensor_new(fac_device *device, fac_dtype dtype, fac_dims dims, fac_tensor **out,
                          fac_error *err);

/* A tensor over the caller's host memory (NumPy, DLPack, mmap), without a copy.  strides in
 * elements, NULL for contiguous, 0 allowed, negative not.  The memory must stay valid and unchanged
 * until release(owner) is called; release may be NULL. When it fails release is not called. */
fac_status fac_tensor_borrow(fac_dtype dtype, fac_dims dims, const int64_t *strides,
                             const void *data, void (*release)(void *owner), void *owner,
                             fac_tensor **out, fac_error *err);

/* The same, but the memory is written as well: by fac_tensor_write, as the output of a run, as a
 * parameter that a program updates.  The caller sees what was written once the call returned, on a
 * device of its own after fac_tensor_data or fac_tensor_read of the tensor.  The caller tells of
 * its own writes by fac_tensor_touch, and must not write while a program reads.  FAC_TEXT is
 * refused. */
fac_status fac_tensor_lend(fac_dtype dtype, fac_dims dims, const int64_t *strides, void *data,
                           void (*release)(void *owner), void *owner, fac_tensor **out,
                           fac_error *err);
/* The memory below t has other contents now: its version is raised, so that packed weights and
 * copies on devices are made anew.  Not for a tensor whose newest contents are on a device: read it
 * first. */
void fac_tensor_touch(fac_tensor *t);

/* Another window on the same storage, offset in elements from t's first; fails if it would reach
 * outside the storage. */
fac_status fac_tensor_view(fac_tensor *t, fac_dims dims, const int64_t *strides, int64_t offset,
                           fac_tensor **out, fac_error *err);

/* One reference more; returns t.  Thread safe. */
fac_tensor *fac_tensor_retain(fac_tensor *t);
void fac_tensor_free(fac_tensor *t); /* drops one reference; NULL is fine */
/* The same for a tensor over lent memory that its owner will not look at again: contents that only
 * a device has are not brought home when the last reference is dropped, which would wait for the
 * device. */
void fac_tensor_discard(fac_tensor *t);

/* Dtype and dims. */
fac_type fac_tensor_type(const fac_tensor *t);
fac_device *fac_tensor_device(const fac_tensor *t);     /* NULL for host memory */
const int64_t *fac_tensor_strides(const fac_tensor *t); /* in elements */
bool fac_tensor_contiguous(const fac_tensor *t);        /* row-major without gaps */
uint64_t fac_tensor_version(const fac_tensor *t);       /* of the storage */
const void *fac_tensor_data(
    const fac_tensor *t); /* the first element, in host memory; NULL when it is elsewhere */
/* What a program left on its device (results, parameters that it updates) is brought to host memory
 * by the first call of fac_tensor_data or fac_tensor_read, which waits for it; when the device
 * fails the one answers NULL, the other says why. */

/* Copies between the tensor and contiguous host memory of exactly `bytes` (fac_type_bytes of its
 * type).  Both wait for the device and for every recorded use of the old contents, so a write never
 * changes what an earlier call saw. FAC_TEXT: the memory holds char *; read gives pointers that
 * live as long as the storage is not written, write copies. */
fac_status fac_tensor_read(const fac_tensor *t, void *to, size_t bytes, fac_error *err);
/* From memory into the tensor, whose version is raised. */
fac_status fac_tensor_write(fac_tensor *t, const void *from, size_t bytes, fac_error *err);

/* A new contiguous host tensor with t's contents as another element type.  Floats to integers
 * truncate towards zero and wrap, anything to bool is != 0, f64/f32 to f16/bf16 round to nearest
 * even; text is parsed and printed as ONNX Cast does. To blocks: FAC_E_UNSUPPORTED but for
 * FAC_Q8_0, FAC_Q4_0, FAC_Q4_1, FAC_Q5_0 and FAC_Q5_1, which are rounded as GGUF's own tools round
 * them; FAC_E_SHAPE where a row is not whole blocks. */
fac_status fac_tensor_convert(const fac_tensor *t, fac_dtype dtype, fac_tensor **out,
                              fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
