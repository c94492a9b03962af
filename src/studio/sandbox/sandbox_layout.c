/* The sandbox of tensors: shapes and strides over a storage, views of it, positions and indices,
 * broadcasting. */
#include <string.h>
#include "base/error.h"
#include "facula/ops.h"
#include "studio/sandbox/sandbox.h"

enum { SIZE = 16, STORAGE = 512 };

/* ---- a tensor and its views ---- */

static fac_status check_order(const fac_dims *order, int rank, fac_error *err) {
    unsigned seen = 0;
    for (int k = 0; k < order->n; k++)
        if (order->d[k] < rank) seen |= 1u << order->d[k];
    if (order->n != rank || seen != (1u << rank) - 1)
        return fac_raise(err, FAC_E_ARGUMENT, "order must name each of the %d dims once", rank);
    return FAC_OK;
}

/* A view of t with permuted dims; without an order, t itself. */
static fac_status permuted(fac_tensor *t, const fac_dims *order, fac_tensor **out, fac_error *err) {
    const fac_dims d = fac_tensor_type(t).dims;
    const int64_t *strides = fac_tensor_strides(t);
    fac_dims dims = { .n = d.n };
    int64_t by[FAC_DIMS];
    if (!order->n) {
        *out = fac_tensor_retain(t);
        return FAC_OK;
    }
    FAC_TRY(check_order(order, d.n, err));
    for (int k = 0; k < d.n; k++) {
        dims.d[k] = d.d[order->d[k]];
        by[k] = strides[order->d[k]];
    }
    return fac_tensor_view(t, dims, by, 0, out, err);
}

/* {"slice": [dim, start, end, step]}: every step-th of start .. end - 1. */
static fac_status sliced(fac_tensor *t, const fac_dims *s, fac_tensor **out, fac_error *err) {
    fac_dims d = fac_tensor_type(t).dims;
    int64_t by[FAC_DIMS];
    if (!s->n) {
        *out = fac_tensor_retain(t);
        return FAC_OK;
    }
    if (s->n != 4 || s->d[0] >= d.n || s->d[1] > s->d[2] || s->d[2] > d.d[s->d[0]] || s->d[3] < 1)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "slice must be dim, start, end, step, within that dim");
    memcpy(by, fac_tensor_strides(t), (size_t)d.n * sizeof *by);
    const int64_t k = s->d[0], offset = s->d[1] < d.d[k] ? s->d[1] * by[k] : 0;
    d.d[k] = (s->d[2] - s->d[1] + s->d[3] - 1) / s->d[3];
    by[k] *= s->d[3];
    return fac_tensor_view(t, d, by, offset, out, err);
}

/* Positions and values of the view's elements, in the order of their indices. */
static void write_elements(const fac_tensor *view, const double *storage, fac_text *to) {
    const fac_dims d = fac_tensor_type(view).dims;
    const int64_t *by = fac_tensor_strides(view), n = fac_dims_count(&d);
    const int64_t first = (const double *)fac_tensor_data(view) - storage;
    fac_json_put_key(to, "positions");
    fac_text_add(to, "[");
    for (int64_t i = 0; i < n; i++) {
        int64_t at = first, left = i;
        for (int k = d.n - 1; k >= 0; k--) {
            at += left % d.d[k] * by[k];
            left /= d.d[k];
        }
        fac_text_print(to, i ? ",%lld" : "%lld", (long long)at);
    }
    fac_text_add(to, "]");
    fac_json_put_pair(to, "offset", (double)first);
}

static fac_status views(fac_tensor *t, const fac_dims *order, const fac_dims *slice,
                        const double *storage, fac_text *to, fac_error *err) {
    fac_tensor *transposed = NULL, *view = NULL;
    fac_status status = permuted(t, order, &transposed, err);
    if (!status) status = sliced(transposed, slice, &view, err);
    if (!status) {
        const fac_dims d = fac_tensor_type(view).dims;
        fac_dims by = { .n = d.n };
        memcpy(by.d, fac_tensor_strides(view), (size_t)d.n * sizeof *by.d);
        fac_sandbox_put_dims(to, "shape", &d);
        fac_sandbox_put_dims(to, "strides", &by);
        fac_json_put_pair_bool(to, "contiguous", fac_tensor_contiguous(view));
        write_elements(view, storage, to);
    }
    fac_tensor_free(view);
    fac_tensor_free(transposed);
    return status;
}

