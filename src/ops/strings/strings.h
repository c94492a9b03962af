/* What ops that make texts share. */
#ifndef FACULA_OPS_STRINGS_H
#define FACULA_OPS_STRINGS_H
#include "facula/op.h"
#include "facula/ops.h"

/* A new tensor of texts, which are copied. */
fac_status fac_strings_tensor(fac_dims dims, char *const *texts, fac_tensor **out, fac_error *err);
/* Its elements; of NULL there are none. */
static inline char *const *fac_strings_of(const fac_tensor *t) {
    return t ? fac_tensor_data(t) : NULL;
}
static inline int64_t fac_strings_count(const fac_tensor *t) {
    const fac_type type = t ? fac_tensor_type(t) : (fac_type){ .dims = { 1, { 0 } } };
    return fac_dims_count(&type.dims);
}
/* The texts of a constant input as an attribute; false: it is none. */
bool fac_strings_put(const fac_onnx_writer *w, const char *attr, const fac_value *v);
#endif
