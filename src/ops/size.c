#include "ops/shape.h"

#if FAC_INTERFACE
fac_value *fac_size_of(fac_value *x); /* the number of elements of x, a scalar i64 */
#endif

static const fac_port in[] = { { "x", FAC_ANY, FAC_SHAPE_ONLY }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    int64_t size = 1;
    fac_contents c = { .n = 1 };
    for (int k = 0; k < x->n; k++) size = fac_size_product(n->graph, size, x->d[k]);
    fac_contents_put(&c, 0, (fac_item){ size, size < 0 });
    n->out[0]->type = (fac_type){ FAC_I64, { 0 } };
    return fac_knows_items(n, &c);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    r->out[0].i[0] = fac_dims_count(&r->in[0].type.dims);
    return FAC_OK;
}

static const fac_onnx onnx[] = { { "", "Size", 1, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = { { "size(f32[2,3,4])", -4, 4, 0 },
                                  { "size(bool[0,7])", 0, 0, 0 },
                                  { "size(f16[])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_size = {
    .name = "size",
    .doc = "the number of elements of x",
    .in = in,
    .out = fac_ports_y,
    .is = FAC_OP_NO_GRAD | FAC_OP_KNOWS,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_size_of(fac_value *x) { return fac_emit(&fac_op_size, NULL, 1, &x); }
