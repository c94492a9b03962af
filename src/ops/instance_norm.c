/* Instance normalization (Ulyanov, Vedaldi, Lempitsky, 2016): group normalization with a group for
 * each channel. */
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/define.h"
#include "ops/grad.h"
#include "ops/norm.h"
#include "op_list.h"

#if FAC_INTERFACE
/* y[n,c,...] = (x[n,c,...] - mean) / sqrt(var + epsilon) scale[c] + bias[c],  mean and var over
 * each plane x[n,c].
 *   x N,C,...   scale and bias C, or NULL.   f32 f64 f16 bf16. */
fac_value *fac_instance_norm(fac_value *x, fac_value *scale, fac_value *bias, double epsilon);
#endif

typedef struct attrs {
    double epsilon;
} attrs;
static const fac_attr table[] = { { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0,
                                    NULL, "added to the variance" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, FAC_OPTIONAL },
                               { "bias", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    if (x->n < 2) return fac_fail(n, FAC_E_SHAPE, "x must have a channel dim");
    for (int k = 1; k < 3; k++) {
        const fac_dims *d = n->in[k] ? &n->in[k]->type.dims : NULL;
        if (d && (d->n != 1 || (d->d[0] != x->d[1] && d->d[0] >= 0 && x->d[1] >= 0)))
            return fac_fail(n, FAC_E_SHAPE, "%s must have one number for each channel", in[k].name);
    }
    n->out[0]->type = n->in[0]->type;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dims *d = &r->in[0].type.dims;
    const double *scale = r->in[1].f, *bias = r->in[2].f;
    int64_t plane = 1;
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    for (int64_t i = 0; i < d->d[0] * d->d[1]; i++) {
        const double *x = r->in[0].f + i * plane;
        int64_t c = i % d->d[1];
        double mean, var;
        fac_moments(x, plane, &mean, &var);
        double factor = (scale ? scale[c] : 1) / sqrt(var + ((const attrs *)r->attrs)->epsilon);
        for (int64_t k = 0; k < plane; k++)
            r->out[0].f[i * plane + k] = (x[k] - mean) * factor + (bias ? bias[c] : 0);
    }
    return FAC_OK;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *scale = n->in[1];
    fac_dims plane = { 0 }, over = { .n = 1 };
    for (int k = 2; k < x->type.dims.n; k++) plane.d[plane.n++] = over.d[over.n++] = k;
    fac_standard s = fac_grad_standard(x, plane, ((const attrs *)n->attrs)->epsilon);
    if (fac_needs(n, 1))
        dx[1] = fac_grad_as(fac_sum(fac_mul(dy[0], s.hat), over, false), scale->type.dtype);
    if (fac_needs(n, 2)) dx[2] = fac_grad_as(fac_sum(dy[0], over, false), n->in[2]->type.dtype);
    if (!fac_needs(n, 0)) return;
    fac_value *dhat = scale ? fac_mul(dy[0], fac_grad_of_channels(scale, x)) : dy[0];
    dx[0] = fac_grad_unstandard(&s, dhat);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 7, to); }

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_instance_norm(x[0], x[1], x[2], fac_onnx_real(n, "epsilon", 1e-5));
}

static const fac_onnx onnx[] = { { "", "InstanceNormalization", 1, 0, NULL, load, 3 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_dims channels = { 1, { n->in[0]->type.dims.d[1] } };
    const fac_dtype dtype = n->in[0]->type.dtype;
    if ((!n->in[1] || !n->in[2]) && channels.d[0] < 0) return false;
    const char *ins[] = {
        fac_onnx_name(w, n->in[0]),
        n->in[1] ? fac_onnx_name(w, n->in[1]) : fac_onnx_full(w, dtype, channels, 1),
        n->in[2] ? fac_onnx_name(w, n->in[2]) : fac_onnx_full(w, dtype, channels, 0)
    };
    fac_onnx_put(w, "InstanceNormalization", 3, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_real(w, "epsilon", ((const attrs *)n->attrs)->epsilon);
    return true;
}

static const fac_case cases[] = {
    { "instance_norm(f32[2,3,4,5], f32[3], f32[3]) epsilon=1e-5", -1, 1, 1e-5 },
    { "instance_norm(f32[2,3,7], -, -) epsilon=0.01", -1, 1, 1e-5 },
    { "instance_norm(f32[0,3,7], f32[3], f32[3]) epsilon=1e-5", 0, 0, 0 },
    { 0 }
};

static void define(const fac_node *n, fac_value *out[]) {
    const fac_dims d = n->in[0]->type.dims;
    fac_dims over = { 0 };
    for (int k = 2; k < d.n; k++) over.d[over.n++] = k;
    const fac_standard s = fac_grad_standard(n->in[0], over, ((const attrs *)n->attrs)->epsilon);
    out[0] = fac_define_channels(s.hat, n->in[1], n->in[2]);
}

const fac_op fac_op_instance_norm = {
    .name = "instance_norm",
    .doc = "normalization of each plane of each sample",
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
    .layer = FAC_CLASS_INSTANCE_NORM,
    .torch = "InstanceNorm",
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_GROUP_NORM },
};
fac_value *fac_instance_norm(fac_value *x, fac_value *scale, fac_value *bias, double epsilon) {
    return fac_emit(&fac_op_instance_norm, &(attrs){ epsilon }, 3,
                    (fac_value *[]){ x, scale, bias });
}
