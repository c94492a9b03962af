/* Group normalization (Wu, He, 2018). */
#include <limits.h>
#include <math.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/norm.h"
#include "op_list.h"

#if FAC_INTERFACE
/* y[n,c,...] = (x[n,c,...] - mean) / sqrt(var + epsilon) scale[c] + bias[c],  mean and var over all elements of sample n in the
 * channels of c's group.   x N,C,...   scale and bias C (or, as in ONNX 18, one number for each group), or NULL.
 * f32 f64 f16 bf16.  FAC_E_SHAPE when the channels do not divide into the groups. */
fac_value *fac_group_norm(fac_value *x, fac_value *scale, fac_value *bias, int64_t groups, double epsilon);
#endif

typedef struct attrs { int64_t groups; double epsilon; } attrs;
static const fac_attr table[] = {
    { "groups", FAC_A_INT, offsetof(attrs, groups), 0, 1, 1, INT_MAX, NULL, "of channels" },
    { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0, NULL, "added to the variance" }, { 0 } };
static const fac_port in[] = {
    { "x", FAC_FLOATS, 0 }, { "scale", FAC_FLOATS, FAC_OPTIONAL }, { "bias", FAC_FLOATS, FAC_OPTIONAL }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    int64_t groups = ((const attrs *)n->attrs)->groups;
    if (x->n < 2) return fac_fail(n, FAC_E_SHAPE, "x must have a channel dim");
    int64_t channels = x->d[1];
    if (channels >= 0 && channels % groups)
        return fac_fail(n, FAC_E_SHAPE, "%lld channels do not divide into %lld groups", (long long)channels, (long long)groups);
    for (int k = 1; k < 3; k++) {
        if (!n->in[k]) continue;
        const fac_dims *d = &n->in[k]->type.dims;
        if (d->n != 1 || (d->d[0] != channels && d->d[0] != groups && d->d[0] >= 0 && channels >= 0))
            return fac_fail(n, FAC_E_SHAPE, "%s must have one number for each channel", in[k].name);
    }
    n->out[0]->type = n->in[0]->type;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_dims *d = &r->in[0].type.dims;
    const fac_array *scale = &r->in[1], *bias = &r->in[2];
    int64_t plane = 1, channels = d->d[1] / a->groups;                      /* of one group */
    for (int k = 2; k < d->n; k++) plane *= d->d[k];
    for (int64_t i = 0; i < d->d[0] * a->groups; i++) {
        const double *x = r->in[0].f + i * channels * plane;
        double *y = r->out[0].f + i * channels * plane, mean, var;
        int64_t g = i % a->groups;
        fac_moments(x, channels * plane, &mean, &var);
        double inverse = 1 / sqrt(var + a->epsilon);
        for (int64_t k = 0; k < channels * plane; k++) {
            int64_t c = g * channels + k / plane;
            y[k] = (x[k] - mean) * inverse;
            if (scale->f) y[k] *= scale->f[scale->type.dims.d[0] == d->d[1] ? c : g];
            if (bias->f) y[k] += bias->f[bias->type.dims.d[0] == d->d[1] ? c : g];
        }
    }
    return FAC_OK;
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 7, to); }

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    if (!fac_onnx_has(n, "num_groups")) y[0] = fac_fail_graph(g, FAC_E_FORMAT, "GroupNormalization without num_groups");
    else y[0] = fac_group_norm(x[0], x[1], x[2], fac_onnx_int(n, "num_groups", 0), fac_onnx_real(n, "epsilon", 1e-5));
}

static const fac_onnx_attr spellings[] = { { "num_groups", "groups" }, { "stash_type", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "GroupNormalization", 18, 0, spellings, load }, { 0 } };
static const fac_case cases[] = {
    { "group_norm(f32[2,6,3,4], f32[6], f32[6]) groups=3 epsilon=1e-5", -1, 1, 1e-5 },
    { "group_norm(f32[2,6,3], f32[2], f32[2]) groups=2 epsilon=1e-5", -1, 1, 1e-5 },
    { "group_norm(f32[2,4,5], -, -) groups=1 epsilon=0.01", -1, 1, 1e-5 },
    { "group_norm(f32[0,4,5], f32[4], f32[4]) groups=2 epsilon=1e-5", 0, 0, 0 }, { 0 } };

const fac_op fac_op_group_norm = {
    .name = "group_norm", .doc = "normalization of each sample over groups of channels", .in = in, .out = fac_ports_y,
    .attrs = table, .attrs_size = sizeof(attrs), .infer = infer, .ref = ref, .cost = cost, .onnx = onnx, .cases = cases,
};
fac_value *fac_group_norm(fac_value *x, fac_value *scale, fac_value *bias, int64_t groups, double epsilon) {
    return fac_emit(&fac_op_group_norm, &(attrs){ groups, epsilon }, 3, (fac_value *[]){ x, scale, bias });
}
