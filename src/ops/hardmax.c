/* One-hot of the largest element. */
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/lines.h"
#include "ops/softmax.h"
#include "ops/order.h"

#if FAC_INTERFACE
/* y_i = 1 where x_i is the (first) largest along one axis, else 0; a negative axis counts from the end.
 * f32 f64 f16 bf16. */
fac_value *fac_hardmax(fac_value *x, int64_t axis);
#endif

typedef struct attrs { int64_t axis; } attrs;
static const fac_attr table[] = {
    { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS, FAC_DIMS - 1, NULL, "the axis that sums to one" }, { 0 } };

static bool infer(fac_node *n) {
    if (fac_lines_axis(n, ((const attrs *)n->attrs)->axis) < 0) return false;
    n->out[0]->type = n->in[0]->type;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dims *d = &r->in[0].type.dims;
    fac_lines l = fac_lines_of(d, fac_axis(((const attrs *)r->attrs)->axis, d->n ? d->n : 1));
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++) {
            int64_t at = o * l.size * l.inner + i, best = at;
            for (int64_t k = 0; k < l.size; k++, at += l.inner) {
                if (fac_above(&r->in[0], at, best)) best = at;
                r->out[0].f[at] = 0;
            }
            if (l.size) r->out[0].f[best] = 1;
        }
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 1, to); }

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_softmax_load(n, in[0], fac_hardmax);
}

static const fac_onnx onnx[] = { { "", "Hardmax", 1, 0, NULL, load }, { 0 } };
static const fac_case cases[] = {
    { "hardmax(f32[2,5]) axis=1", -4, 4, 0 }, { "hardmax(f32[3,4,5]) axis=0", -4, 4, 0 },
    { "hardmax(f32[3,0,2]) axis=1", 0, 0, 0 }, { 0 } };

extern const fac_op fac_op_hardmax;
const fac_op fac_op_hardmax = {
    .name = "hardmax", .doc = "1 at the first largest element along one axis, else 0",
    .in = fac_ports_x, .out = fac_ports_y, .attrs = table,
    .attrs_size = sizeof(attrs), .is = FAC_OP_NO_GRAD, .infer = infer, .ref = ref, .cost = cost, .onnx = onnx,
    .save = fac_onnx_plain, .cases = cases,
};
fac_value *fac_hardmax(fac_value *x, int64_t axis) { return fac_emit(&fac_op_hardmax, &(attrs){ axis }, 1, &x); }
