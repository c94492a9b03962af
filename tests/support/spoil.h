/* Numbers that are none, among the operands of a test. */
#ifndef SPOIL_H
#define SPOIL_H
#include <math.h>
#include "tensor/tensor_internal.h"

/* NaN at every 17th place. */
static inline void spoil(const fac_type *t, void *data) {
    const double none = NAN;
    const size_t size = (size_t)fac_dtype_get(t->dtype)->block_bytes;
    for (int64_t e = 0; e < fac_dims_count(&t->dims); e += 17)
        fac_convert(t->dtype, (char *)data + (size_t)e * size, FAC_F64, &none, 1);
}
#endif
