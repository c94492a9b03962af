/* Root mean square normalization (Zhang, Sennrich, 2019). */
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/define.h"
#include "ops/fusions.h"
#include "ops/grad.h"
#include "ops/lines.h"
#include "ops/norm.h"
#include "ops/onnx_put.h"
#include "op_list.h"

#if FAC_INTERFACE
/* y = x / sqrt(mean of x^2 + epsilon) scale;  the mean over the dims axis.. of x (a negative axis
 * counts from the end).  scale broadcasts to those dims and may be NULL.  f32 f64 f16 bf16. */
fac_value *fac_rms_norm(fac_value *x, fac_value *scale, int64_t axis, double epsilon);
#endif

typedef struct attrs {
    int64_t axis;
    double epsilon;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "the first normalized dim" },
                                  { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the mean square" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };

static bool infer(fac_node *n) {
    int axis = fac_lines_axis(n, ((const attrs *)n->attrs)->axis);
    if (axis < 0) return false;
    if (n->in[1] && !fac_norm_fits(&n->in[1]->type.dims, &n->in[0]->type.dims, axis))
        return fac_fail(n, FAC_E_SHAPE, "scale does not broadcast to the dims of x from %d on",
                        axis);
    n->out[0]->type = n->in[0]->type;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_dims *d = &r->in[0].type.dims;
    const fac_array *scale = &r->in[1];
    int axis = fac_axis(a->axis, d->n ? d->n : 1);
    int64_t rows = 1, size = 1;
    for (int k = 0; k < d->n; k++) *(k < axis ? &rows : &size) *= d->d[k];
    for (int64_t i = 0; i < rows; i++) {
        const double *x = r->in[0].f + i * size;
        double squares = 0;
        for (int64_t k = 0; k < size; k++) squares += x[k] * x[k];
        double inverse = 1 / sqrt(squares / (double)size + a->epsilon);
        for (int64_t k = 0; k < size; k++)
            r->out[0].f[i * size + k] =
                x[k] * inverse * (scale->f ? scale->f[fac_norm_at(&scale->type.dims, d, k)] : 1);
    }
    return FAC_OK;
}

/* The usual case: nothing broadcasts inside a row. */
static bool grad_of_rows(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    const int rank = n->in[0]->type.dims.n, axis = rank ? fac_axis(a->axis, rank) : -1;
    if (axis < 0 || !fac_norm_covers(n, 1, axis) || !fac_needs(n, 0))
        return false; /* a sum alone is an op of its own */
    dx[0] = fac_rms_norm_grad(n->in[0], dy[0], n->in[1], a->axis, a->epsilon);
    if (fac_needs(n, 1)) dx[1] = fac_value_other(dx[0], 1);
    return true;
}

/* With f = 1 / sqrt(mean of x^2 + epsilon) and g = dy scale:  dx = f (g - x f^2 mean of g x). */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0], *scale = n->in[1];
    fac_dtype dtype = x->type.dtype;
    fac_dims over = { 0 };
    int rank = x->type.dims.n;
    if (grad_of_rows(n, dy, dx)) return;
    for (int k = fac_axis(a->axis, rank ? rank : 1); k < rank; k++) over.d[over.n++] = k;
    fac_value *squares = fac_mul(x, x), *mean = over.n ? fac_mean(squares, over, true) : squares;
    fac_value *f = fac_reciprocal(fac_sqrt(fac_add(mean, fac_number(n->graph, dtype, a->epsilon))));
    if (fac_needs(n, 1))
        dx[1] = fac_grad_as(fac_sum_like(fac_mul(dy[0], fac_mul(x, f)), scale), scale->type.dtype);
    if (!fac_needs(n, 0)) return;
    fac_value *g = scale ? fac_mul(dy[0], fac_grad_as(scale, dtype)) : dy[0],
              *along = fac_mul(g, x);
    if (over.n) along = fac_mean(along, over, true);
    dx[0] = fac_mul(f, fac_sub(g, fac_mul(x, fac_mul(fac_mul(f, f), along))));
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 4, to); }

