/* ONNX's CenterCropPad: the middle of x, or x in the middle of zeros. */
#include "ops/constant.h"
#include "ops/host_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* x cut, or filled up with zeros, evenly on both sides to shape, i64: one size for each of axes,
 * none of which means all.  An odd element is cut, or added, at the end.  Any dtype. */
fac_value *fac_center_crop_pad(fac_value *x, fac_value *shape, fac_dims axes);
#endif

typedef struct attrs {
    fac_dims axes;
} attrs;
static const fac_attr table[] = { { "axes", FAC_A_DIMS, offsetof(attrs, axes), 0, 0, 0, 0, NULL,
                                    "of the sizes; none: all" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, 0 }, { "shape", FAC_INTS, FAC_HOST }, { 0 } };

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    const int rank = n->in[0]->type.dims.n, count = a->axes.n ? a->axes.n : rank;
    fac_type y = n->in[0]->type;
    fac_contents shape;
    bool seen[FAC_DIMS] = { false };
    const bool known = fac_known(n->in[1], &shape);
    if (!fac_list_may_have(n->in[1], count))
        return fac_fail(n, FAC_E_SHAPE, "shape must have %d numbers", count);
    for (int k = 0; k < count; k++) {
        const int axis = a->axes.n ? fac_axis(a->axes.d[k], rank) : k;
        if (axis < 0 || seen[axis])
            return fac_fail(n, FAC_E_ARGUMENT, "axes are out of range, or one stands twice");
        seen[axis] = true;
        if (known && !(shape.symbolic >> k & 1) && shape.v[k] < 0)
            return fac_fail(n, FAC_E_SHAPE, "a size of %lld", (long long)shape.v[k]);
        y.dims.d[axis] = known ? shape.v[k] : fac_symbol(n->graph, NULL);
    }
    n->out[0]->type = y;
    return true;
}

static int64_t expands(const fac_node *n) {
    return fac_dims_known(&n->in[0]->type.dims, 0) && fac_dims_known(&n->out[0]->type.dims, 0);
}

/* Padding by less than nothing cuts. */
static void expand(const fac_node *n, fac_value *out[]) {
    const fac_dims *x = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    int64_t pads[2 * FAC_DIMS] = { 0 };
    for (int k = 0; k < x->n; k++) {
        const int64_t more = y->d[k] - x->d[k];
        pads[k] = more / 2;
        pads[x->n + k] = more - more / 2;
    }
    fac_value *by = fac_ints_long(n->graph, pads, 2 * x->n);
    out[0] = fac_pad(n->in[0], by, NULL, NULL, FAC_PAD_CONSTANT);
}

/* The same the other way round: what was cut off gets nothing. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_center_crop_pad(dy[0], fac_shape_of(n->in[0]), (fac_dims){ 0 });
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_center_crop_pad(x[0], x[1], fac_onnx_ints(n, "axes"));
}
static const fac_onnx_attr names[] = { { "axes", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "CenterCropPad", 18, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    if (w->opset < 18) return false;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_list_of(w, n->in[1]) };
    fac_onnx_put(w, "CenterCropPad", 2, ins, fac_onnx_name(w, n->out[0]));
    if (a->axes.n) fac_onnx_put_ints(w, "axes", a->axes.n, a->axes.d);
    return true;
}

static const fac_case cases[] = { { "center_crop_pad(f32[5,4], i64{2,7})", -4, 4, 0 },
                                  { "center_crop_pad(f32[3,6,5], i64{3,8}) axes=1,-1", -4, 4, 0 },
                                  { "center_crop_pad(u8[4], i64{1})", 0, 9, 0 },
                                  { "center_crop_pad(f16[3,0], i64{2,2})", 0, 0, 0 },
                                  { "center_crop_pad(f32[3,2], i64{0,2})", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_center_crop_pad = {
    .name = "center_crop_pad",
    .doc = "the middle of x, or x in the middle of zeros",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .expand = expand,
    .expands = expands,
    .grad = grad,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_center_crop_pad(fac_value *x, fac_value *shape, fac_dims axes) {
    return fac_emit(&fac_op_center_crop_pad, &(attrs){ axes }, 2, (fac_value *[]){ x, shape });
}
