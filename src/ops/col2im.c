/* ONNX's Col2Im, PyTorch's fold: columns of patches summed to the image that they were cut from. */
#include <limits.h>
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/host_list.h"
#include "ops/shape.h"
#include "ops/window.h"

#if FAC_INTERFACE
typedef struct fac_col2im_opts {
    fac_dims dilation, stride,
        pad; /* of each spatial dim; pad: all first ones, then the last ones; none: 1, 1, 0 */
} fac_col2im_opts;
/* x N,C P,L: L patches of P elements, block's sizes, for each channel -> y N,C,image..: each
 * element of a patch is added where it comes from.  image, block: i64, one number for each of 1 to
 * 3 spatial dims.  Floats. */
fac_value *fac_col2im(fac_value *x, fac_value *image, fac_value *block,
                      const fac_col2im_opts *opts);
#endif

static const fac_attr table[] = { { "dilation", FAC_A_DIMS, offsetof(fac_col2im_opts, dilation), 0,
                                    0, 0, 0, NULL, "distance of a patch's elements" },
                                  { "stride", FAC_A_DIMS, offsetof(fac_col2im_opts, stride), 0, 0,
                                    0, 0, NULL, "distance of patches" },
                                  { "pad", FAC_A_DIMS, offsetof(fac_col2im_opts, pad), 0, 0, 0, 0,
                                    NULL, "around the image, first ones first" },
                                  { 0 } };
static const fac_port in[] = {
    { "x", FAC_FLOATS, 0 }, { "image", FAC_INTS, FAC_HOST }, { "block", FAC_INTS, FAC_HOST }, { 0 }
};

static int64_t of(const fac_dims *d, int k, int64_t missing) { return d->n ? d->d[k] : missing; }

static bool good(const fac_dims *d, int n, int64_t least) {
    if (d->n && d->n != n) return false;
    for (int k = 0; k < d->n; k++)
        if (d->d[k] < least || d->d[k] > INT_MAX) return false;
    return true;
}

/* The window along each dim; image and block are numbers.  false: they do not fit together. */
static bool windows(const fac_col2im_opts *o, const fac_contents *image, const fac_contents *block,
                    fac_window *w) {
    for (int k = 0; k < image->n; k++) {
        w[k] = (fac_window){ image->v[k],
                             block->v[k],
                             of(&o->stride, k, 1),
                             of(&o->dilation, k, 1),
                             of(&o->pad, k, 0),
                             of(&o->pad, image->n + k, 0),
                             0 };
        if (w[k].in < 0 || w[k].kernel < 1 || w[k].in > INT_MAX || w[k].kernel > INT_MAX)
            return false;
        if (fac_window_settle(&w[k], FAC_AUTO_NONE, false)) return false;
    }
    return true;
}

static bool infer(fac_node *n) {
    const fac_col2im_opts *o = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims;
    const int spatial = fac_host_length(n->in[fac_list_is_open(n->in[1]) ? 2 : 1]);
    fac_contents image, block;
    fac_window w[3];
    if (x->n != 3) return fac_fail(n, FAC_E_SHAPE, "x has %d dims, not 3", x->n);
    if (fac_list_is_open(n->in[1]) && fac_list_is_open(n->in[2]))
        return fac_rankless(n->out[0], n->in[0]->type.dtype), true;
    if (spatial < 1 || spatial > 3 || !fac_list_may_have(n->in[2], spatial))
        return fac_fail(n, FAC_E_SHAPE,
                        "image and block must have 1 to 3 numbers, one for each spatial dim");
    if (!good(&o->dilation, spatial, 1) || !good(&o->stride, spatial, 1) ||
        !good(&o->pad, 2 * spatial, 0))
        return fac_fail(n, FAC_E_ARGUMENT, "dilation, stride and pad do not fit %d spatial dims",
                        spatial);
    fac_dims y = { .n = 2 + spatial, .d = { x->d[0] } };
    for (int k = 1; k < y.n; k++) y.d[k] = fac_symbol(n->graph, NULL);
    if (fac_known_numbers(n->in[2], &block)) {
        int64_t patch = 1;
        for (int k = 0; k < spatial; k++)
            patch *= block.v[k] > 0 && block.v[k] < 4096 ? block.v[k] : 1;
        if (x->d[1] >= 0 && x->d[1] % patch)
            return fac_fail(n, FAC_E_SHAPE, "%lld rows are not channels of %lld",
                            (long long)x->d[1], (long long)patch);
        y.d[1] = fac_size_quotient(n->graph, x->d[1], patch);
        if (fac_known_numbers(n->in[1], &image)) {
            int64_t patches = 1;
            if (!windows(o, &image, &block, w))
                return fac_fail(n, FAC_E_SHAPE, "the block does not fit into the image");
            for (int k = 0; k < spatial; k++) patches *= w[k].out;
            if (x->d[2] >= 0 && x->d[2] != patches)
                return fac_fail(n, FAC_E_SHAPE, "%lld columns, the image has %lld patches",
                                (long long)x->d[2], (long long)patches);
            for (int k = 0; k < spatial; k++) y.d[2 + k] = image.v[k];
        }
    }
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, y };
    return true;
}

