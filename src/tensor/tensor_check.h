/* What is asked of memory before it becomes a tensor (tensor.c). */
#ifndef FACULA_TENSOR_CHECK_H
#define FACULA_TENSOR_CHECK_H
#include "tensor/tensor_internal.h"

/* An element type and sizes that can be; *bytes: of all elements. */
fac_status fac_check_type(const fac_type *type, size_t *bytes, fac_error *err);
/* Strides and an offset that keep all elements in the memory. */
fac_status fac_check_window(const fac_type *type, const int64_t *strides, int64_t offset,
                            fac_error *err);
/* May elements of the type be read where they lie? */
bool fac_is_aligned(const void *data, fac_dtype dtype);
#endif
