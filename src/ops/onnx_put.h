/* For save(): ONNX nodes of one and two inputs in one expression. */
#ifndef FACULA_OPS_ONNX_PUT_H
#define FACULA_OPS_ONNX_PUT_H
#include "facula/op.h"

static inline const char *fac_onnx_unary(const fac_onnx_writer *w, const char *type, const char *x,
                                         const char *y) {
    return fac_onnx_put(w, type, 1, &x, y);
}
static inline const char *fac_onnx_binary(const fac_onnx_writer *w, const char *type, const char *a,
                                          const char *b, const char *y) {
    return fac_onnx_put(w, type, 2, (const char *[]){ a, b }, y);
}
/* The opset from which Cast has a type. */
static inline int fac_onnx_cast_since(fac_dtype dtype) {
    const int bits = fac_dtype_get(dtype)->bits;
    if (bits == 2) return 25;
    if (dtype == FAC_F8E8M0) return 24;
    if (bits == 4) return dtype == FAC_F4E2M1 ? 23 : 21;
    return fac_dtype_is_stored(dtype) ? 19 : 6;
}
static inline const char *fac_onnx_cast(const fac_onnx_writer *w, const char *x, fac_dtype to,
                                        const char *y) {
    y = fac_onnx_put(w, "Cast", 1, &x, y);
    fac_onnx_put_dtype(w, "to", to);
    return y;
}
#endif
