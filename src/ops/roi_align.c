/* ONNX's RoiAlign, as Mask R-CNN defines it: parts of images, read at places between pixels. */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/cost.h"
#include "ops/index.h"
#include "ops/onnx_put.h"
#include "ops/map_grad.h"
#include "ops/sampling.h"

#if FAC_INTERFACE
typedef struct fac_roi_align_opts {
    int64_t height, width; /* of y; 0: 1 */
    int64_t samples; /* along each side of a bin; 0: as many as it has pixels, by the size of each
                        box */
    double scale;    /* of boxes to pixels of x; 0: 1 */
    bool half_pixel; /* pixel centers lie at halves; else boxes are at least 1 x 1 */
    bool max; /* the largest sample of a bin, after ONNX that of its weighted taps; else their mean
               */
} fac_roi_align_opts;
/* y[r] = box r of image images[r], cut into height x width bins, each the mean of samples that are
 * interpolated linearly; what is more than 1 outside of the image is 0.
 *   x N,C,H,W   boxes R,4 (x1, y1, x2, y2)   images ints R   y R,C,height,width   Floats
 * An image number out of range is an error of the run.  Gradients need a number of samples. */
fac_value *fac_roi_align(fac_value *x, fac_value *boxes, fac_value *images,
                         const fac_roi_align_opts *opts);
#endif

#define AT(field) offsetof(fac_roi_align_opts, field)
static const fac_attr table[] = {
    { "height", FAC_A_INT, AT(height), 0, 1, 1, 1 << 20, NULL, "of y" },
    { "width", FAC_A_INT, AT(width), 0, 1, 1, 1 << 20, NULL, "of y" },
    { "samples", FAC_A_INT, AT(samples), 0, 0, 0, 1 << 10, NULL,
      "along a side of a bin; 0: by its size" },
    { "scale", FAC_A_REAL, AT(scale), 0, 1, 0, 0, NULL, "of boxes to pixels of x" },
    { "half_pixel", FAC_A_FLAG, AT(half_pixel), 0, 0, 0, 0, NULL, "pixel centers lie at halves" },
    { "max", FAC_A_FLAG, AT(max), 0, 0, 0, 0, NULL, "the largest sample instead of the mean" },
    { 0 }
};
#undef AT
static const fac_port in[] = {
    { "x", FAC_FLOATS, 0 }, { "boxes", FAC_FLOATS, 0 }, { "images", FAC_INTS, 0 }, { 0 }
};

static bool infer(fac_node *n) {
    const fac_roi_align_opts *o = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims, *b = &n->in[1]->type.dims, *i = &n->in[2]->type.dims;
    if (x->n != 4) return fac_fail(n, FAC_E_SHAPE, "x has %d dims, not 4", x->n);
    if (!x->d[2] || !x->d[3]) return fac_fail(n, FAC_E_SHAPE, "images without pixels");
    if (b->n != 2 || (b->d[1] >= 0 && b->d[1] != 4))
        return fac_fail(n, FAC_E_SHAPE, "boxes must be R,4");
    if (i->n != 1 || (i->d[0] >= 0 && b->d[0] >= 0 && i->d[0] != b->d[0]))
        return fac_fail(n, FAC_E_SHAPE, "images must have one number for each box");
    n->out[0]->type =
        (fac_type){ n->in[0]->type.dtype, fac_shape(b->d[0], x->d[1], o->height, o->width) };
    return true;
}

/* ---- meaning ---- */

/* One side of a box: begin, size of a bin, samples in a bin. */
typedef struct side {
    double begin, bin;
    int64_t samples;
} side;

static side side_of(const fac_roi_align_opts *o, double from, double to, int64_t bins) {
    const double off = o->half_pixel ? 0.5 : 0, begin = from * o->scale - off;
    double size = to * o->scale - off - begin;
    if (!o->half_pixel && !(size >= 1)) size = 1;
    const double bin = size / (double)bins, many = ceil(bin);
    int64_t samples = o->samples;
    if (!samples) samples = many > 0 ? (int64_t)fmin(many, 1e12) : 0;
    return (side){ begin, bin, samples };
}

