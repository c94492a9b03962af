/* Straight-through estimators: one value forward, another path backward (Bengio, Leonard and
 * Courville, 2013). */
#include "facula/op.h"
#include "facula/ops.h"

static const fac_port in[] = { { "y", FAC_FLOATS, 0 },
                               { "path", FAC_FLOATS, FAC_SHAPE_ONLY },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_type *y = &n->in[0]->type, *path = &n->in[1]->type;
    if (y->dtype != path->dtype || y->dims.n != path->dims.n)
        return fac_fail(n, FAC_E_SHAPE, "y and path differ in type");
    for (int k = 0; k < y->dims.n; k++)
        if (y->dims.d[k] >= 0 && path->dims.d[k] >= 0 && y->dims.d[k] != path->dims.d[k])
            return fac_fail(n, FAC_E_SHAPE, "y and path differ in dim %d", k);
    n->out[0]->type = *y;
    return true;
}

static void expand(const fac_node *n, fac_value *out[]) { out[0] = fac_identity(n->in[0]); }

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    (void)n;
    dx[1] = dy[0];
}

static const fac_case cases[] = { { "surrogate(f32[2,3], f32[2,3])", -1, 1, 0 }, { 0 } };

extern const fac_op fac_op_surrogate;
const fac_op fac_op_surrogate = {
    .name = "surrogate",
    .doc = "y, whose gradient goes to path",
    .in = in,
    .out = fac_ports_y,
    .infer = infer,
    .expand = expand,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_surrogate(fac_value *y, fac_value *path) {
    return fac_emit(&fac_op_surrogate, NULL, 2, (fac_value *[]){ y, path });
}
