/* Group normalization (Wu, He, 2018). */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/cost.h"
#include "ops/define.h"
#include "ops/grad.h"
#include "ops/norm.h"
#include "ops/onnx_put.h"
#include "op_list.h"

#if FAC_INTERFACE
/* y[n,c,...] = (x[n,c,...] - mean) / sqrt(var + epsilon) scale[c] + bias[c],  mean and var over all
 * elements of sample n in the channels of c's group.  x N,C,...  scale and bias C (or, as in ONNX
 * 18, one number for each group), or NULL. f32 f64 f16 bf16.  FAC_E_SHAPE when the channels do not
 * divide into the groups. */
fac_value *fac_group_norm(fac_value *x, fac_value *scale, fac_value *bias, int64_t groups,
                          double epsilon);
#endif

typedef struct attrs {
    int64_t groups;
    double epsilon;
} attrs;
static const fac_attr table[] = {
    { "groups", FAC_A_INT, offsetof(attrs, groups), 0, 1, 1, INT_MAX, NULL, "of channels" },
    { "epsilon", FAC_A_REAL, offsetof(attrs, epsilon), 0, 0, 0, 0, NULL, "added to the variance" },
    { 0 }
};
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "scale", FAC_FLOATS, FAC_OPTIONAL },
                               { "bias", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    int64_t groups = ((const attrs *)n->attrs)->groups;
    if (x->n < 2) return fac_fail(n, FAC_E_SHAPE, "x must have a channel dim");
    int64_t channels = x->d[1];
    if (channels >= 0 && channels % groups)
        return fac_fail(n, FAC_E_SHAPE, "%lld channels do not divide into %lld groups",
                        (long long)channels, (long long)groups);
    for (int k = 1; k < 3; k++) {
        if (!n->in[k]) continue;
        const fac_dims *d = &n->in[k]->type.dims;
        if (d->n != 1 ||
            (d->d[0] != channels && d->d[0] != groups && d->d[0] >= 0 && channels >= 0))
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
    int64_t plane = 1, channels = d->d[1] / a->groups; /* of one group */
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

static bool has_each(const fac_node *n, int k) {
    return n->in[k]->type.dims.d[0] == n->in[0]->type.dims.d[1];
}

/* x, shaped N,C,... or N,groups,all others, summed for input k. */
static fac_value *sum_of(const fac_node *n, fac_value *v, int k) {
    fac_dims over = { .n = 1 };
    for (int i = 2; i < v->type.dims.n; i++) over.d[over.n++] = i;
    return fac_grad_as(fac_sum(v, over, false), n->in[k]->type.dtype);
}

/* As x with one dim for all that is normalized together. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0], *scale = n->in[1];
    fac_dims apart = fac_shape(0, a->groups, -1);
    fac_standard s = fac_grad_standard(fac_reshape(x, apart), fac_shape(2), a->epsilon);
    fac_value *dy_apart = fac_reshape(dy[0], apart);
    if (fac_needs(n, 1)) {
        bool each = has_each(n, 1);
        fac_value *scaled =
            each ? fac_mul(dy[0], fac_reshape_like(s.hat, x)) : fac_mul(dy_apart, s.hat);
        dx[1] = sum_of(n, scaled, 1);
    }
    if (fac_needs(n, 2)) dx[2] = sum_of(n, has_each(n, 2) ? dy[0] : dy_apart, 2);
    if (!fac_needs(n, 0)) return;
    fac_value *dhat = dy_apart;
    if (scale && has_each(n, 1))
        dhat = fac_reshape(fac_mul(dy[0], fac_grad_of_channels(scale, x)), apart);
    else if (scale) /* groups stand where channels do */
        dhat = fac_mul(dhat, fac_grad_of_channels(scale, dhat));
    dx[0] = fac_reshape_like(fac_grad_unstandard(&s, dhat), x);
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 7, to); }

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    if (!fac_onnx_has(n, "num_groups"))
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "GroupNormalization without num_groups");
    else
        y[0] = fac_group_norm(x[0], x[1], x[2], fac_onnx_int(n, "num_groups", 0),
                              fac_onnx_real(n, "epsilon", 1e-5));
}

static const fac_onnx_attr spellings[] = { { "num_groups", "groups" },
                                           { "stash_type", NULL },
                                           { 0 } };
static const fac_onnx onnx[] = { { "", "GroupNormalization", 18, 0, spellings, load, 3 }, { 0 } };
/* ONNX has scale and bias with one number for each channel since opset 21 (what it had before is
 * deprecated).  What does not fit is an instance norm of N,groups,all others, whose result is
 * scaled and shifted. */