static fac_tap_list taps_of(double c, int64_t size) {
    if (!(c >= -1 && c <= (double)size)) return (fac_tap_list){ .count = 2 };
    return fac_tap_list_linear(fmin(fmax(c, 0), (double)size - 1), size);
}

static double largest_tap(const double *x, int64_t width, const fac_tap_list *h,
                          const fac_tap_list *w) {
    double best = -INFINITY;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            best = fmax(best, h->weight[i] * w->weight[j] * x[h->at[i] * width + w->at[j]]);
    return best;
}

static double linear(const double *x, int64_t width, const fac_tap_list *h, const fac_tap_list *w) {
    double sum = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            sum += h->weight[i] * w->weight[j] * x[h->at[i] * width + w->at[j]];
    return sum;
}

/* Samples of bin k that may see the image: a huge box has billions that do not. */
static void seen(const side *s, int64_t k, int64_t size, int64_t *first, int64_t *end) {
    const double step = s->bin / (double)s->samples,
                 base = s->begin + ((double)k + 0.5 / (double)s->samples) * s->bin;
    *first = 0;
    *end = s->samples;
    if (!(step > 0)) return;
    const double from = floor((-1 - base) / step) - 1, to = ceil(((double)size - base) / step) + 2;
    if (from > 0) *first = from < (double)s->samples ? (int64_t)from : s->samples;
    if (to < (double)s->samples) *end = to > (double)*first ? (int64_t)to : *first;
}

static double place(const side *s, int64_t k, int64_t i) {
    return s->begin + s->bin * ((double)k + ((double)i + 0.5) / (double)s->samples);
}

/* One bin of one channel. */
static double bin_of(const fac_roi_align_opts *o, const double *x, const fac_dims *d, const side *h,
                     const side *w, int64_t p, int64_t q) {
    const double count = (double)h->samples * (double)w->samples;
    int64_t i0, i1, j0, j1;
    seen(h, p, d->d[2], &i0, &i1);
    seen(w, q, d->d[3], &j0, &j1);
    const bool all = i1 - i0 == h->samples && j1 - j0 == w->samples;
    double sum = 0, best = all && count > 0 ? -INFINITY : 0;
    for (int64_t i = i0; i < i1; i++)
        for (int64_t j = j0; j < j1; j++) {
            const fac_tap_list rows = taps_of(place(h, p, i), d->d[2]),
                               columns = taps_of(place(w, q, j), d->d[3]);
            best = fmax(best, largest_tap(x, d->d[3], &rows, &columns));
            sum += linear(x, d->d[3], &rows, &columns);
        }
    return o->max ? best : sum / fmax(count, 1);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_roi_align_opts *o = r->attrs;
    const fac_dims *d = &r->in[0].type.dims;
    double *y = r->out[0].f;
    for (int64_t k = 0; k < r->out[0].type.dims.d[0]; k++) {
        const double *box = r->in[1].f + 4 * k;
        int64_t image;
        const fac_status s = fac_place_of_index(r->in[2].i[k], d->d[0], &image, err);
        if (s) return s;
        const side w = side_of(o, box[0], box[2], o->width),
                   h = side_of(o, box[1], box[3], o->height);
        for (int64_t c = 0; c < d->d[1]; c++)
            for (int64_t p = 0; p < o->height; p++)
                for (int64_t q = 0; q < o->width; q++)
                    *y++ = bin_of(o, r->in[0].f + (image * d->d[1] + c) * d->d[2] * d->d[3], d, &h,
                                  &w, p, q);
    }
    return FAC_OK;
}

/* ---- as ops, where the number of samples is given ---- */

static fac_value *corner(const fac_roi_align_opts *o, fac_value *boxes, int column) {
    fac_value *v = fac_grad_times(fac_slice(boxes, 1, column, column + 1, 1), o->scale);
    return o->half_pixel ? fac_grad_shifted(v, -0.5) : v;
}

