/* What softmax, log_softmax and hardmax share, see softmax.h. */
#include "facula/ops.h"
#include "ops/lines.h"
#include "ops/softmax.h"

const fac_attr fac_softmax_table[] = { { "axis", FAC_A_INT, offsetof(fac_softmax_attrs, axis), 0, 0,
                                         -FAC_DIMS, FAC_DIMS - 1, NULL, "the axis of a line" },
                                       { 0 } };

bool fac_softmax_infer(fac_node *n) {
    if (fac_lines_axis(n, ((const fac_softmax_attrs *)n->attrs)->axis) < 0) return false;
    n->out[0]->type = n->in[0]->type;
    return true;
}

const fac_port fac_softmax_grad_in[] = { { "y", FAC_FLOATS, 0 }, { "dy", FAC_FLOATS, 0 }, { 0 } };
const fac_port fac_softmax_grad_out[] = { { "dx", FAC_FLOATS, 0 }, { 0 } };

bool fac_softmax_grad_infer(fac_node *n) {
    const fac_type *y = &n->in[0]->type, *dy = &n->in[1]->type;
    if (y->dtype != dy->dtype) return fac_fail(n, FAC_E_DTYPE, "y and dy must have one dtype");
    if (y->dims.n != dy->dims.n) return fac_fail(n, FAC_E_SHAPE, "y and dy differ");
    for (int k = 0; k < y->dims.n; k++)
        if (y->dims.d[k] >= 0 && dy->dims.d[k] >= 0 && y->dims.d[k] != dy->dims.d[k])
            return fac_fail(n, FAC_E_SHAPE, "y and dy differ in dim %d", k);
    return fac_softmax_infer(n);
}

fac_dims fac_softmax_axis(const fac_node *n) {
    return (fac_dims){ .n = n->out[0]->type.dims.n > 0,
                       .d = { ((const fac_softmax_attrs *)n->attrs)->axis } };
}

fac_status fac_softmax_ref(const fac_ref *r, fac_softmax_line *line) {
    const fac_dims *d = &r->in[0].type.dims;
    const fac_lines l =
        fac_lines_of(d, fac_axis(((const fac_softmax_attrs *)r->attrs)->axis, d->n ? d->n : 1));
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++)
            line(&r->in[0], o * l.size * l.inner + i, l.size, l.inner, r->out[0].f);
    return FAC_OK;
}

fac_value *fac_softmax_load(const fac_onnx_node *n, fac_value *x,
                            fac_value *(*op)(fac_value *x, int64_t axis)) {
    if (n->opset >= 13) return op(x, fac_onnx_int(n, "axis", -1));
    if (x->guess == FAC_RANKLESS)
        return fac_fail_graph(x->graph, FAC_E_UNSUPPORTED,
                              "%s before opset 13 needs the number of dims of its input", n->type);
    fac_dims d = fac_value_type(x).dims;
    int64_t axis = fac_onnx_int(n, "axis", 1);
    if (axis < 0) axis += d.n;
    if (axis == d.n - 1) return op(x, axis);
    return fac_reshape_like(op(fac_flatten(x, axis), 1), x);
}
