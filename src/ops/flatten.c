#include "ops/shape.h"

#if FAC_INTERFACE
/* [d0 .. d(axis-1), d(axis) ..]: always two dims; a view where possible */
fac_value *fac_flatten(fac_value *x, int axis);
#endif

typedef struct attrs {
    int64_t axis;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS, NULL, "the first dim that goes to the second one" },
                                  { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    int64_t axis = ((const attrs *)n->attrs)->axis, d[2] = { 1, 1 };
    if (axis < -x->n || axis > x->n)
        return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims", (long long)axis, x->n);
    if (axis < 0) axis += x->n;
    for (int k = 0; k < x->n; k++) d[k >= axis] = fac_size_product(n->graph, d[k >= axis], x->d[k]);
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, fac_shape(d[0], d[1]) };
    return true;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_reshape_like(dy[0], n->in[0]);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_flatten(in[0], (int)fac_onnx_int(n, "axis", 1));
}
static const fac_onnx_attr names[] = { { "axis", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Flatten", 1, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = { { "flatten(f32[2,3,4]) axis=1", -4, 4, 0 },
                                  { "flatten(f32[2,3,4])", -4, 4, 0 },
                                  { "flatten(i64[2,3,4]) axis=3", -9, 9, 0 },
                                  { "flatten(f16[2,3,4]) axis=-1", -4, 4, 0 },
                                  { "flatten(f32[0,3,2]) axis=1", 0, 0, 0 },
                                  { "flatten(f32[])", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_flatten = {
    .name = "flatten",
    .doc = "dims before axis and dims from axis on, multiplied",
    .in = fac_ports_any_x,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .move = fac_move_flat,
    .view = fac_view_flat,
    .onnx = onnx,
    .save = fac_onnx_plain,
    .grad = grad,
    .cases = cases,
    .torch = "Flatten",
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_flatten(fac_value *x, int axis) {
    return fac_emit(&fac_op_flatten, &(attrs){ axis }, 1, &x);
}
