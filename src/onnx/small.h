/* Elements of 4 and 2 bits: a byte each in memory, packed in files, the first one in the low bits.
 */
#ifndef FACULA_ONNX_SMALL_H
#define FACULA_ONNX_SMALL_H
#include "facula/tensor.h"

/* Elements in a byte of a file: 1, 2 or 4. */
int fac_onnx_small_each(fac_dtype dtype);
/* Bytes in a file; SIZE_MAX: too many. */
size_t fac_onnx_small_bytes(const fac_type *type);
/* The tensor of packed bytes.  FAC_E_NOMEM. */
fac_status fac_onnx_small_open(const fac_type *type, const uint8_t *from, fac_tensor **out,
                               fac_error *err);
/* u8[bytes], packed, of a tensor.  FAC_E_NOMEM. */
fac_status fac_onnx_small_pack(const fac_tensor *t, fac_tensor **out, fac_error *err);
#endif
