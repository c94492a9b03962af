/* The logarithm of softmax, without its underflow. */
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/lines.h"
#include "ops/softmax.h"

#if FAC_INTERFACE
/* y_i = x_i - max x - log(sum over j of exp(x_j - max x)), along one axis; a negative axis counts from the end.
 * f32 f64 f16 bf16. */
fac_value *fac_log_softmax(fac_value *x, int64_t axis);
#endif

typedef struct attrs { int64_t axis; } attrs;
static const fac_attr table[] = {
    { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS, FAC_DIMS - 1, NULL, "the axis whose exponentials sum to one" },
    { 0 } };

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
            const double *x = r->in[0].f + o * l.size * l.inner + i;
            double *y = r->out[0].f + o * l.size * l.inner + i, top = -INFINITY, sum = 0;
            for (int64_t k = 0; k < l.size; k++) top = x[k * l.inner] > top ? x[k * l.inner] : top;
            for (int64_t k = 0; k < l.size; k++) sum += exp(x[k * l.inner] - top);
            for (int64_t k = 0; k < l.size; k++) y[k * l.inner] = x[k * l.inner] - top - log(sum);
        }
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 5, to); }

/* dx = dy - exp(y) sum of dy */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_dims axis = { .n = n->out[0]->type.dims.n > 0, .d = { ((const attrs *)n->attrs)->axis } };
    dx[0] = fac_sub(dy[0], fac_mul(fac_exp(n->out[0]), fac_sum(dy[0], axis, true)));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)g;
    out[0] = fac_softmax_load(n, in[0], fac_log_softmax);
}

static const fac_onnx onnx[] = { { "", "LogSoftmax", 1, 0, NULL, load }, { 0 } };
static const fac_case cases[] = {
    { "log_softmax(f32[2,5]) axis=1", -4, 4, 1e-6 },       { "log_softmax(f32[3,4,5]) axis=0", -4, 4, 1e-6 },
    { "log_softmax(f32[2,1000]) axis=-1", -90, 90, 1e-6 }, { "log_softmax(f32[3,0,2]) axis=-1", 0, 0, 0 },
    { "log_softmax(f16[2,5]) axis=1", -4, 4, 4e-3 }, { 0 } };

extern const fac_op fac_op_log_softmax;
const fac_op fac_op_log_softmax = {
    .name = "log_softmax", .doc = "log(softmax(x)) along one axis", .in = fac_ports_x, .out = fac_ports_y, .attrs = table,
    .attrs_size = sizeof(attrs), .infer = infer, .ref = ref, .grad = grad, .cost = cost, .onnx = onnx,
    .save = fac_onnx_plain, .cases = cases,
};
fac_value *fac_log_softmax(fac_value *x, int64_t axis) { return fac_emit(&fac_op_log_softmax, &(attrs){ axis }, 1, &x); }
