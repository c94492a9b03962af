/* ONNX's MaxUnpool: the maxima of a max pooling back where they were, zeros elsewhere. */
#include <limits.h>
#include <string.h>
#include "ops/constant.h"
#include "ops/host_list.h"
#include "ops/onnx_put.h"
#include "ops/shape.h"
#include "ops/window.h"

#if FAC_INTERFACE
/* x N,C,spatial.. and where its elements were, i64 of equal dims, as max_pool counts them: through
 * the whole of y. y N,C,..: a spatial dim is (in - 1) stride - pads + kernel.  shape, an i64 with
 * all dims of y, or NULL: y of these sizes, whose first elements are those.  A place outside is an
 * error of the run.  1 to 3 spatial dims; floats and integers. */
typedef struct fac_max_unpool_opts {
    fac_dims kernel, stride,
        pad; /* pad: all first ones, then the last ones; stride and pad: none means 1 and 0 */
} fac_max_unpool_opts;
fac_value *fac_max_unpool(fac_value *x, fac_value *indices, fac_value *shape,
                          const fac_max_unpool_opts *opts);
#endif

static const fac_attr table[] = { { "kernel", FAC_A_DIMS, offsetof(fac_max_unpool_opts, kernel), 0,
                                    0, 0, 0, NULL, "size of a window" },
                                  { "stride", FAC_A_DIMS, offsetof(fac_max_unpool_opts, stride), 0,
                                    0, 0, 0, NULL, "distance of windows" },
                                  { "pad", FAC_A_DIMS, offsetof(fac_max_unpool_opts, pad), 0, 0, 0,
                                    0, NULL, "of the pooling, first ones first" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_NUMBERS, 0 },
                               { "indices", FAC_INTS, 0 },
                               { "shape", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { 0 } };

static bool within(const fac_dims *d, int64_t least) {
    for (int k = 0; k < d->n; k++)
        if (d->d[k] < least || d->d[k] > INT_MAX) return false;
    return true;
}

/* Dims by the formula; false after fac_fail. */
static bool unpooled(fac_node *n, fac_dims *y) {
    const fac_max_unpool_opts *o = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims;
    const int spatial = x->n - 2;
    if (spatial < 1 || spatial > 3)
        return fac_fail(n, FAC_E_SHAPE, "x has %d dims, not 3 to 5", x->n);
    if (o->kernel.n != spatial || (o->stride.n && o->stride.n != spatial) ||
        (o->pad.n && o->pad.n != 2 * spatial) || !within(&o->kernel, 1) || !within(&o->stride, 1) ||
        !within(&o->pad, 0))
        return fac_fail(n, FAC_E_ARGUMENT, "kernel, stride and pad do not fit %d spatial dims",
                        spatial);
    *y = *x;
    for (int k = 0; k < spatial; k++) {
        const int64_t stride = o->stride.n ? o->stride.d[k] : 1, size = x->d[2 + k];
        const int64_t pads = o->pad.n ? o->pad.d[k] + o->pad.d[spatial + k] : 0,
                      more = o->kernel.d[k] - pads - stride;
        fac_graph *g = n->graph;
        const int64_t room = fac_size_product(g, size, stride);
        y->d[2 + k] = more < 0 ? fac_size_difference(g, room, -more) : fac_size_sum(g, room, more);
        if (size >= 0 && y->d[2 + k] < 0)
            return fac_fail(n, FAC_E_SHAPE, "pads leave nothing of spatial dim %d", k);
    }
    return true;
}

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    fac_type y = n->in[0]->type;
    fac_contents shape;
    fac_dims own;
    if (!unpooled(n, &own)) return false;
    const fac_dims *at = &n->in[1]->type.dims;
    bool alike = at->n == x->n;
    for (int k = 0; alike && k < x->n; k++)
        alike = at->d[k] < 0 || x->d[k] < 0 || at->d[k] == x->d[k];
    if (!alike) return fac_fail(n, FAC_E_SHAPE, "indices must have the dims of x");
    y.dims = own;
    if (n->in[2]) {
        const bool known = fac_known(n->in[2], &shape);
        if (!fac_list_may_have(n->in[2], x->n))
            return fac_fail(n, FAC_E_SHAPE, "shape must have %d numbers", x->n);
        for (int k = 0; k < x->n; k++) {
            y.dims.d[k] = known ? shape.v[k] : fac_symbol(n->graph, NULL);
            if (y.dims.d[k] >= 0 && own.d[k] >= 0 && y.dims.d[k] < own.d[k])
                return fac_fail(n, FAC_E_SHAPE, "dim %d is to be %lld, its elements reach to %lld",
                                k, (long long)y.dims.d[k], (long long)own.d[k]);
        }
    }
    n->out[0]->type = y;
    return true;
}