/* With custom strides, the tensor is a view of a storage that is as long as they need. */
static fac_status new_tensor(const fac_dims *shape, const fac_dims *strides, int64_t *storage,
                             fac_tensor **out, fac_error *err) {
    fac_tensor *flat;
    int64_t last = 0;
    if (!strides->n) {
        *storage = fac_dims_count(shape);
        return fac_tensor_new(NULL, FAC_F64, *shape, out, err);
    }
    if (strides->n != shape->n)
        return fac_raise(err, FAC_E_ARGUMENT, "strides must have a number for each of the %d dims",
                         shape->n);
    for (int k = 0; k < shape->n; k++) last += (shape->d[k] - 1) * strides->d[k];
    *storage = last + 1;
    if (*storage > STORAGE)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "these strides need a storage of %lld numbers; here it has at most %d",
                         (long long)*storage, STORAGE);
    FAC_TRY(fac_tensor_new(NULL, FAC_F64, fac_shape(*storage), &flat, err));
    const fac_status status = fac_tensor_view(flat, *shape, strides->d, 0, out, err);
    fac_tensor_free(flat);
    return status;
}

fac_status fac_sandbox_layout(const cJSON *what, fac_text *to, fac_error *err) {
    fac_dims shape = fac_shape(2, 3, 4), strides = { 0 }, order = { 0 }, slice = { 0 };
    fac_tensor *t;
    int64_t storage = 0;
    FAC_TRY(fac_sandbox_dims(what, "shape", 1, SIZE, &shape, err));
    FAC_TRY(fac_sandbox_dims(what, "strides", 0, STORAGE, &strides, err));
    FAC_TRY(fac_sandbox_dims(what, "order", 0, SANDBOX_RANK - 1, &order, err));
    FAC_TRY(fac_sandbox_dims(what, "slice", 0, SIZE, &slice, err));
    if (fac_dims_count(&shape) > STORAGE)
        return fac_raise(err, FAC_E_ARGUMENT, "a tensor must not have more than %d elements here",
                         STORAGE);
    FAC_TRY(new_tensor(&shape, &strides, &storage, &t, err));
    const fac_status status = views(t, &order, &slice, fac_tensor_data(t), to, err);
    fac_json_put_pair(to, "storage", (double)storage);
    fac_tensor_free(t);
    return status;
}

/* ---- broadcasting ---- */

/* Broadcasts two tensors whose elements are their own positions, so the results show which element
 * is used where. */
static fac_status build(fac_graph *g, const fac_dims *a, const fac_dims *b, fac_dims *shape,
                        fac_error *err) {
    fac_value *x = fac_input(g, "a", FAC_F64, *a), *y = fac_input(g, "b", FAC_F64, *b);
    fac_value *sum = fac_add(x, y), *zero = fac_mul(sum, fac_number(g, FAC_F64, 0));
    FAC_TRY(fac_graph_check(g, err));
    *shape = fac_value_type(sum).dims;
    fac_output(g, "at_a", fac_add(x, zero));
    fac_output(g, "at_b", fac_add(y, zero));
    return fac_graph_check(g, err);
}

static fac_status count(const fac_dims *d, fac_tensor **out, fac_error *err) {
    double x[STORAGE];
    for (int i = 0; i < STORAGE; i++) x[i] = i;
    return fac_sandbox_tensor(*d, x, out, err);
}

fac_status fac_sandbox_broadcast(const cJSON *what, fac_text *to, fac_error *err) {
    fac_dims a = fac_shape(3, 1), b = fac_shape(4), shape = { 0 };
    fac_tensor *in[2] = { NULL }, *out[2] = { NULL };
    fac_device *device = NULL;
    FAC_TRY(fac_sandbox_dims(what, "a", 1, SIZE, &a, err));
    FAC_TRY(fac_sandbox_dims(what, "b", 1, SIZE, &b, err));
    if (fac_dims_count(&a) > STORAGE || fac_dims_count(&b) > STORAGE)
        return fac_raise(err, FAC_E_ARGUMENT, "a tensor must not have more than %d elements here",
                         STORAGE);
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise_memory(err, "a graph");
    fac_status status = build(g, &a, &b, &shape, err);
    if (!status && fac_dims_count(&shape) > SANDBOX_NUMBERS)
        status =
            fac_raise(err, FAC_E_ARGUMENT, "the result has more than %d elements", SANDBOX_NUMBERS);
    if (!status) status = count(&a, &in[0], err);
    if (!status) status = count(&b, &in[1], err);
    if (!status) status = fac_sandbox_run(g, &device, in, out, err);
    if (!status) {
        fac_sandbox_put_dims(to, "shape", &shape);
        fac_sandbox_put_tensor(to, "a", out[0]);
        fac_sandbox_put_tensor(to, "b", out[1]);
    }
    for (int k = 0; k < 2; k++) {
        fac_tensor_free(in[k]);
        fac_tensor_free(out[k]);
    }
    fac_device_free(device);
    fac_graph_free(g);
    return status;
}
