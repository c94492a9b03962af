/* Numbers as texts and back, as ONNX Cast has them. */
#ifndef FACULA_TENSOR_CONVERT_TEXT_H
#define FACULA_TENSOR_CONVERT_TEXT_H
#include "facula/tensor.h"

/* n texts (char *) at `from` as dtype at `to`; FAC_E_FORMAT for what is no number. */
fac_status fac_texts_parse(fac_dtype dtype, void *to, const void *from, size_t n, fac_error *err);
/* n numbers at `from` into a new contiguous FAC_TEXT tensor. */
fac_status fac_texts_print(fac_tensor *to, fac_dtype dtype, const void *from, size_t n,
                           fac_error *err);
#endif