/* Places of all samples in bins: p + (i + 1/2) / samples. */
static fac_value *steps(fac_graph *g, fac_dtype dtype, int64_t bins, int64_t samples) {
    double *to = fac_alloc((size_t)(bins * samples), sizeof *to);
    if (!to)
        return fac_fail_graph(g, FAC_E_NOMEM, "no memory for %lld samples",
                              (long long)(bins * samples));
    for (int64_t k = 0; k < bins * samples; k++) to[k] = ((double)k + 0.5) / (double)samples;
    fac_value *v = fac_constant(g, dtype, fac_shape(1, bins * samples), to);
    fac_release(to);
    return v;
}

/* [R, bins samples, taps] along one side. */
static fac_taps side_taps(const fac_roi_align_opts *o, fac_value *boxes, int column, int64_t bins,
                          int64_t size) {
    fac_value *begin = corner(o, boxes, column),
              *length = fac_sub(corner(o, boxes, column + 2), begin);
    if (!o->half_pixel) length = fac_max(length, fac_grad_number(length, 1));
    fac_value *step = steps(boxes->graph, boxes->type.dtype, bins, o->samples);
    fac_value *c = fac_add(begin, fac_mul(fac_grad_times(length, 1 / (double)bins), step));
    fac_value *outside = fac_or(fac_grad_below(c, -1), fac_grad_above(c, (double)size));
    fac_value *kept =
        fac_max(fac_min(c, fac_grad_number(c, (double)size - 1)), fac_grad_number(c, 0));
    fac_taps taps = fac_taps_linear(kept, size);
    taps.weight = fac_grad_where(fac_unsqueeze(fac_not(outside), fac_shape(-1)), taps.weight);
    return taps;
}

static int64_t expands(const fac_node *n) {
    const fac_roi_align_opts *o = n->attrs;
    const fac_dims *d = &n->in[0]->type.dims;
    const bool known = fac_dims_known(d, 1) && n->in[1]->type.dims.d[0] >= 0;
    return known && o->samples ? 80 : 0;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_roi_align_opts *o = n->attrs;
    const fac_dims *d = &n->in[0]->type.dims;
    const fac_dtype dtype = n->in[0]->type.dtype, wide = fac_grad_wide(dtype);
    const int64_t R = n->in[1]->type.dims.d[0], s = o->samples;
    fac_value *boxes = fac_grad_as(n->in[1], wide);
    fac_taps h = side_taps(o, boxes, 1, o->height, d->d[2]),
             w = side_taps(o, boxes, 0, o->width, d->d[3]);
    h.at = fac_unsqueeze(h.at, fac_shape(2));
    h.weight = fac_unsqueeze(h.weight, fac_shape(2));
    w.at = fac_unsqueeze(w.at, fac_shape(1));
    w.weight = fac_unsqueeze(w.weight, fac_shape(1));
    const fac_taps taps = fac_taps_join(h, w, d->d[3]);
    fac_value *y = fac_taps_read(fac_grad_as(n->in[0], wide), n->in[2], taps);
    y = o->max ? fac_reduce_max(y, fac_shape(2), false) : fac_sum(y, fac_shape(2), false);
    y = fac_shaped(y, fac_shape(R, o->height, s, o->width, s, d->d[1]));
    y = o->max ? fac_reduce_max(y, fac_shape(2, 4), false) : fac_mean(y, fac_shape(2, 4), false);
    out[0] = fac_grad_as(fac_transpose(y, fac_shape(0, 3, 1, 2)), dtype);
}

static void cost(const fac_node *n, fac_cost *c) {
    const fac_roi_align_opts *o = n->attrs;
    const double s = o->samples ? (double)o->samples : 2;
    fac_cost_bytes(n, c);
    c->macs = 4 * s * s * fac_cost_count(n->out[0]);
    c->other = 0;
}

/* ---- ONNX ---- */

