/* Operands of products: see product.h. */
#include "backends/gpu/product/product.h"
#include "graph/graph_internal.h"
#include "tensor/tensor_internal.h"

size_t fac_gpu_sum_bytes(fac_dtype t) { return fac_dtype_get(t)->block_bytes == 8 ? 8 : 4; }

bool fac_gpu_strides(const fac_operand *x, const fac_dims *result, int64_t *stride) {
    const fac_dims *d = &x->type.dims;
    const int shift = result->n - d->n;
    if (x->layout.block || shift < 0) return false;
    for (int k = 0; k < result->n; k++) {
        const bool there = k >= shift && d->d[k - shift] != 1;
        if (there && d->d[k - shift] != result->d[k]) return false;
        stride[k] = there ? x->layout.stride[k - shift] : 0;
    }
    return true;
}
