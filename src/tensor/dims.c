/* Sizes of tensors: every product of dims in the library is taken here, where it is checked. */
#include <stdint.h>
#include "base/memory.h"
#include "tensor/tensor_internal.h"

/* So few elements that their bytes, and small multiples of these, fit into an int64_t. */
static const int64_t LARGEST = INT64_C(1) << 56;

int64_t fac_dims_count(const fac_dims *dims) {
    int64_t count = 1;
    bool fits = dims->n >= 0 && dims->n <= FAC_DIMS, empty = false;
    for (int k = 0; fits && k < dims->n; k++) {
        if (dims->d[k] < 0) return -1;
        if (!dims->d[k]) empty = true;
    }
    if (!fits || empty) return fits ? 0 : -1;
    for (int k = 0; k < dims->n; k++)
        if (__builtin_mul_overflow(count, dims->d[k], &count) || count >= LARGEST) return -1;
    return count;
}

bool fac_dims_equal(const fac_dims *a, const fac_dims *b) {
    if (a->n != b->n) return false;
    for (int k = 0; k < a->n; k++)
        if (a->d[k] != b->d[k]) return false;
    return true;
}

/* Rows of a type with several elements to a block are whole blocks. */
static int64_t row(const fac_dims *dims, int block) {
    int64_t size = dims->n ? dims->d[dims->n - 1] : 1;
    return block == 1 || size > LARGEST - block ? size : (size + block - 1) / block * block;
}

size_t fac_type_bytes(const fac_type *type) {
    const fac_dtype_info *info = fac_dtype_get(type->dtype);
    fac_dims d = type->dims;
    if (!info->block_bytes || fac_dims_count(&d) < 0) return SIZE_MAX;
    if (d.n) d.d[d.n - 1] = row(&type->dims, info->block_elements);
    int64_t elements = d.n ? fac_dims_count(&d) : row(&d, info->block_elements);
    size_t bytes;
    if (elements < 0 ||
        !fac_size_mul((size_t)(elements / info->block_elements), (size_t)info->block_bytes, &bytes))
        return SIZE_MAX;
    return bytes > PTRDIFF_MAX ? SIZE_MAX : bytes;
}

void fac_dims_strides(const fac_dims *dims, fac_dtype dtype, int64_t strides[FAC_DIMS]) {
    int64_t stride = 1;
    for (int k = dims->n - 1; k >= 0; k--) {
        int64_t size =
            k == dims->n - 1 ? row(dims, fac_dtype_get(dtype)->block_elements) : dims->d[k];
        strides[k] = stride;
        /* only a tensor without elements gets here with a product that does not fit, and no one
         * follows its strides */
        if (size > 1 && __builtin_mul_overflow(stride, size, &stride)) stride = 0;
    }
}

int64_t fac_dims_extent(const fac_dims *dims, const int64_t *strides) {
    int64_t last = 0, step;
    int64_t count = fac_dims_count(dims);
    if (count <= 0) return count;
    for (int k = 0; k < dims->n; k++)
        if (strides[k] < 0 || __builtin_mul_overflow(dims->d[k] - 1, strides[k], &step) ||
            __builtin_add_overflow(last, step, &last) || last >= LARGEST)
            return -1;
    return last + 1;
}