/* One number for each channel of x, of as many as there are groups or channels. */
static const char *for_channels(const fac_onnx_writer *w, const char *x, const char *v) {
    const int64_t second = 1, each[] = { -1, 1 }, all = -1, one = 1;
    const char *sizes = fac_onnx_unary(w, "Shape", x, NULL);
    const char *channels = fac_onnx_binary(w, "Gather", sizes, fac_onnx_list(w, 1, &second), NULL);
    const char *times =
        fac_onnx_binary(w, "Div", channels, fac_onnx_unary(w, "Shape", v, NULL), NULL);
    const char *to[] = { fac_onnx_list(w, 1, &one), times };
    times = fac_onnx_put(w, "Concat", 2, to, NULL);
    fac_onnx_put_int(w, "axis", 0);
    v = fac_onnx_binary(w, "Reshape", v, fac_onnx_list(w, 2, each), NULL);
    v = fac_onnx_binary(w, "Expand", v, times, NULL);
    return fac_onnx_binary(w, "Reshape", v, fac_onnx_list(w, 1, &all), NULL);
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const fac_type *x = &n->in[0]->type;
    bool fits = w->opset >= 21 && n->in[1] && n->in[2];
    for (int k = 1; k < 3 && fits; k++) fits = n->in[k]->type.dims.d[0] == x->dims.d[1];
    if (fits) return fac_onnx_plain(w, n);
    const char *from = fac_onnx_name(w, n->in[0]), *y = fac_onnx_name(w, n->out[0]);
    const fac_dims groups = fac_shape(a->groups);
    fac_dims sample = { .n = x->dims.n - 1 };
    memcpy(sample.d, x->dims.d + 1, (size_t)sample.n * sizeof *sample.d);
    const int64_t size = fac_dims_count(&sample), rest = size < 0 ? -1 : size / a->groups;
    const char *apart = fac_onnx_binary(
        w, "Reshape", from, fac_onnx_list(w, 3, (int64_t[]){ 0, a->groups, rest }), NULL);
    const char *ins[] = { apart, fac_onnx_full(w, x->dtype, groups, 1),
                          fac_onnx_full(w, x->dtype, groups, 0) };
    const char *normal = fac_onnx_put(w, "InstanceNormalization", 3, ins, NULL);
    fac_onnx_put_real(w, "epsilon", a->epsilon);
    /* those of groups before the channels are put together, those of channels after that */
    bool together = false;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 1; k < 3; k++) {
            const int64_t count = n->in[k] ? n->in[k]->type.dims.d[0] : 0;
            const bool open = count < 0 && count != x->dims.d[1];
            const bool grouped = count != x->dims.d[1] && count == a->groups;
            if (!n->in[k] || grouped == together) continue;
            int64_t shape[FAC_DIMS] = { -1, 1, 1, 1, 1, 1, 1, 1 };
            const char *list = fac_onnx_list(w, together ? x->dims.n - 1 : 2, shape);
            const char *v = fac_onnx_name(w, n->in[k]);
            if (open) v = for_channels(w, from, v);
            v = fac_onnx_binary(w, "Reshape", v, list, NULL);
            normal = fac_onnx_binary(w, k == 1 ? "Mul" : "Add", normal, v, NULL);
        }
        if (!together)
            normal =
                fac_onnx_binary(w, "Reshape", normal, fac_onnx_unary(w, "Shape", from, NULL), NULL);
        together = true;
    }
    return fac_onnx_unary(w, "Identity", normal, y) != NULL;
}

static const fac_case cases[] = {
    { "group_norm(f32[2,6,3,4], f32[6], f32[6]) groups=3 epsilon=1e-5", -1, 1, 1e-5 },
    { "group_norm(f32[2,6,3], f32[2], f32[2]) groups=2 epsilon=1e-5", -1, 1, 1e-5 },
    { "group_norm(f32[2,4,5], -, -) groups=1 epsilon=0.01", -1, 1, 1e-5 },
    { "group_norm(f32[0,4,5], f32[4], f32[4]) groups=2 epsilon=1e-5", 0, 0, 0 },
    { 0 }
};

static void define(const fac_node *n, fac_value *out[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0];
    const fac_dims d = x->type.dims;
    const int64_t each = a->groups && d.d[1] > 0 ? d.d[1] / a->groups : 0;
    if (fac_dims_count(&d) <= 0 || !each) return;
    fac_value *apart = fac_reshape(x, fac_shape(d.d[0], a->groups, -1));
    const fac_standard s = fac_grad_standard(apart, fac_shape(2), a->epsilon);
    out[0] = fac_define_channels(fac_reshape(s.hat, d), n->in[1], n->in[2]);
}

const fac_op fac_op_group_norm = {
    .name = "group_norm",
    .doc = "normalization of each sample over groups of channels",
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
    .layer = FAC_CLASS_GROUP_NORM,
    .torch = "GroupNorm",
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_GROUP_NORM },
};
fac_value *fac_group_norm(fac_value *x, fac_value *scale, fac_value *bias, int64_t groups,
                          double epsilon) {
    return fac_emit(&fac_op_group_norm, &(attrs){ groups, epsilon }, 3,
                    (fac_value *[]){ x, scale, bias });
}