static bool sizes(const fac_node *n, fac_dims *own) {
    fac_node copy = *n;
    return fac_dims_known(&n->in[0]->type.dims, 0) && fac_dims_known(&n->out[0]->type.dims, 0) &&
           unpooled(&copy, own);
}

static int64_t expands(const fac_node *n) {
    fac_dims own;
    return sizes(n, &own) ? 8 : 0;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_dims *y = &n->out[0]->type.dims;
    fac_graph *g = n->graph;
    fac_dims own;
    if (!sizes(n, &own)) {
        out[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "max_unpool: its sizes are not known");
        return;
    }
    fac_value *flat = fac_ints(g, fac_shape(fac_dims_count(&n->in[0]->type.dims)));
    fac_value *x = fac_reshape_exactly(n->in[0], flat), *at = fac_reshape_exactly(n->in[1], flat);
    fac_value *zeros = fac_full(fac_ints(g, fac_shape(fac_dims_count(&own))), x->type.dtype, 0);
    out[0] = fac_shaped(fac_scatter_elements(zeros, at, x, 0, FAC_SCATTER_NONE), own);
    for (int k = 0; k < y->n; k++) { /* the sizes that were asked for may be larger */
        if (y->d[k] == own.d[k]) continue;
        fac_value *more = fac_ints(g, fac_shape(0, y->d[k] - own.d[k]));
        out[0] = fac_pad(out[0], more, NULL, fac_ints(g, fac_shape(k)), FAC_PAD_CONSTANT);
    }
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    const fac_max_unpool_opts o = { fac_onnx_ints(n, "kernel_shape"), fac_onnx_ints(n, "strides"),
                                    fac_onnx_ints(n, "pads") };
    y[0] = fac_max_unpool(x[0], x[1], n->nin > 2 ? x[2] : NULL, &o);
}
static const fac_onnx_attr names[] = {
    { "kernel_shape", NULL }, { "strides", NULL }, { "pads", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "MaxUnpool", 9, 0, names, load, 2 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_max_unpool_opts *o = n->attrs;
    if (w->opset < 9) return false;
    const char *at = fac_onnx_name(w, n->in[1]);
    if (n->in[1]->type.dtype != FAC_I64) at = fac_onnx_cast(w, at, FAC_I64, NULL);
    const char *ins[] = { fac_onnx_name(w, n->in[0]), at,
                          n->in[2] ? fac_onnx_list_of(w, n->in[2]) : NULL };
    fac_onnx_put(w, "MaxUnpool", 3, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_ints(w, "kernel_shape", o->kernel.n, o->kernel.d);
    if (o->stride.n) fac_onnx_put_ints(w, "strides", o->stride.n, o->stride.d);
    if (o->pad.n) fac_onnx_put_ints(w, "pads", o->pad.n, o->pad.d);
    return true;
}

static const fac_case cases[] = {
    { "max_unpool(f32[1,1,2,2], i64[1,1,2,2]) kernel=2,2 stride=2,2", 0, 15, 0 },
    { "max_unpool(f32[1,2,3], i64[1,2,3], i64{1,2,8}) kernel=3 stride=2 pad=1,0", 0, 11, 0 },
    { "max_unpool(i32[1,1,1,2,1], i64[1,1,1,2,1]) kernel=1,2,2", 0, 5, 0 },
    { "max_unpool(f32[0,1,2,2], i64[0,1,2,2]) kernel=2,2 stride=2,2", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_max_unpool = {
    .name = "max_unpool",
    .doc = "maxima of a pooling back where they were",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_max_unpool_opts),
    .infer = infer,
    .expand = expand,
    .expands = expands,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_max_unpool(fac_value *x, fac_value *indices, fac_value *shape,
                          const fac_max_unpool_opts *opts) {
    return fac_emit(&fac_op_max_unpool, opts, 3, (fac_value *[]){ x, indices, shape });
}
