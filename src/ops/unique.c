/* The different elements of a tensor, or slices of it.  How many there are is data: it runs at a
 * cut. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/onnx_write.h"
#include "ops/lines.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* y: the different elements of x, any dtype, as a list; or its different slices along an axis.
 * sorted: ascending (NaN last, NaNs are one), else in the order in which they come first.  Outputs
 * 1 to 3 (fac_value_other), i64 lists: where each of y comes first in x; for each element (slice)
 * of x its place in y; how often each of y is there. */
fac_value *fac_unique(fac_value *x, bool sorted);
fac_value *fac_unique_slices(fac_value *x, int axis, bool sorted);
#endif

typedef struct attrs {
    int64_t axis;
    bool slices, unsorted;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "of slices: across which axis" },
                                  { "slices", FAC_A_FLAG, offsetof(attrs, slices), 0, 0, 0, 0, NULL,
                                    "different slices, not elements" },
                                  { "unsorted", FAC_A_FLAG, offsetof(attrs, unsorted), 0, 0, 0, 0,
                                    NULL, "in the order in which they come first" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, 0 }, { 0 } };
static const fac_port out[] = { { "y", FAC_ANY, 0 },
                                { "first", FAC_INTS, 0 },
                                { "places", FAC_INTS, 0 },
                                { "counts", FAC_INTS, 0 },
                                { 0 } };
enum { Y, FIRST, PLACES, COUNTS };

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims;
    const int axis = a->slices ? fac_axis(a->axis, x->n) : 0;
    const int64_t found = fac_symbol(n->graph, NULL);
    if (n->in[0]->type.dtype == FAC_BIT)
        return fac_fail(n, FAC_E_DTYPE, "bits must be bools first");
    if (axis < 0) return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims", (long long)a->axis, x->n);
    const int64_t all = fac_dims_count(x);
    n->out[Y]->type = (fac_type){ n->in[0]->type.dtype, fac_shape(found) };
    n->out[PLACES]->type =
        (fac_type){ FAC_I64, fac_shape(all >= 0 ? all : fac_symbol(n->graph, NULL)) };
    if (a->slices) {
        n->out[Y]->type.dims = *x;
        n->out[Y]->type.dims.d[axis] = found;
        n->out[PLACES]->type.dims = fac_shape(x->d[axis]);
    }
    n->out[FIRST]->type = n->out[COUNTS]->type = (fac_type){ FAC_I64, fac_shape(found) };
    return true;
}

/* ---- order ---- */

/* x as slices: slice k has `outer` pieces of `inner` elements, `size` of which lie between two of
 * them. */
typedef struct slices {
    fac_lines l;
    fac_dtype dtype;
    const double *f;
    const int64_t *i;
    char *const *t;
} slices;
typedef struct item {
    const slices *of;
    int64_t at;
} item;

static int compare_reals(double a, double b) {
    if (isnan(a) || isnan(b)) return (isnan(a) != 0) - (isnan(b) != 0);
    return (a > b) - (a < b);
}

static int compare_at(const slices *s, int64_t a, int64_t b) {
    if (s->t) return strcmp(s->t[a], s->t[b]);
    if (s->f) return compare_reals(s->f[a], s->f[b]);
    if (s->dtype == FAC_U64)
        return ((uint64_t)s->i[a] > (uint64_t)s->i[b]) - ((uint64_t)s->i[a] < (uint64_t)s->i[b]);
    return (s->i[a] > s->i[b]) - (s->i[a] < s->i[b]);
}

static int by_contents(const item *x, const item *y) {
    const fac_lines *l = &x->of->l;
    for (int64_t o = 0; o < l->outer; o++)
        for (int64_t i = 0; i < l->inner; i++) {
            const int64_t base = o * l->size * l->inner + i;
            const int order = compare_at(x->of, base + x->at * l->inner, base + y->at * l->inner);
            if (order) return order;
        }
    return 0;
}

