/* ONNX's MaxRoiPool, as Fast R-CNN defines it: boxes whose corners are rounded to pixels. */
#include <math.h>
#include "base/error.h"
#include "ops/cost.h"
#include "ops/index.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* y[r] = the largest pixel of each of height x width bins of a box of x.
 *   x N,C,H,W   boxes R,5 (image, x1, y1, x2, y2, inclusive)   y R,C,height,width; floats.  scale:
 * of boxes to pixels A bin without pixels is 0; an image number out of range is an error of the
 * run. */
fac_value *fac_max_roi_pool(fac_value *x, fac_value *boxes, int64_t height, int64_t width,
                            double scale);
#endif

typedef struct attrs {
    int64_t height, width;
    double scale;
} attrs;
static const fac_attr table[] = {
    { "height", FAC_A_INT, offsetof(attrs, height), 0, 1, 1, 1 << 20, NULL, "of y" },
    { "width", FAC_A_INT, offsetof(attrs, width), 0, 1, 1, 1 << 20, NULL, "of y" },
    { "scale", FAC_A_REAL, offsetof(attrs, scale), 0, 1, 0, 0, NULL, "of boxes to pixels of x" },
    { 0 }
};
static const fac_port in[] = { { "x", FAC_FLOATS, 0 }, { "boxes", FAC_FLOATS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims, *b = &n->in[1]->type.dims;
    if (x->n != 4) return fac_fail(n, FAC_E_SHAPE, "x has %d dims, not 4", x->n);
    if (b->n != 2 || (b->d[1] >= 0 && b->d[1] != 5))
        return fac_fail(n, FAC_E_SHAPE, "boxes must be R,5");
    n->out[0]->type =
        (fac_type){ n->in[0]->type.dtype, fac_shape(b->d[0], x->d[1], a->height, a->width) };
    return true;
}

typedef struct span {
    int64_t first, end;
} span;

static int64_t within(double v, int64_t size) {
    if (v > (double)size) return size;
    return v > 0 ? (int64_t)v : 0;
}

/* Pixels of bin k of `bins` between two corners. */
static span span_of(double from, double to, double scale, int64_t k, int64_t bins, int64_t size) {
    const double begin = round(from * scale), end = round(to * scale);
    const double bin = fmax(end - begin + 1, 1) / (double)bins;
    return (span){ within(begin + floor((double)k * bin), size),
                   within(begin + ceil((double)(k + 1) * bin), size) };
}

static double largest(const double *x, int64_t width, span h, span w) {
    double best = h.first < h.end && w.first < w.end ? -INFINITY : 0;
    for (int64_t i = h.first; i < h.end; i++)
        for (int64_t j = w.first; j < w.end; j++) best = fmax(best, x[i * width + j]);
    return best;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const attrs *a = r->attrs;
    const fac_dims *d = &r->in[0].type.dims;
    double *y = r->out[0].f;
    for (int64_t k = 0; k < r->out[0].type.dims.d[0]; k++) {
        const double *box = r->in[1].f + 5 * k;
        int64_t image;
        const fac_status s = fac_place_of_index((int64_t)box[0], d->d[0], &image, err);
        if (s) return s;
        for (int64_t c = 0; c < d->d[1]; c++)
            for (int64_t p = 0; p < a->height; p++)
                for (int64_t q = 0; q < a->width; q++) {
                    const span h = span_of(box[2], box[4], a->scale, p, a->height, d->d[2]);
                    const span w = span_of(box[1], box[3], a->scale, q, a->width, d->d[3]);
                    *y++ = largest(r->in[0].f + (image * d->d[1] + c) * d->d[2] * d->d[3], d->d[3],
                                   h, w);
                }
    }
    return FAC_OK;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    int64_t size[2] = { 0 };
    if (fac_onnx_ints_long(n, "pooled_shape", size, 2) != 2)
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "MaxRoiPool: pooled_shape must have two numbers");
    else
        y[0] = fac_max_roi_pool(x[0], x[1], size[0], size[1], fac_onnx_real(n, "spatial_scale", 1));
}
static const fac_onnx_attr names[] = { { "pooled_shape", NULL }, { "spatial_scale", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "MaxRoiPool", 1, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]) };
    fac_onnx_put(w, "MaxRoiPool", 2, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_ints(w, "pooled_shape", 2, (int64_t[]){ a->height, a->width });
    fac_onnx_put_real(w, "spatial_scale", a->scale);
    return true;
}

static const fac_case cases[] = {
    { "max_roi_pool(f32[1,2,6,5], f32[3,5]) height=2 width=3", 0, 0.9, 0 },
    { "max_roi_pool(f32[4,2,6,5], f32[3,5]) height=2 width=2 scale=2", 0, 3, 0 },
    { "max_roi_pool(f32[1,2,4,4], f32[0,5])", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_max_roi_pool = {
    .name = "max_roi_pool",
    .doc = "the largest pixels of boxes",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_max_roi_pool(fac_value *x, fac_value *boxes, int64_t height, int64_t width,
                            double scale) {
    return fac_emit(&fac_op_max_roi_pool, &(attrs){ height, width, scale }, 2,
                    (fac_value *[]){ x, boxes });
}
