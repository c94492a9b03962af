/* Where elements stand in a list of keys: what label encoders, one-hot encoders and dictionaries
 * look up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/onnx_write.h"
#include "ops/ml/ml.h"
#include "tensor/tensor_internal.h"

#if FAC_INTERFACE
/* i64, dims of x: the place of each element of x in keys, a list of x's dtype; of equal keys the
 * first one.  NaN is equal to NaN.  An element that is no key has the place n after all of them;
 * must: it is an error. */
fac_value *fac_find_keys(fac_value *x, fac_value *keys, bool must);
#endif

typedef struct attrs {
    bool must;
} attrs;
static const fac_attr table[] = { { "must", FAC_A_FLAG, offsetof(attrs, must), 0, 0, 0, 0, NULL,
                                    "an element that is no key is an error" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, 0 }, { "keys", FAC_ANY, 0 }, { 0 } };

static bool infer(fac_node *n) {
    if (n->in[1]->type.dims.n != 1) return fac_fail(n, FAC_E_SHAPE, "keys must be a list");
    if (n->in[0]->type.dtype != n->in[1]->type.dtype)
        return fac_fail(n, FAC_E_DTYPE, "keys must be of the type of x");
    n->out[0]->type = (fac_type){ FAC_I64, n->in[0]->type.dims };
    return true;
}

/* An element in the type it is compared in. */
typedef struct key {
    double f;
    int64_t i;
    const char *t;
    int64_t at;
} key;

static key key_at(const fac_array *a, int64_t k) {
    key to = { .at = k };
    if (a->f) to.f = a->f[k];
    if (a->i) to.i = a->i[k];
    if (a->t) to.t = a->t[k];
    return to;
}

static int by_value(const key *a, const key *b) {
    if (a->t) return strcmp(a->t, b->t);
    if (isnan(a->f) || isnan(b->f)) return (isnan(a->f) != 0) - (isnan(b->f) != 0);
    if (a->f != b->f) return a->f < b->f ? -1 : 1;
    return (a->i > b->i) - (a->i < b->i);
}

static int by_value_and_place(const void *x, const void *y) {
    const key *a = x, *b = y;
    const int order = by_value(a, b);
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

/* The first of the keys that are equal to x; n: none is. */
static int64_t find(const key *keys, int64_t n, const key *x) {
    int64_t from = 0, to = n;
    while (from < to) {
        const int64_t middle = from + (to - from) / 2;
        if (by_value(&keys[middle], x) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from < n && !by_value(&keys[from], x) ? keys[from].at : n;
}

static fac_status no_key(const fac_array *x, int64_t k, fac_error *err) {
    if (x->t)
        return fac_raise(err, FAC_E_ARGUMENT, "find_keys: \"%s\" is none of the keys", x->t[k]);
    if (x->f) return fac_raise(err, FAC_E_ARGUMENT, "find_keys: %g is none of the keys", x->f[k]);
    return fac_raise(err, FAC_E_ARGUMENT, "find_keys: %lld is none of the keys",
                     (long long)x->i[k]);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const int64_t n = r->in[1].type.dims.d[0], count = fac_dims_count(&r->in[0].type.dims);
    key *keys = fac_alloc((size_t)n + 1, sizeof *keys);
    fac_status status = FAC_OK;
    if (!keys)
        return fac_raise(err, FAC_E_NOMEM, "find_keys: no memory for %lld keys", (long long)n);
    for (int64_t k = 0; k < n; k++) keys[k] = key_at(&r->in[1], k);
    qsort(keys, (size_t)n, sizeof *keys, by_value_and_place);
    for (int64_t k = 0; k < count && !status; k++) {
        const key x = key_at(&r->in[0], k);
        r->out[0].i[k] = find(keys, n, &x);
        if (r->out[0].i[k] == n && ((const attrs *)r->attrs)->must)
            status = no_key(&r->in[0], k, err);
    }
    fac_release(keys);
    return status;
}

/* A LabelEncoder from keys to places. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_value *keys = n->in[1];
    const char *x = fac_onnx_name(w, n->in[0]);
    fac_tensor *places = NULL, *none = NULL, *copy = NULL;
    if (!keys->tensor || ((const attrs *)n->attrs)->must) return false;
    const int64_t count = keys->type.dims.d[0];
    int64_t *numbers = fac_alloc((size_t)count + 1, sizeof *numbers);
    for (int64_t k = 0; numbers && k <= count; k++) numbers[k] = k;
    fac_onnx_put(w, FAC_ML ":LabelEncoder", 1, &x, fac_onnx_name(w, n->out[0]));
    if (numbers && !fac_tensor_new(NULL, FAC_I64, fac_shape(count), &places, NULL) && count)
        if (fac_tensor_write(places, numbers, (size_t)count * sizeof *numbers, NULL))
            fac_tensor_free(places), places = NULL;
    if (numbers && !fac_tensor_new(NULL, FAC_I64, fac_shape(1), &none, NULL))
        if (fac_tensor_write(none, &count, sizeof count, NULL)) fac_tensor_free(none), none = NULL;
    fac_release(numbers);
    if (fac_tensor_copy_contiguous(keys->tensor, &copy, NULL)) copy = NULL;
    fac_onnx_put_tensor(w, "keys_tensor", copy);
    fac_onnx_put_tensor(w, "values_tensor", places);
    fac_onnx_put_tensor(w, "default_tensor", none);
    return true;
}

static const fac_case cases[] = { { "find_keys(i64[7], i64{2,0,-1,0})", -2, 3, 0 },
                                  { "find_keys(f32[2,3]{1,0,1,1,0,1}, f32{0})", 0, 0, 0 },
                                  { "find_keys(text{\"b\",\"a\",\"\",\"c\"}, text{\"a\",\"b\"})", 0,
                                    0, 0 },
                                  { "find_keys(i64[0], i64{1})", 0, 0, 0 },
                                  { "find_keys(i32[], i32{1,2})", 0, 3, 0 },
                                  { 0 } };

extern const fac_op fac_op_find_keys;
const fac_op fac_op_find_keys = {
    .name = "find_keys",
    .doc = "the places of elements in a list of keys",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD | FAC_OP_PICKS | FAC_OP_TEXTS,
    .infer = infer,
    .ref = ref,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_find_keys(fac_value *x, fac_value *keys, bool must) {
    return fac_emit(&fac_op_find_keys, &(attrs){ must }, 2, (fac_value *[]){ x, keys });
}
