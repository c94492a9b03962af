#include "ops/index.h"
#include "ops/scatter.h"

#if FAC_INTERFACE
/* x, but with slices replaced: the last dim of the indices [i.., K] holds places in the first K
 * dims of x, and updates [i.., rest of x] what goes there.  A negative number counts from the end,
 * a place outside is an error of the run. */
fac_value *fac_scatter_nd(fac_value *x, fac_value *indices, fac_value *updates,
                          fac_scatter_reduction reduction);
#endif

typedef struct attrs {
    int reduction;
} attrs;
static const fac_attr table[] = { { "reduction", FAC_A_ENUM, offsetof(attrs, reduction), 0, 0, 0, 0,
                                    fac_scatter_names, "how an update meets what is there" },
                                  { 0 } };
static const fac_port in[] = {
    { "x", FAC_ANY, 0 }, { "indices", FAC_INTS, 0 }, { "updates", FAC_ANY, 0 }, { 0 }
};

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type, *i = &n->in[1]->type, *u = &n->in[2]->type;
    if (u->dtype != x->dtype) return fac_fail(n, FAC_E_DTYPE, "updates must have x's dtype");
    if (!fac_scatter_takes(n, ((const attrs *)n->attrs)->reduction)) return false;
    const int lead = i->dims.n - 1;
    if (lead < 0) return fac_fail(n, FAC_E_SHAPE, "the indices must have a dim");
    /* an open last dim is what the updates leave of x's dims */
    const int64_t last = i->dims.d[lead], left = lead + x->dims.n - u->dims.n;
    const int64_t taken = last < 0 ? left : last;
    if (taken < 0 || taken > x->dims.n)
        return fac_fail(n, FAC_E_SHAPE, "the last dim of the indices must be at most %d",
                        x->dims.n);
    const int depth = (int)taken;
    if (u->dims.n != lead + x->dims.n - depth)
        return fac_fail(n, FAC_E_SHAPE, "updates must have %d dims", lead + x->dims.n - depth);
    for (int k = 0; k < u->dims.n; k++) {
        const int64_t want = k < lead ? i->dims.d[k] : x->dims.d[depth + k - lead];
        if (want >= 0 && u->dims.d[k] >= 0 && want != u->dims.d[k])
            return fac_fail(n, FAC_E_SHAPE, "dim %d of updates is %lld, not %lld", k,
                            (long long)u->dims.d[k], (long long)want);
    }
    n->out[0]->type = *x;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_dims *x = &r->in[0].type.dims, *d = &r->in[1].type.dims;
    const int depth = (int)d->d[d->n - 1];
    int64_t slices = 1, slice = 1;
    for (int k = 0; k < d->n - 1; k++) slices *= d->d[k];
    for (int k = depth; k < x->n; k++) slice *= x->d[k];
    fac_scatter_start(&r->in[0], &r->out[0]);
    for (int64_t s = 0; s < slices; s++) {
        int64_t at = 0;
        for (int k = 0; k < depth; k++) {
            int64_t index;
            FAC_TRY(fac_place_of_index(r->in[1].i[s * depth + k], x->d[k], &index, err));
            at = at * x->d[k] + index;
        }
        for (int64_t e = 0; e < slice; e++)
            fac_scatter_put(((const attrs *)r->attrs)->reduction, &r->in[2], s * slice + e,
                            &r->out[0], at * slice + e);
    }
    return FAC_OK;
}

static fac_value *pick(const fac_node *n, fac_value *v) { return fac_gather_nd(v, n->in[1], 0); }
static fac_value *put(const fac_node *n, fac_value *x, fac_value *updates, int reduction) {
    return fac_scatter_nd(x, n->in[1], updates, (fac_scatter_reduction)reduction);
}
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_scatter_grad(n, ((const attrs *)n->attrs)->reduction, pick, put, dy[0], dx);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *out[]) {
    out[0] = fac_scatter_nd(ins[0], ins[1], ins[2], (fac_scatter_reduction)fac_scatter_load(n, g));
}
static const fac_onnx_attr names[] = { { "reduction", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "ScatterND", 11, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = {
    { "scatter_nd(f32[4,5,6], i64[3,1], f32[3,5,6])", -4, 3, 1e-6 },
    { "scatter_nd(f32[4,5], i64[2,3,2], f32[2,3]) reduction=add", -4, 3, 1e-6 },
    { "scatter_nd(i64[4,4], i32[5,2], i64[5]) reduction=min", -4, 3, 0 },
    { "scatter_nd(f16[2,5], i64[0,1], f16[0,5])", 0, 1, 0 },
    { "scatter_nd(f8e4m3[5,2], i64[2,1], f8e4m3[2,2])", -4, 3, 0 },
    { 0 }
};

const fac_op fac_op_scatter_nd = {
    .name = "scatter_nd",
    .doc = "x with slices replaced at given places",
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
fac_value *fac_scatter_nd(fac_value *x, fac_value *indices, fac_value *updates,
                          fac_scatter_reduction reduction) {
    return fac_emit(&fac_op_scatter_nd, &(attrs){ reduction }, 3,
                    (fac_value *[]){ x, indices, updates });
}
