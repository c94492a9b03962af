#include <math.h>
#include "ops/host_list.h"
#include "ops/onnx_put.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* A new axis of size `depth` (an integer scalar): values[1] where its index is the element of x, a
 * float cut to an integer, values[0] elsewhere.  A negative element counts from the end; one
 * outside 0..depth is nowhere.  The result has the values' dtype. */
fac_value *fac_one_hot(fac_value *x, fac_value *depth, fac_value *values, int axis);
#endif

typedef struct attrs {
    int64_t axis;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "the place of the new axis in the result" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_NUMBERS, 0 },
                               { "depth", FAC_INTS, FAC_HOST },
                               { "values", FAC_NUMBERS | FAC_BOOLS, 0 },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *v = &n->in[2]->type.dims;
    const int axis = fac_axis(((const attrs *)n->attrs)->axis, x->n + 1);
    fac_contents depth;
    fac_type *y = &n->out[0]->type;
    if (x->n == FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "the result has more than %d dims", FAC_DIMS);
    if (axis < 0)
        return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims",
                        (long long)((const attrs *)n->attrs)->axis, x->n + 1);
    if (!fac_may_be_one(n->in[1])) return fac_fail(n, FAC_E_SHAPE, "depth must be one number");
    if (v->n != 1 || (v->d[0] >= 0 && v->d[0] != 2))
        return fac_fail(n, FAC_E_SHAPE, "values must be two numbers");
    const bool known = fac_known(n->in[1], &depth);
    if (known && !depth.symbolic && depth.v[0] < 0)
        return fac_fail(n, FAC_E_ARGUMENT, "depth is %lld", (long long)depth.v[0]);
    *y = (fac_type){ n->in[2]->type.dtype, { .n = x->n + 1 } };
    const int64_t length = known ? depth.v[0] : fac_symbol(n->graph, NULL);
    for (int k = 0, i = 0; k <= x->n; k++) y->dims.d[k] = k == axis ? length : x->d[i++];
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_dims *d = &r->out[0].type.dims;
    const int axis = fac_axis(((const attrs *)r->attrs)->axis, d->n);
    int64_t outer = 1, depth = d->d[axis], inner = 1;
    (void)err;
    for (int k = 0; k < axis; k++) outer *= d->d[k];
    for (int k = axis + 1; k < d->n; k++) inner *= d->d[k];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < depth; k++)
            for (int64_t i = 0; i < inner; i++) {
                const int64_t from = o * inner + i;
                const double x = r->in[0].f ? trunc(r->in[0].f[from]) : (double)r->in[0].i[from];
                const bool hot = (x < 0 ? x + (double)depth : x) == (double)k;
                const int64_t at = (o * depth + k) * inner + i;
                if (r->out[0].f)
                    r->out[0].f[at] = r->in[2].f[hot];
                else
                    r->out[0].i[at] = r->in[2].i[hot];
            }
    return FAC_OK;
}

/* ONNX lets depth be a float, and a list of one number. */
static fac_value *whole(fac_value *v) {
    return fac_dtype_get(v->type.dtype)->kind == 'f' ? fac_cast(v, FAC_I64) : v;
}

/* Texts are gathered: places of the list of two. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *out[]) {
    const bool text = ins[2]->type.dtype == FAC_TEXT;
    fac_value *values = text ? fac_ints(g, fac_shape(0, 1)) : ins[2];
    out[0] = fac_one_hot(ins[0], whole(ins[1]), values, (int)fac_onnx_int(n, "axis", -1));
    if (text) out[0] = fac_gather(ins[2], out[0], 0);
}
static const fac_onnx_attr names[] = { { "axis", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "OneHot", 9, 0, names, load, 0 }, { 0 } };
/* ONNX wants a dim at least: a scalar is a list of one, whose dim is squeezed out again. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const bool scalar = !n->in[0]->type.dims.n;
    if (!scalar) return fac_onnx_plain(w, n);
    const char *ins[] = { fac_onnx_ranked(w, n->in[0], 1), fac_onnx_name(w, n->in[1]),
                          fac_onnx_name(w, n->in[2]) };
    const char *row = fac_onnx_put(w, "OneHot", 3, ins, NULL);
    return fac_onnx_binary(w, "Squeeze", row, fac_onnx_list(w, 1, &(int64_t){ 0 }),
                           fac_onnx_name(w, n->out[0])) != NULL;
}

static const fac_case cases[] = { { "one_hot(i64[3,2], i64(5), f32[2]) axis=-1", -6, 6, 0 },
                                  { "one_hot(i32[4], i64(3), i64[2])", -4, 4, 0 },
                                  { "one_hot(f32[2,2]{0,1,1,0}, i64(3), f16[2]) axis=1", 0, 2, 0 },
                                  { "one_hot(f32[5]{0,1,1,0,1}, i64(3), f32[2])", -4, 4, 0 },
                                  { "one_hot(i64[0], i64(3), f32[2])", 0, 0, 0 },
                                  { "one_hot(i64[], i64(3), f32[2])", 0, 2, 0 },
                                  { 0 } };

const fac_op fac_op_one_hot = {
    .name = "one_hot",
    .doc = "indices as vectors with one different element",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD | FAC_OP_PICKS,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_one_hot(fac_value *x, fac_value *depth, fac_value *values, int axis) {
    return fac_emit(&fac_op_one_hot, &(attrs){ axis }, 3, (fac_value *[]){ x, depth, values });
}
