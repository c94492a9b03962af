/* See small.h. */
#include "onnx/small.h"
#include <string.h>
#include "base/error.h"
#include "tensor/tensor_internal.h"

int fac_onnx_small_each(fac_dtype dtype) {
    const int bits = fac_dtype_is_stored(dtype) ? fac_dtype_get(dtype)->bits : 8;
    return 8 / bits;
}

size_t fac_onnx_small_bytes(const fac_type *type) {
    const size_t bytes = fac_type_bytes(type), each = (size_t)fac_onnx_small_each(type->dtype);
    if (each == 1 || bytes == SIZE_MAX) return bytes;
    return bytes / each + (bytes % each != 0);
}

/* Of a code to the byte that holds it in memory: signed numbers keep their sign. */
static uint8_t held(fac_dtype dtype, unsigned code, int bits) {
    const unsigned sign = 1u << (bits - 1);
    if (fac_dtype_get(dtype)->kind != 'i') return (uint8_t)code;
    return (uint8_t)((code ^ sign) - sign);
}

static void unpack(const fac_type *type, const uint8_t *from, uint8_t *to) {
    const int each = fac_onnx_small_each(type->dtype), bits = 8 / each;
    const int64_t n = fac_dims_count(&type->dims);
    for (int64_t k = 0; k < n; k++) {
        const unsigned code = (unsigned)from[k / each] >> (k % each * bits) & ((1u << bits) - 1);
        to[k] = held(type->dtype, code, bits);
    }
}

fac_status fac_onnx_small_open(const fac_type *type, const uint8_t *from, fac_tensor **out,
                               fac_error *err) {
    fac_tensor *t;
    void *data;
    FAC_TRY(fac_tensor_new_on(NULL, NULL, *type, false, &t, err));
    const fac_status status = fac_tensor_begin_write(t, &data, err);
    if (status) {
        fac_tensor_free(t);
        return status;
    }
    unpack(type, from, data);
    *out = t;
    return FAC_OK;
}

static void pack(const uint8_t *from, int64_t n, int each, uint8_t *to) {
    const int bits = 8 / each;
    for (int64_t k = 0; k < n; k++) {
        const unsigned code = from[k] & ((1u << bits) - 1);
        to[k / each] |= (uint8_t)(code << (k % each * bits));
    }
}

fac_status fac_onnx_small_pack(const fac_tensor *t, fac_tensor **out, fac_error *err) {
    const size_t bytes = fac_onnx_small_bytes(&t->type);
    fac_tensor *plain = NULL, *made = NULL;
    void *to = NULL;
    FAC_TRY(fac_tensor_copy_contiguous(t, &plain, err));
    fac_status status = fac_tensor_new(NULL, FAC_U8, fac_shape((int64_t)bytes), &made, err);
    if (!status) status = fac_tensor_begin_write(made, &to, err);
    if (!status) {
        if (bytes) memset(to, 0, bytes);
        pack(fac_tensor_data(plain), fac_dims_count(&t->type.dims),
             fac_onnx_small_each(t->type.dtype), to);
        *out = made;
    } else {
        fac_tensor_free(made);
    }
    fac_tensor_free(plain);
    return status;
}