/* [C P, 1, P..]: element p of a channel's patch goes where it was. */
static fac_value *places(const fac_node *n, int64_t C, const fac_contents *block) {
    fac_dims d = { .n = 2 + block->n };
    int64_t patch = 1;
    for (int k = 0; k < block->n; k++) patch *= d.d[2 + k] = block->v[k];
    d.d[0] = C * patch;
    d.d[1] = 1;
    double *one = fac_alloc((size_t)(C * patch * patch) + 1, sizeof *one);
    if (!one)
        return fac_fail_graph(n->graph, FAC_E_NOMEM, "no memory for patches of %lld",
                              (long long)patch);
    for (int64_t k = 0; k < C * patch; k++) one[k * patch + k % patch] = 1;
    fac_value *v = fac_constant(n->graph, n->in[0]->type.dtype, d, one);
    fac_release(one);
    return v;
}

static fac_value *transposed(fac_value *x, fac_value *w, int64_t groups, int spatial,
                             const fac_window *v) {
    int64_t more[3];
    for (int k = 0; k < spatial; k++)
        more[k] = v[k].in - ((v[k].out - 1) * v[k].stride + (v[k].kernel - 1) * v[k].dilation + 1 -
                             v[k].pad - v[k].pad_end);
    if (spatial == 1)
        return fac_conv_transpose1d(
            x, w, NULL,
            &(fac_conv_transpose1d_opts){
                v->stride, { v->pad, v->pad_end }, v->dilation, more[0], 0, groups, 0 });
    if (spatial == 2)
        return fac_conv_transpose2d(
            x, w, NULL,
            &(fac_conv_transpose2d_opts){ { v[0].stride, v[1].stride },
                                          { v[0].pad, v[1].pad, v[0].pad_end, v[1].pad_end },
                                          { v[0].dilation, v[1].dilation },
                                          { more[0], more[1] },
                                          { 0 },
                                          groups,
                                          0 });
    return fac_conv_transpose3d(
        x, w, NULL,
        &(fac_conv_transpose3d_opts){
            { v[0].stride, v[1].stride, v[2].stride },
            { v[0].pad, v[1].pad, v[2].pad, v[0].pad_end, v[1].pad_end, v[2].pad_end },
            { v[0].dilation, v[1].dilation, v[2].dilation },
            { more[0], more[1], more[2] },
            { 0 },
            groups,
            0 });
}

static int64_t expands(const fac_node *n) {
    fac_contents c;
    return fac_dims_known(&n->out[0]->type.dims, 1) && fac_known_numbers(n->in[2], &c) ? 6 : 0;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_col2im_opts *o = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    fac_contents image, block;
    fac_window w[3];
    if (!fac_known_numbers(n->in[1], &image) || !fac_known_numbers(n->in[2], &block) ||
        !windows(o, &image, &block, w)) {
        out[0] = fac_fail_graph(n->graph, FAC_E_UNSUPPORTED,
                                "col2im: the sizes of image and block are not known");
        return;
    }
    if (!y->d[1]) {
        out[0] = fac_full(fac_ints(n->graph, *y), n->in[0]->type.dtype, 0);
        return;
    }
    fac_dims d = { .n = y->n, .d = { x->d[0], x->d[1] } };
    for (int k = 2; k < d.n; k++) d.d[k] = w[k - 2].out;
    fac_value *columns = fac_shaped(n->in[0], d);
    out[0] = transposed(columns, places(n, y->d[1], &block), y->d[1], y->n - 2, w);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    const fac_col2im_opts o = { fac_onnx_ints(n, "dilations"), fac_onnx_ints(n, "strides"),
                                fac_onnx_ints(n, "pads") };
    y[0] = fac_col2im(x[0], x[1], x[2], &o);
}
static const fac_onnx_attr names[] = {
    { "dilations", NULL }, { "strides", NULL }, { "pads", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "Col2Im", 18, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_col2im_opts *o = n->attrs;
    if (w->opset < 18) return false;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_list_of(w, n->in[1]),
                          fac_onnx_list_of(w, n->in[2]) };
    fac_onnx_put(w, "Col2Im", 3, ins, fac_onnx_name(w, n->out[0]));
    if (o->dilation.n) fac_onnx_put_ints(w, "dilations", o->dilation.n, o->dilation.d);
    if (o->stride.n) fac_onnx_put_ints(w, "strides", o->stride.n, o->stride.d);
    if (o->pad.n) fac_onnx_put_ints(w, "pads", o->pad.n, o->pad.d);
    return true;
}

static const fac_case cases[] = {
    { "col2im(f32[2,8,6], i64{3,4}, i64{2,2})", -1, 1, 1e-5 },
    { "col2im(f32[1,6,9], i64{5,6}, i64{2,3}) stride=2,1 dilation=1,2 pad=1,0,0,1", -1, 1, 1e-5 },
    { "col2im(f32[1,6,4], i64{9}, i64{3}) stride=2", -1, 1, 1e-5 },
    { "col2im(f32[1,16,8], i64{3,3,3}, i64{2,2,2})", -1, 1, 1e-5 },
    { "col2im(f16[1,4,6], i64{3,4}, i64{2,2})", -1, 1, 4e-3 },
    { "col2im(f32[0,4,6], i64{3,4}, i64{2,2})", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_col2im = {
    .name = "col2im",
    .doc = "columns of patches summed to an image",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_col2im_opts),
    .infer = infer,
    .expand = expand,
    .expands = expands,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_col2im(fac_value *x, fac_value *image, fac_value *block,
                      const fac_col2im_opts *opts) {
    return fac_emit(&fac_op_col2im, opts, 3, (fac_value *[]){ x, image, block });
}
