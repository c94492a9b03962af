/* Contents of two tensors: the same bits, a hash of them, or how far apart. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/optional.h"
#include "report/diff/match.h"
#include "tensor/tensor_internal.h"

/* A contiguous tensor in host memory with t's contents: one more reference, or a copy. */
static fac_status plain(const fac_tensor *t, fac_tensor **out, fac_error *err) {
    if (!fac_tensor_contiguous(t) || !fac_tensor_data(t))
        return fac_tensor_copy_contiguous(t, out, err);
    *out = fac_tensor_retain((fac_tensor *)(uintptr_t)t);
    return FAC_OK;
}

static bool texts_equal(const char *const *x, const char *const *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(fac_text_or(x[i], ""), fac_text_or(y[i], ""))) return false;
    return true;
}

bool fac_contents_equal(const fac_tensor *x, const fac_tensor *y) {
    const fac_type t = fac_tensor_type(x), u = fac_tensor_type(y);
    fac_tensor *a = NULL, *b = NULL;
    if (x == y) return true;
    if (t.dtype != u.dtype || !fac_dims_equal(&t.dims, &u.dims)) return false;
    const size_t bytes = fac_type_bytes(&t);
    bool same = !plain(x, &a, NULL) && !plain(y, &b, NULL);
    const void *p = same ? fac_tensor_data(a) : NULL;
    const void *q = same ? fac_tensor_data(b) : NULL;
    if (same && t.dtype == FAC_TEXT)
        same = texts_equal(p, q, bytes / sizeof(char *));
    else if (same && bytes)
        same = p == q || !memcmp(p, q, bytes);
    fac_tensor_free(a);
    fac_tensor_free(b);
    return same;
}

fac_hash fac_contents_hash(fac_hash h, const fac_value *v) {
    fac_tensor *t = NULL;
    const size_t bytes = fac_type_bytes(&v->type);
    h = fac_hash_int(h, v->type.dtype);
    for (int k = 0; k < v->type.dims.n; k++) h = fac_hash_int(h, (uint64_t)v->type.dims.d[k]);
    if (!v->tensor || v->type.dtype == FAC_TEXT) return v->tensor ? h : fac_const_hash(h, v);
    if (plain(v->tensor, &t, NULL))
        return fac_hash_int(h, (uint64_t)(uintptr_t)v); /* without memory it equals no other */
    h = fac_hash_bytes(h, fac_tensor_data(t), bytes);
    fac_tensor_free(t);
    return h;
}

static void compare(const double *x, const double *y, int n, double *largest, double *count) {
    for (int i = 0; i < n; i++) {
        if (x[i] == y[i] || (isnan(x[i]) && isnan(y[i]))) continue;
        const double off = fabs(x[i] - y[i]);
        ++*count;
        if (!(off <= *largest)) *largest = isnan(off) ? INFINITY : off;
    }
}

fac_status fac_contents_compare(const fac_tensor *x, const fac_tensor *y, double *largest,
                                double *share, fac_error *err) {
    enum { BLOCK = 512 };
    const fac_type t = fac_tensor_type(x), u = fac_tensor_type(y);
    const size_t wide = (size_t)fac_dtype_get(t.dtype)->block_bytes,
                 wide_y = (size_t)fac_dtype_get(u.dtype)->block_bytes;
    const int64_t n = fac_dims_count(&t.dims);
    double p[BLOCK], q[BLOCK], count = 0, most = 0;
    fac_tensor *a = NULL, *b = NULL;
    if (t.dtype == FAC_TEXT || u.dtype == FAC_TEXT || t.dtype == FAC_BIT || u.dtype == FAC_BIT ||
        fac_contents_equal(x, y)) {
        *share = fac_contents_equal(x, y) ? 0 : 1;
        *largest = 0;
        return FAC_OK;
    }
    fac_status status = plain(x, &a, err);
    if (!status) status = plain(y, &b, err);
    for (int64_t at = 0; at < n && !status; at += BLOCK) {
        const int now = n - at < BLOCK ? (int)(n - at) : BLOCK;
        fac_convert(FAC_F64, p, t.dtype, (const char *)fac_tensor_data(a) + (size_t)at * wide,
                    (size_t)now);
        fac_convert(FAC_F64, q, u.dtype, (const char *)fac_tensor_data(b) + (size_t)at * wide_y,
                    (size_t)now);
        compare(p, q, now, &most, &count);
    }
    fac_tensor_free(a);
    fac_tensor_free(b);
    if (status) return status;
    *largest = most;
    *share = n ? count / (double)n : 0;
    return FAC_OK;
}
