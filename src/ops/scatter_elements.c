#include "ops/fusions.h"
#include "ops/index.h"
#include "ops/scatter.h"

#if FAC_INTERFACE
/* How numbers that arrive at one place meet what is there; FAC_SCATTER_NONE: the last one stays. */
typedef enum fac_scatter_reduction {
    FAC_SCATTER_NONE,
    FAC_SCATTER_ADD,
    FAC_SCATTER_MUL,
    FAC_SCATTER_MIN,
    FAC_SCATTER_MAX
} fac_scatter_reduction;

/* x, but y[i, index[i, j, k], k] = updates[i, j, k] (axis 1).  Updates have the indices' shape; a
 * negative index counts from the end, one outside the axis is an error of the run. */
fac_value *fac_scatter_elements(fac_value *x, fac_value *indices, fac_value *updates, int axis,
                                fac_scatter_reduction reduction);
#endif

typedef struct attrs {
    int64_t axis;
    int reduction;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "the axis of x that the indices count" },
                                  { "reduction", FAC_A_ENUM, offsetof(attrs, reduction), 0, 0, 0, 0,
                                    fac_scatter_names, "how an update meets what is there" },
                                  { 0 } };
static const fac_port in[] = {
    { "x", FAC_ANY, 0 }, { "indices", FAC_INTS, 0 }, { "updates", FAC_ANY, 0 }, { 0 }
};

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *i = &n->in[1]->type, *u = &n->in[2]->type;
    const int axis = fac_axis(((const attrs *)n->attrs)->axis, x->dims.n);
    if (axis < 0)
        return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims",
                        (long long)((const attrs *)n->attrs)->axis, x->dims.n);
    if (u->dtype != x->dtype) return fac_fail(n, FAC_E_DTYPE, "updates must have x's dtype");
    if (!fac_scatter_takes(n, ((const attrs *)n->attrs)->reduction)) return false;
    if (i->dims.n != x->dims.n || u->dims.n != x->dims.n)
        return fac_fail(n, FAC_E_SHAPE, "x, indices and updates must have the same number of dims");
    for (int k = 0; k < x->dims.n; k++) {
        const int64_t a = i->dims.d[k], b = u->dims.d[k], d = x->dims.d[k];
        if (a >= 0 && b >= 0 && a != b)
            return fac_fail(n, FAC_E_SHAPE, "indices and updates differ in dim %d", k);
        if (k != axis && d >= 0 && a > d)
            return fac_fail(n, FAC_E_SHAPE, "dim %d of the indices is larger than that of x", k);
    }
    n->out[0]->type = *x;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const attrs *a = r->attrs;
    const fac_dims *x = &r->in[0].type.dims, *d = &r->in[1].type.dims;
    const int axis = fac_axis(a->axis, x->n);
    const int64_t count = fac_dims_count(d);
    fac_scatter_start(&r->in[0], &r->out[0]);
    for (int64_t e = 0; e < count; e++) {
        int64_t index, at = 0, place[FAC_DIMS], rest = e;
        FAC_TRY(fac_place_of_index(r->in[1].i[e], x->d[axis], &index, err));
        for (int k = d->n - 1; k >= 0; k--) {
            place[k] = k == axis ? index : rest % d->d[k];
            rest /= d->d[k];
        }
        for (int k = 0; k < x->n; k++) at = at * x->d[k] + place[k];
        fac_scatter_put(a->reduction, &r->in[2], e, &r->out[0], at);
    }
    return FAC_OK;
}

static fac_value *pick(const fac_node *n, fac_value *v) {
    return fac_gather_elements(v, n->in[1], (int)((const attrs *)n->attrs)->axis);
}
static fac_value *put(const fac_node *n, fac_value *x, fac_value *updates, int reduction) {
    return fac_scatter_elements(x, n->in[1], updates, (int)((const attrs *)n->attrs)->axis,
                                (fac_scatter_reduction)reduction);
}
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_scatter_grad(n, ((const attrs *)n->attrs)->reduction, pick, put, dy[0], dx);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *out[]) {
    out[0] = fac_scatter_elements(ins[0], ins[1], ins[2], (int)fac_onnx_int(n, "axis", 0),
                                  (fac_scatter_reduction)fac_scatter_load(n, g));
}
static const fac_onnx_attr names[] = { { "axis", NULL }, { "reduction", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "ScatterElements", 11, 0, names, load, 0 },
                                 { "", "Scatter", 9, 10, names, load, 0 },
                                 { "", "TensorScatter", 24, 0, fac_names_tensor_scatter,
                                   fac_load_tensor_scatter, 2 },
                                 { 0 } };
static const fac_case cases[] = {
    { "scatter_elements(f32[5,3], i64[2,3], f32[2,3])", -5, 4, 1e-6 },
    { "scatter_elements(f32[3,5,2], i64[3,4,1], f32[3,4,1]) axis=1 reduction=add", -5, 4, 1e-6 },
    { "scatter_elements(i64[5], i32[9], i64[9]) axis=-1 reduction=max", -5, 4, 0 },
    { "scatter_elements(u64[5], i32[9], u64[9]) reduction=mul", 0, 4, 0 },
    { "scatter_elements(f16[2,5], i64[0,5], f16[0,5]) reduction=min", 0, 1, 0 },
    { "scatter_elements(u4[5], i64[2], u4[2])", -5, 4, 0 },
    { 0 }
};

const fac_op fac_op_scatter_elements = {
    .name = "scatter_elements",
    .doc = "x with elements replaced, one index each",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_TEXTS,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .save = fac_scatter_save,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_scatter_elements(fac_value *x, fac_value *indices, fac_value *updates, int axis,
                                fac_scatter_reduction reduction) {
    return fac_emit(&fac_op_scatter_elements, &(attrs){ axis, reduction }, 3,
                    (fac_value *[]){ x, indices, updates });
}
