/* See strings.h. */
#include "ops/strings/strings.h"
#include "graph/onnx_write.h"

fac_status fac_strings_tensor(fac_dims dims, char *const *texts, fac_tensor **out, fac_error *err) {
    const int64_t n = fac_dims_count(&dims);
    fac_tensor *t = NULL;
    fac_status status = fac_tensor_new(NULL, FAC_TEXT, dims, &t, err);
    if (!status && n) status = fac_tensor_write(t, texts, (size_t)n * sizeof *texts, err);
    if (status)
        fac_tensor_free(t);
    else
        *out = t;
    return status;
}

bool fac_strings_put(const fac_onnx_writer *w, const char *attr, const fac_value *v) {
    if (!v->tensor || v->type.dims.n != 1) return false;
    fac_onnx_put_texts(w, attr, (int)v->type.dims.d[0], fac_tensor_data(v->tensor));
    return true;
}