/* stash_type is the precision of the mean square, which here is never below it. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    attrs a = { fac_onnx_int(n, "axis", -1), fac_onnx_real(n, "epsilon", 1e-5) };
    y[0] = fac_emit(&fac_op_rms_norm, &a, 2, x);
}

static const fac_onnx_attr spellings[] = { { "stash_type", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "RMSNormalization", 23, 0, spellings, load, 2 },
                                 { "", "SimplifiedLayerNormalization", 1, 0, fac_names_norm,
                                   fac_load_simplified_norm, 2 },
                                 { "com.microsoft", "SimplifiedLayerNormalization", 1, 0,
                                   fac_names_norm, fac_load_simplified_norm, 2 },
                                 { "com.microsoft", "SkipSimplifiedLayerNormalization", 1, 0,
                                   fac_names_norm, fac_load_skip_rms_norm, 3 },
                                 { 0 } };
/* Before opset 23, or without a scale: x / sqrt(mean of x^2 + epsilon). */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const fac_type *x = &n->in[0]->type;
    fac_dims over = { 0 };
    for (int k = fac_axis(a->axis, x->dims.n ? x->dims.n : 1); k < x->dims.n; k++)
        over.d[over.n++] = k;
    const char *from = fac_onnx_name(w, n->in[0]), *scale = fac_onnx_name(w, n->in[1]),
               *y = fac_onnx_name(w, n->out[0]);
    if (w->opset >= 23 && scale) return fac_onnx_plain(w, n);
    if (!over.n) return false;
    const char *square = fac_onnx_binary(w, "Mul", from, from, NULL);
    const char *ins[] = { square, w->opset < 18 ? NULL : fac_onnx_list(w, over.n, over.d) };
    const char *mean = fac_onnx_put(w, "ReduceMean", 2, ins, NULL);
    if (w->opset < 18) fac_onnx_put_ints(w, "axes", over.n, over.d);
    mean = fac_onnx_binary(w, "Add", mean, fac_onnx_number(w, x->dtype, a->epsilon), NULL);
    const char *normal =
        fac_onnx_binary(w, "Div", from, fac_onnx_unary(w, "Sqrt", mean, NULL), scale ? NULL : y);
    if (scale) fac_onnx_binary(w, "Mul", normal, scale, y);
    return true;
}

static const fac_case cases[] = {
    { "rms_norm(f32[2,3,8], f32[8]) axis=-1 epsilon=1e-5", -1, 1, 1e-5 },
    { "rms_norm(f32[2,3,8], f32[3,8]) axis=1 epsilon=1e-5", -1, 1, 1e-5 },
    { "rms_norm(f32[4,6], -) axis=0 epsilon=0.01", -1, 1, 1e-5 },
    { "rms_norm(f32[0,8], f32[8]) axis=-1 epsilon=1e-5", 0, 0, 0 },
    { "rms_norm(f16[2,8], f16[8]) axis=-1 epsilon=1e-5", -1, 1, 1e-2 },
    { 0 }
};

static void define(const fac_node *n, fac_value *out[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0];
    const int rank = x->type.dims.n;
    fac_dims over = { 0 };
    for (int k = fac_axis(a->axis, rank ? rank : 1); k < rank; k++) over.d[over.n++] = k;
    fac_value *squares = fac_mul(x, x), *mean = over.n ? fac_mean(squares, over, true) : squares;
    fac_value *root = fac_sqrt(fac_add(mean, fac_number_as(x, a->epsilon)));
    out[0] = fac_define_scaled(fac_div(x, root), n->in[1], NULL);
}

const fac_op fac_op_rms_norm = {
    .name = "rms_norm",
    .doc = "division of each sample by the root mean square of its last dims",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .define = define,
    .layer = FAC_CLASS_LAYER_NORM,
    .torch = "RMSNorm",
    .rounding = { .rule = FAC_ROUND_RMS_NORM },
};
fac_value *fac_rms_norm(fac_value *x, fac_value *scale, int64_t axis, double epsilon) {
    return fac_emit(&fac_op_rms_norm, &(attrs){ axis, epsilon }, 2, (fac_value *[]){ x, scale });
}