static int in_order(const void *x, const void *y) {
    const item *a = x, *b = y;
    const int order = by_contents(a, b);
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

/* ---- what is found ---- */

/* Of each group of equal slices, sorted: where it comes first, how often; of each slice its group.
 */
typedef struct found {
    int64_t *first, *counts, *places, n;
} found;

static void group(const item *items, int64_t n, found *f) {
    for (int64_t k = 0; k < n; k++) {
        if (!k || by_contents(&items[k - 1], &items[k])) {
            f->first[f->n] = items[k].at;
            f->counts[f->n++] = 0;
        }
        f->counts[f->n - 1]++;
        f->places[items[k].at] = f->n - 1;
    }
}

/* Groups in the order in which they come first; `rank` has room for all. */
static void reorder(found *f, int64_t n, int64_t *rank, int64_t *copy) {
    int64_t next = 0;
    for (int64_t k = 0; k < n; k++)
        if (f->first[f->places[k]] == k) rank[f->places[k]] = next++;
    memcpy(copy, f->counts, (size_t)f->n * sizeof *copy);
    for (int64_t k = 0; k < f->n; k++) f->counts[rank[k]] = copy[k];
    memcpy(copy, f->first, (size_t)f->n * sizeof *copy);
    for (int64_t k = 0; k < f->n; k++) f->first[rank[k]] = copy[k];
    for (int64_t k = 0; k < n; k++) f->places[k] = rank[f->places[k]];
}

/* ---- results ---- */

static fac_status put_list(const int64_t *from, int64_t n, fac_tensor **to, fac_error *err) {
    FAC_TRY(fac_tensor_new(NULL, FAC_I64, fac_shape(n), to, err));
    return n ? fac_tensor_write(*to, from, (size_t)n * sizeof *from, err) : FAC_OK;
}

static fac_status put_slices(const fac_tensor *x, const fac_lines *l, const found *f, fac_dims d,
                             fac_tensor **to, fac_error *err) {
    const fac_type type = fac_tensor_type(x);
    const size_t size =
        type.dtype == FAC_TEXT ? sizeof(char *) : (size_t)fac_dtype_get(type.dtype)->block_bytes;
    const size_t piece = (size_t)l->inner * size, bytes = (size_t)(l->outer * f->n) * piece;
    const char *from = fac_tensor_data(x);
    char *all = fac_alloc(bytes + 1, 1);
    if (!all) return fac_raise(err, FAC_E_NOMEM, "unique: no memory for %zu bytes", bytes);
    for (int64_t o = 0; o < l->outer; o++)
        for (int64_t k = 0; k < f->n && piece; k++)
            memcpy(all + (size_t)(o * f->n + k) * piece,
                   from + (size_t)(o * l->size + f->first[k]) * piece, piece);
    fac_status status = fac_tensor_new(NULL, type.dtype, d, to, err);
    if (!status && bytes) status = fac_tensor_write(*to, all, bytes, err);
    fac_release(all);
    return status;
}

static fac_status put_all(const attrs *a, const fac_tensor *x, const fac_lines *l, const found *f,
                          fac_tensor *y[], fac_error *err) {
    fac_dims d = fac_shape(f->n);
    if (a->slices) {
        d = fac_tensor_type(x).dims;
        d.d[fac_axis(a->axis, d.n)] = f->n;
    }
    FAC_TRY(put_slices(x, l, f, d, &y[Y], err));
    FAC_TRY(put_list(f->first, f->n, &y[FIRST], err));
    FAC_TRY(put_list(f->places, l->size, &y[PLACES], err));
    return put_list(f->counts, f->n, &y[COUNTS], err);
}

static fac_status search(const attrs *a, const fac_tensor *x, const slices *s, fac_tensor *y[],
                         fac_error *err) {
    const int64_t n = s->l.size;
    item *items = fac_alloc((size_t)n + 1, sizeof *items);
    int64_t *all = fac_alloc(5 * (size_t)n + 1, sizeof *all);
    found f = { all, all + n, all + 2 * n, 0 };
    fac_status status = items && all ? FAC_OK
                                     : fac_raise(err, FAC_E_NOMEM,
                                                 "unique: no memory for %lld places", (long long)n);
    for (int64_t k = 0; k < n && !status; k++) items[k] = (item){ s, k };
    if (!status) {
        qsort(items, (size_t)n, sizeof *items, in_order);
        group(items, n, &f);
        if (a->unsorted) reorder(&f, n, all + 3 * n, all + 4 * n);
        status = put_all(a, x, &s->l, &f, y, err);
    }
    fac_release(items);
    fac_release(all);
    return status;
}

static fac_status host(const fac_node *node, fac_tensor *const in_[], fac_tensor *y[],
                       fac_error *err) {
    const attrs *a = node->attrs;
    const fac_type x = fac_tensor_type(in_[0]);
    const char kind = fac_dtype_get(x.dtype)->kind;
    fac_tensor *wide = NULL;
    slices s = { .dtype = x.dtype, .l = { 1, fac_dims_count(&x.dims), 1 } };
    if (a->slices) s.l = fac_lines_of(&x.dims, fac_axis(a->axis, x.dims.n));
    fac_status status =
        kind == 't' ? FAC_OK
                    : fac_tensor_convert(in_[0], kind == 'f' ? FAC_F64 : FAC_I64, &wide, err);
    if (kind == 't')
        s.t = fac_tensor_data(in_[0]);
    else if (!status && kind == 'f')
        s.f = fac_tensor_data(wide);
    else if (!status)
        s.i = fac_tensor_data(wide);
    if (!status) status = search(a, in_[0], &s, y, err);
    for (int k = 0; k < 4 && status; k++) {
        fac_tensor_free(y[k]);
        y[k] = NULL;
    }
    fac_tensor_free(wide);
    return status;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const bool sorted = fac_onnx_int(n, "sorted", 1) != 0, slices_ = fac_onnx_has(n, "axis");
    const int64_t axis = fac_onnx_int(n, "axis", 0);
    (void)g;
    y[0] = slices_ ? fac_unique_slices(x[0], (int)axis, sorted) : fac_unique(x[0], sorted);
    for (int k = 1; k < n->nout && k < 4; k++) y[k] = fac_value_other(y[0], k);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const char *x = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    fac_onnx_put(w, "Unique", 1, &x, y ? y : fac_onnx_fresh(w));
    for (int k = 1; k < 4; k++) fac_onnx_put_out(w, fac_onnx_name(w, n->out[k]));
    fac_onnx_put_int(w, "sorted", !a->unsorted);
    if (a->slices) fac_onnx_put_int(w, "axis", a->axis);
    return true;
}

static const fac_onnx onnx[] = { { "", "Unique", 11, 0, NULL, load, 1 }, { 0 } };
static const fac_case cases[] = { { "unique(i64{2,1,1,3,4,3})", 0, 0, 0 },
                                  { "unique(f32{2,1,1,3,4,3}) unsorted", 0, 0, 0 },
                                  { "unique(i32[3,3]{1,0,0,1,0,0,2,3,4}) slices", 0, 0, 0 },
                                  { "unique(text{\"b\",\"a\",\"b\"})", 0, 0, 0 },
                                  { "unique(f32[0,3]) slices axis=1", 0, 0, 0 },
                                  { "unique(f32[])", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_unique;
const fac_op fac_op_unique = {
    .name = "unique",
    .doc = "different elements or slices",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD | FAC_OP_DYNAMIC | FAC_OP_PICKS,
    .infer = infer,
    .host = host,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_unique(fac_value *x, bool sorted) {
    return fac_emit(&fac_op_unique, &(attrs){ .unsorted = !sorted }, 1, &x);
}
fac_value *fac_unique_slices(fac_value *x, int axis, bool sorted) {
    return fac_emit(&fac_op_unique, &(attrs){ axis, true, !sorted }, 1, &x);
}
