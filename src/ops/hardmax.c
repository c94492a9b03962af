/* One-hot of the largest element. */
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/softmax.h"
#include "ops/order.h"

#if FAC_INTERFACE
/* y_i = 1 where x_i is the (first) largest along one axis, else 0; a negative axis counts from the
 * end. f32 f64 f16 bf16. */
fac_value *fac_hardmax(fac_value *x, int64_t axis);
#endif

static void line(const fac_array *x, int64_t first, int64_t size, int64_t step, double *y) {
    int64_t best = first;
    for (int64_t at = first; at < first + size * step; at += step) {
        if (fac_above(x, at, best)) best = at;
        y[at] = 0;
    }
    if (size) y[best] = 1;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return fac_softmax_ref(r, line);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 1, to); }

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_softmax_load(n, in[0], fac_hardmax);
}

static const fac_onnx onnx[] = { { "", "Hardmax", 1, 0, NULL, load, 0 }, { 0 } };
static const fac_case cases[] = { { "hardmax(f32[2,5]) axis=1", -4, 4, 0 },
                                  { "hardmax(f32[3,4,5]) axis=0", -4, 4, 0 },
                                  { "hardmax(f32[3,0,2]) axis=1", 0, 0, 0 },
                                  { 0 } };

extern const fac_op fac_op_hardmax;
const fac_op fac_op_hardmax = {
    .name = "hardmax",
    .doc = "1 at the first largest element along one axis, else 0",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .attrs = fac_softmax_table,
    .attrs_size = sizeof(fac_softmax_attrs),
    .is = FAC_OP_NO_GRAD | FAC_OP_PICKS,
    .infer = fac_softmax_infer,
    .ref = ref,
    .cost = cost,
    .onnx = onnx,
    .save = fac_onnx_plain,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_hardmax(fac_value *x, int64_t axis) {
    return fac_emit(&fac_op_hardmax, &(fac_softmax_attrs){ axis }, 1, &x);
}