/* Opset 10 knew no half pixels, later ones take them by default. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const char *mode = fac_onnx_text(n, "mode", "avg");
    const char *coordinates = n->opset < 16 ? "output_half_pixel" : "half_pixel";
    coordinates = fac_onnx_text(n, "coordinate_transformation_mode", coordinates);
    const fac_roi_align_opts o = {
        fac_onnx_int(n, "output_height", 1),  fac_onnx_int(n, "output_width", 1),
        fac_onnx_int(n, "sampling_ratio", 0), fac_onnx_real(n, "spatial_scale", 1),
        !strcmp(coordinates, "half_pixel"),   !strcmp(mode, "max")
    };
    if (!o.max && strcmp(mode, "avg"))
        y[0] =
            fac_fail_graph(g, FAC_E_FORMAT, "RoiAlign: mode is \"%s\", expected avg or max", mode);
    else
        y[0] = fac_roi_align(x[0], x[1], x[2], &o);
}
static const fac_onnx_attr names[] = { { "mode", NULL },
                                       { "output_height", NULL },
                                       { "output_width", NULL },
                                       { "sampling_ratio", NULL },
                                       { "spatial_scale", NULL },
                                       { "coordinate_transformation_mode", NULL },
                                       { 0 } };
static const fac_onnx onnx[] = { { "", "RoiAlign", 10, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_roi_align_opts *o = n->attrs;
    if (w->opset < 10 || (w->opset < 16 && o->half_pixel)) return false;
    const fac_dtype x = n->in[0]->type.dtype, rois = n->in[1]->type.dtype;
    /* ONNX has one type for them */
    const fac_dtype both = fac_dtype_get(x)->bits > fac_dtype_get(rois)->bits ? x : rois;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]),
                          fac_onnx_list_of(w, n->in[2]) };
    if (x != both) ins[0] = fac_onnx_cast(w, ins[0], both, NULL);
    if (rois != both) ins[1] = fac_onnx_cast(w, ins[1], both, NULL);
    const char *y = x == both ? fac_onnx_name(w, n->out[0]) : NULL;
    y = fac_onnx_put(w, "RoiAlign", 3, ins, y);
    fac_onnx_put_text(w, "mode", o->max ? "max" : "avg");
    fac_onnx_put_int(w, "output_height", o->height);
    fac_onnx_put_int(w, "output_width", o->width);
    fac_onnx_put_int(w, "sampling_ratio", o->samples);
    fac_onnx_put_real(w, "spatial_scale", o->scale);
    if (w->opset >= 16)
        fac_onnx_put_text(w, "coordinate_transformation_mode",
                          o->half_pixel ? "half_pixel" : "output_half_pixel");
    if (x != both) fac_onnx_cast(w, y, x, fac_onnx_name(w, n->out[0]));
    return true;
}

static const fac_case cases[] = {
    { "roi_align(f32[1,3,5,6], f32[4,4], i64{0,0,0,0}) height=2 width=3 samples=2", 0, 5, 1e-5 },
    { "roi_align(f32[2,2,5,6], f32[3,4], i64{0,1,1}) height=2 width=2 samples=1 half_pixel "
      "scale=0.5",
      0, 9, 1e-5 },
    { "roi_align(f32[2,2,5,6], f32[2,4], i32{1,0}) height=2 width=1 samples=2 max", 0, 6, 1e-5 },
    { "roi_align(f16[1,2,4,4], f32[2,4], i64{0,0}) samples=3", 0, 4, 4e-3 },
    { "roi_align(f32[1,2,4,4], f32[0,4], i64[0]) samples=2", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_roi_align = {
    .name = "roi_align",
    .doc = "boxes of images, read between pixels",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_roi_align_opts),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .expands = expands,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_roi_align(fac_value *x, fac_value *boxes, fac_value *images,
                         const fac_roi_align_opts *opts) {
    return fac_emit(&fac_op_roi_align, opts, 3, (fac_value *[]){ x, boxes, images });
}
