/* What all reductions share, see reduce.h. */
#include <string.h>
#include "ops/cost.h"
#include "ops/host_list.h"
#include "ops/known.h"
#include "ops/reduce.h"
#include "op_list.h"

#define AT(field) offsetof(fac_reduce_attrs, field)
const fac_attr fac_reduce_table[] = {
    { "keep", FAC_A_FLAG, AT(keep), 0, 0, 0, 0, NULL, "reduced dims stay, as 1" },
    { "noop_with_empty_axes", FAC_A_FLAG, AT(noop_with_empty_axes), 0, 0, 0, 0, NULL,
      "no axes: none instead of all" },
    { 0 }
};
#undef AT

const fac_port fac_reduce_num_in[] = { { "x", FAC_NUMBERS, 0 },
                                       { "axes", FAC_INTS, FAC_OPTIONAL | FAC_HOST },
                                       { 0 } };
const fac_port fac_reduce_num_out[] = { { "y", FAC_NUMBERS, 0 }, { 0 } };
const fac_port fac_reduce_any_in[] = { { "x", FAC_NUMBERS | FAC_BOOLS, 0 },
                                       { "axes", FAC_INTS, FAC_OPTIONAL | FAC_HOST },
                                       { 0 } };
const fac_port fac_reduce_any_out[] = { { "y", FAC_NUMBERS | FAC_BOOLS, 0 }, { 0 } };

/* count axes of a tensor of this rank as bits; -1 - k: the k-th is out of range or was there
 * before. */
static int mask_of(const fac_reduce_attrs *a, int rank, int count, const int64_t *axes,
                   unsigned *mask) {
    unsigned m = 0;
    if (count == 0 && !a->noop_with_empty_axes) m = (1u << rank) - 1;
    for (int k = 0; k < count; k++) {
        int axis = fac_axis(axes[k], rank);
        if (axis < 0 || (m >> axis & 1)) return -1 - k;
        m |= 1u << axis;
    }
    *mask = m;
    return 0;
}

bool fac_reduce_axes(const fac_node *n, unsigned *mask) {
    const fac_value *axes = n->in[1];
    fac_contents c = { 0 };
    if (axes && fac_host_length(axes) != 0 && !fac_host_numbers(n, 1, &c)) return false;
    return mask_of(n->attrs, n->in[0]->type.dims.n, c.n, c.v, mask) == 0;
}

bool fac_reduce_infer(fac_node *n) {
    const fac_reduce_attrs *a = n->attrs;
    const fac_value *axes = n->in[1];
    fac_type x = n->in[0]->type, y = { x.dtype, { 0 } };
    fac_contents c = { 0 };
    int count = axes ? fac_host_length(axes) : 0;
    if (axes && axes->type.dims.n > 1)
        return fac_fail(n, FAC_E_SHAPE, "axes must be a list of integers");
    if (count != 0 &&
        !fac_host_numbers(n, 1, &c)) { /* which dims shrink is not known, only how many */
        if (!a->keep && fac_list_is_open(axes)) return fac_rankless(n->out[0], x.dtype), true;
        if (!a->keep && count < 0)
            return fac_fail(n, FAC_E_UNSUPPORTED, "more than %d axes", FAC_KNOWN);
        y.dims.n = a->keep ? x.dims.n : x.dims.n - count;
        if (y.dims.n < 0)
            return fac_fail(n, FAC_E_SHAPE, "%d axes of a tensor with %d dims", count, x.dims.n);
        for (int k = 0; k < y.dims.n; k++) y.dims.d[k] = fac_symbol(n->graph, NULL);
        n->out[0]->type = y;
        return true;
    }
    unsigned mask = 0;
    int bad = mask_of(a, x.dims.n, c.n, c.v, &mask);
    if (bad < 0)
        return fac_fail(n, FAC_E_SHAPE,
                        "axis %lld of a tensor with %d dims is out of range or there twice",
                        (long long)c.v[-1 - bad], x.dims.n);
    for (int k = 0; k < x.dims.n; k++) {
        if (!(mask >> k & 1))
            y.dims.d[y.dims.n++] = x.dims.d[k];
        else if (a->keep)
            y.dims.d[y.dims.n++] = 1;
    }
    n->out[0]->type = y;
    return true;
}

void fac_reduce_cost(const fac_node *n, fac_cost *cost) { fac_cost_each(n, 1, cost); }

fac_value *fac_reduce_emit(const fac_op *op, fac_value *x, fac_dims axes, bool keep) {
    fac_value *list = axes.n ? fac_ints(fac_value_graph(x), axes) : NULL;
    return fac_emit(op, &(fac_reduce_attrs){ keep, false }, 2, (fac_value *[]){ x, list });
}

fac_value *fac_reduce_real(fac_value *x) {
    return fac_dtype_get(fac_value_type(x).dtype)->kind == 'f' ? x : fac_cast(x, FAC_F64);
}

