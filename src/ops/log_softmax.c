/* The logarithm of softmax, without its underflow. */
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/softmax.h"

#if FAC_INTERFACE
/* y_i = x_i - max x - log(sum over j of exp(x_j - max x)), along one axis; a negative axis counts
 * from the end. f32 f64 f16 bf16. */
fac_value *fac_log_softmax(fac_value *x, int64_t axis);
#endif

static void line(const fac_array *x, int64_t first, int64_t size, int64_t step, double *y) {
    double top = -INFINITY, sum = 0;
    const int64_t end = first + size * step;
    for (int64_t at = first; at < end; at += step) top = x->f[at] > top ? x->f[at] : top;
    for (int64_t at = first; at < end; at += step) sum += exp(x->f[at] - top);
    for (int64_t at = first; at < end; at += step) y[at] = x->f[at] - top - log(sum);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    return fac_softmax_ref(r, line);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 5, to); }

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_log_softmax_grad(n->out[0], dy[0], ((const fac_softmax_attrs *)n->attrs)->axis);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_softmax_load(n, in[0], fac_log_softmax);
}

static const fac_onnx onnx[] = { { "", "LogSoftmax", 1, 0, NULL, load, 0 }, { 0 } };
static const fac_case cases[] = { { "log_softmax(f32[2,5]) axis=1", -4, 4, 1e-6 },
                                  { "log_softmax(f32[3,4,5]) axis=0", -4, 4, 1e-6 },
                                  { "log_softmax(f32[2,1000]) axis=-1", -90, 90, 1e-6 },
                                  { "log_softmax(f32[3,0,2]) axis=-1", 0, 0, 0 },
                                  { "log_softmax(f16[2,5]) axis=1", -4, 4, 4e-3 },
                                  { 0 } };

static void define(const fac_node *n, fac_value *out[]) {
    const fac_dims axis = fac_softmax_axis(n);
    fac_value *x = n->in[0];
    if (!axis.n) return;
    fac_value *below = fac_sub(x, fac_reduce_max(x, axis, true));
    out[0] = fac_sub(below, fac_log(fac_sum(fac_exp(below), axis, true)));
}

extern const fac_op fac_op_log_softmax;
const fac_op fac_op_log_softmax = {
    .name = "log_softmax",
    .doc = "log(softmax(x)) along one axis",
    .in = fac_ports_x,
    .out = fac_ports_y,
    .attrs = fac_softmax_table,
    .attrs_size = sizeof(fac_softmax_attrs),
    .infer = fac_softmax_infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = fac_onnx_plain,
    .cases = cases,
    .define = define,
    .layer = FAC_CLASS_SOFTMAX,
    .torch = "LogSoftmax",
    .images = FAC_IMAGES_LAST_AXIS,
    .rounding = { .rule = FAC_ROUND_LOG_SOFTMAX },
};
fac_value *fac_log_softmax(fac_value *x, int64_t axis) {
    return fac_emit(&fac_op_log_softmax, &(fac_softmax_attrs){ axis }, 1, &x);
}
