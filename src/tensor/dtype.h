/* Kinds of element types that the library asks for in many places. */
#ifndef FACULA_TENSOR_DTYPE_H
#define FACULA_TENSOR_DTYPE_H
#include "facula/tensor.h"

/* A float of 16 bits, of either kind. */
static inline bool fac_dtype_is_half(fac_dtype t) { return t == FAC_F16 || t == FAC_BF16; }
#endif