int64_t fac_reduce_fold(const fac_ref *r, const fac_fold *how) {
    const fac_array *axes = &r->in[1];
    unsigned mask = 0;
    int count = axes->i ? (int)fac_dims_count(&axes->type.dims) : 0;
    mask_of(r->attrs, r->in[0].type.dims.n, count, count ? axes->i : NULL, &mask);
    return fac_reduce_fold_axes(r, mask, how);
}

int64_t fac_reduce_fold_axes(const fac_ref *r, unsigned mask, const fac_fold *how) {
    const fac_array *x = &r->in[0], *y = &r->out[0];
    const fac_dims *d = &x->type.dims;
    int64_t total = fac_dims_count(d), results = fac_dims_count(&y->type.dims),
            at[FAC_DIMS] = { 0 }, step[FAC_DIMS], to = 0;
    for (int64_t i = 0; i < results; i++) {
        if (y->f)
            y->f[i] = how->start_real;
        else
            y->i[i] = how->start_whole;
    }
    int64_t stride = 1;
    for (int k = d->n - 1; k >= 0; k--) { /* a step along a reduced axis stays at the same result */
        step[k] = mask >> k & 1 ? 0 : stride;
        if (step[k]) stride *= d->d[k];
    }
    for (int64_t i = 0; i < total; i++) {
        if (y->f)
            y->f[to] = how->real(y->f[to], x->f[i]);
        else
            y->i[to] = how->whole(y->i[to], x->i[i]);
        for (int k = d->n - 1; k >= 0; k--) {
            to += step[k];
            if (++at[k] < d->d[k]) break;
            to -= step[k] * d->d[k];
            at[k] = 0;
        }
    }
    return results ? total / results : 0;
}

const fac_onnx_attr fac_reduce_spellings[] = { { "keepdims", "keep" }, { "axes", NULL }, { 0 } };

/* Axes are an input since opset 13 (ReduceSum) or 18, and were an attribute before.  keepdims is 1
 * unless it is said. */
void fac_reduce_load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                     fac_value *out[]) {
    static const struct {
        const char *type;
        const fac_op *op;
    } ops[] = { { "ReduceSum", &fac_op_sum },
                { "ReduceMean", &fac_op_mean },
                { "ReduceMax", &fac_op_reduce_max },
                { "ReduceMin", &fac_op_reduce_min },
                { "ReduceProd", &fac_op_reduce_prod },
                { "ReduceL1", &fac_op_reduce_l1 },
                { "ReduceL2", &fac_op_reduce_l2 },
                { "ReduceLogSum", &fac_op_reduce_log_sum },
                { "ReduceLogSumExp", &fac_op_reduce_log_sum_exp },
                { "ReduceSumSquare", &fac_op_reduce_sum_square } };
    size_t k = 0;
    while (k + 1 < sizeof ops / sizeof *ops && strcmp(ops[k].type, n->type)) k++;
    fac_reduce_attrs a = { fac_onnx_int(n, "keepdims", 1),
                           fac_onnx_int(n, "noop_with_empty_axes", 0) };
    fac_value *axes = n->nin > 1 ? in[1] : NULL;
    if (fac_onnx_has(n, "axes")) {
        fac_dims list = fac_onnx_ints(n, "axes");
        axes = list.n ? fac_ints(g, list) : NULL;
    }
    out[0] = fac_emit(ops[k].op, &a, 2, (fac_value *[]){ in[0], axes });
}

bool fac_reduce_save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_reduce_attrs *a = n->attrs;
    const char *type = n->op->onnx->type;
    const bool listed = w->opset >= (strcmp(type, "ReduceSum") ? 18 : 13);
    const bool empty = !n->in[1] || fac_host_length(n->in[1]) == 0;
    fac_contents axes = { 0 };
    if (!listed && !empty && !fac_host_numbers(n, 1, &axes)) return false;
    if (!listed && empty && a->noop_with_empty_axes) return false;
    const char *in[] = { fac_onnx_name(w, n->in[0]),
                         listed ? fac_onnx_list_of(w, n->in[1]) : NULL };
    fac_onnx_put(w, type, 2, in, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "keepdims", a->keep);
    if (listed && a->noop_with_empty_axes) fac_onnx_put_int(w, "noop_with_empty_axes", 1);
    if (axes.n) fac_onnx_put_ints(w, "axes", axes.n, axes.v);
    return true;
}

bool fac_reduce_save_global(const fac_onnx_writer *w, const fac_node *n, const char *type) {
    const fac_reduce_attrs *a = n->attrs;
    const fac_type *x = &n->in[0]->type;
    unsigned mask = 0;
    const bool floats = x->dtype == FAC_F32 || x->dtype == FAC_F64 || x->dtype == FAC_F16;
    if (!a->keep || !floats || x->dims.n < 3 || !fac_reduce_axes(n, &mask) ||
        mask != (1u << x->dims.n) - 4)
        return false;
    fac_onnx_put(w, type, 1, (const char *[]){ fac_onnx_name(w, n->in[0]) },
                 fac_onnx_name(w, n->out[0]));
    return true;
}
