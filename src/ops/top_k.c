/* The k largest (or smallest) elements along one axis and where they lie. */
#include "base/error.h"
#include "base/memory.h"
#include "graph/onnx_write.h"
#include "op_list.h"
#include "ops/cost.h"
#include "ops/host_list.h"
#include "ops/lines.h"
#include "ops/order.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* y = the k largest elements of each line of x along an axis, the largest first, of equals the one
 * with the lower index; NaN is above all numbers, as in torch.  Output 1 (fac_value_other(y, 1)):
 * their indices, i64.  smallest: the other end.  The axis gets the size k, which must not exceed
 * it.  Floats and integers. */
fac_value *fac_top_k(fac_value *x, int64_t k, int axis, bool smallest);
#endif

typedef struct attrs {
    int64_t axis;
    bool smallest;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "the axis searched" },
                                  { "smallest", FAC_A_FLAG, offsetof(attrs, smallest), 0, 0, 0, 0,
                                    NULL, "the smallest elements instead" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_NUMBERS, 0 }, { "k", FAC_INTS, FAC_HOST }, { 0 } };
static const fac_port out[] = { { "y", FAC_NUMBERS, 0 },
                                { "indices", FAC_INTS, FAC_OPTIONAL },
                                { 0 } };

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type;
    fac_contents k;
    int axis = fac_lines_axis(n, ((const attrs *)n->attrs)->axis);
    if (axis < 0) return false;
    if (!fac_may_be_one(n->in[1])) return fac_fail(n, FAC_E_SHAPE, "k must be one number");
    const bool known = fac_known(n->in[1], &k);
    const int64_t size = x->dims.n ? x->dims.d[axis] : 1;
    if (known && !k.symbolic && k.v[0] < 0)
        return fac_fail(n, FAC_E_ARGUMENT, "k is %lld: it is a number of elements",
                        (long long)k.v[0]);
    if (known && !k.symbolic && size >= 0 && k.v[0] > size)
        return fac_fail(n, FAC_E_ARGUMENT, "k is %lld, but axis %d has no more than %lld elements",
                        (long long)k.v[0], axis, (long long)size);
    fac_dims y = x->dims;
    if (y.n) y.d[axis] = known ? k.v[0] : fac_symbol(n->graph, NULL);
    n->out[0]->type = (fac_type){ x->dtype, y };
    n->out[1]->type = (fac_type){ FAC_I64, y };
    return true;
}

/* Whether element a of x comes before b. */
static bool before(const fac_array *x, bool smallest, int64_t a, int64_t b) {
    if (!smallest) return fac_above(x, a, b);
    return x->f ? fac_real_above(x->f[b], x->f[a]) : fac_int_above(x->type.dtype, x->i[b], x->i[a]);
}

/* One pass over a line: the best k so far stay in order, and most elements are refused by a glance
 * at the last of them. */
static void line(const fac_array *x, bool smallest, int64_t first, int64_t size, int64_t step,
                 int64_t k, int64_t *best) {
    int64_t held = 0;
    for (int64_t i = 0; i < size; i++) {
        int64_t at = first + i * step, to = held;
        if (held == k) {
            if (!k || !before(x, smallest, at, best[k - 1])) continue;
            to = k - 1;
        } else
            held++;
        for (; to && before(x, smallest, at, best[to - 1]); to--) best[to] = best[to - 1];
        best[to] = at;
    }
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const attrs *a = r->attrs;
    const fac_array *x = &r->in[0];
    const int axis = fac_axis(a->axis, x->type.dims.n ? x->type.dims.n : 1);
    const fac_lines from = fac_lines_of(&x->type.dims, axis),
                    to = fac_lines_of(&r->out[0].type.dims, axis);
    int64_t *best = fac_alloc((size_t)to.size + 1, sizeof *best);
    if (!best)
        return fac_raise(err, FAC_E_NOMEM, "top_k: no memory for %lld indices", (long long)to.size);
    for (int64_t o = 0; o < from.outer; o++)
        for (int64_t i = 0; i < from.inner; i++) {
            const int64_t first = o * from.size * from.inner + i;
            line(x, a->smallest, first, from.size, from.inner, to.size, best);
            for (int64_t k = 0; k < to.size; k++) {
                const int64_t at = (o * to.size + k) * to.inner + i;
                if (r->out[0].f)
                    r->out[0].f[at] = x->f[best[k]];
                else if (r->out[0].i)
                    r->out[0].i[at] = x->i[best[k]];
                if (r->out[1].i) r->out[1].i[at] = (best[k] - first) / from.inner;
            }
        }
    fac_release(best);
    return FAC_OK;
}

/* dy goes back to where its elements came from; no element comes twice. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    if (!dy[0]) return;
    if (!n->in[0]->type.dims.n) {
        dx[0] = dy[0];
        return;
    }
    fac_value *zeros = fac_full(fac_shape_of(n->in[0]), dy[0]->type.dtype, 0);
    dx[0] = fac_scatter_elements(zeros, n->out[1], dy[0], (int)((const attrs *)n->attrs)->axis,
                                 FAC_SCATTER_ADD);
}

static void cost(const fac_node *n, fac_cost *c) { fac_cost_each(n, 1, c); }

/* Since opset 10 k is an input; `sorted` may always be, and is. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_value *k = n->opset >= 10 ? x[1] : fac_ints(g, fac_shape(fac_onnx_int(n, "k", 0)));
    attrs a = { fac_onnx_int(n, "axis", -1), !fac_onnx_int(n, "largest", 1) };
    y[0] = fac_emit(&fac_op_top_k, &a, 2, (fac_value *[]){ x[0], k });
    if (n->nout > 1) y[1] = fac_value_other(y[0], 1);
}
static const fac_onnx_attr names[] = {
    { "axis", NULL }, { "k", NULL }, { "largest", NULL }, { "sorted", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "TopK", 10, 0, names, load, 0 },
                                 { "", "TopK", 1, 9, names, load, 1 },
                                 { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_list_of(w, n->in[1]) };
    const char *y = fac_onnx_name(w, n->out[0]), *indices = fac_onnx_name(w, n->out[1]);
    fac_onnx_put(w, "TopK", 2, ins, y ? y : "");
    fac_onnx_put_out(w, indices ? indices : fac_onnx_fresh(w)); /* ONNX has no TopK without them */
    fac_onnx_put_int(w, "axis", a->axis);
    fac_onnx_put_int(w, "largest", !a->smallest);
    return true;
}

static const fac_case cases[] = { { "top_k(f32[3,9], i64{4}) axis=1", -9, 9, 0 },
                                  { "top_k(f32[3,9,2], i64{9}) axis=-2 smallest", -9, 9, 0 },
                                  { "top_k(i8[40], i64{7})", -3, 3, 0 },
                                  { "top_k(f32[5,0], i64{0}) axis=1", 0, 0, 0 },
                                  { "top_k(f16[2,30], i64{0}) axis=1", -1, 1, 0 },
                                  { "top_k(u8[5,4], i64{2}) smallest", 0, 9, 0 },
                                  { 0 } };

const fac_op fac_op_top_k = {
    .name = "top_k",
    .doc = "the k largest elements along one axis, and their indices",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .is = FAC_OP_PICKS,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_top_k(fac_value *x, int64_t k, int axis, bool smallest) {
    return fac_emit(&fac_op_top_k, &(attrs){ axis, smallest }, 2,
                    (fac_value *[]){ x, fac_ints(fac_value_graph(x), fac_shape(k)) });
}
