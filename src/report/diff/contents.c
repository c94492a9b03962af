/* Contents of two tensors: the same bits, a hash of them, or how far apart. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/optional.h"
#include "report/apart.h"
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

bool fac_diff_same_contents(const fac_tensor *x, const fac_tensor *y) {
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

/* Differences of blocks of numbers, summed up. */
typedef struct apart {
    double largest, count;
} apart;

static void add_one(apart *s, double off) {
    s->count++;
    if (!(off <= s->largest)) s->largest = isnan(off) ? INFINITY : off;
}

static void compare_wide(const fac_tensor *a, const fac_tensor *b, int64_t n, apart *s) {
    const fac_dtype d = fac_tensor_type(a).dtype;
    const void *p = fac_tensor_data(a), *q = fac_tensor_data(b);
    for (int64_t k = 0; k < n; k++)
        if (fac_wide_at(p, k) != fac_wide_at(q, k)) add_one(s, fac_wide_apart(d, p, q, k));
}

/* n elements from `at` on, the beginning of a block of their type. */
static void doubles(const fac_tensor *t, int64_t at, int n, double *to) {
    const fac_dtype d = fac_tensor_type(t).dtype;
    const fac_dtype_info *i = fac_dtype_get(d);
    const size_t block = (size_t)at / (size_t)i->block_elements;
    fac_convert(FAC_F64, to, d, (const char *)fac_tensor_data(t) + block * (size_t)i->block_bytes,
                (size_t)n);
}

static void compare_doubles(const fac_tensor *a, const fac_tensor *b, int64_t n, apart *s) {
    enum { PIECE = 512 }; /* whole blocks of every type */
    double x[PIECE], y[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        const int now = n - at < PIECE ? (int)(n - at) : PIECE;
        doubles(a, at, now, x);
        doubles(b, at, now, y);
        for (int i = 0; i < now; i++)
            if (x[i] != y[i] && !(isnan(x[i]) && isnan(y[i]))) add_one(s, fabs(x[i] - y[i]));
    }
}

fac_status fac_contents_compare(const fac_tensor *x, const fac_tensor *y, double *largest,
                                double *share, fac_error *err) {
    const fac_dtype d = fac_tensor_type(x).dtype, e = fac_tensor_type(y).dtype;
    const fac_dims dims = fac_tensor_type(x).dims;
    const int64_t n = fac_dims_count(&dims);
    fac_tensor *a = NULL, *b = NULL;
    apart s = { 0 };
    const bool same = fac_diff_same_contents(x, y);
    if (same || d == FAC_TEXT || e == FAC_TEXT || d == FAC_BIT || e == FAC_BIT) {
        *share = same ? 0 : 1;
        *largest = 0;
        return FAC_OK;
    }
    fac_status status = plain(x, &a, err);
    if (!status) status = plain(y, &b, err);
    if (!status && d == e && fac_is_wide(d))
        compare_wide(a, b, n, &s);
    else if (!status)
        compare_doubles(a, b, n, &s);
    fac_tensor_free(a);
    fac_tensor_free(b);
    if (status) return status;
    *largest = s.largest;
    *share = n ? s.count / (double)n : 0;
    return FAC_OK;
}
