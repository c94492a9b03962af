/* com.microsoft's CropAndResize, TensorFlow's crop_and_resize: boxes of images, read between pixels
 * at a grid whose corners are those of the box.  All sizes may be open. */
#include <string.h>
#include "ops/grad.h"
#include "ops/map_grad.h"
#include "ops/shape.h"

/* Places along one side of all boxes, [R, count]: the pixels next to them, i64, how far they are
 * beyond the first of these, and whether they are in the image. */
typedef struct side {
    fac_value *first, *second, *beyond, *inside;
} side;

static fac_value *column(fac_value *boxes, int k) { return fac_slice(boxes, 1, k, k + 1, 1); }

/* In the order of ONNX Runtime's sums: whether a place at the edge of the image is inside follows
 * from its last bit. */
static fac_value *places(fac_value *boxes, int from, fac_value *last, fac_value *count) {
    fac_value *zero = fac_number(boxes->graph, FAC_I64, 0),
              *one = fac_number(boxes->graph, FAC_I64, 1);
    fac_value *begin = column(boxes, from), *end = column(boxes, from + 2);
    fac_value *gaps = fac_cast(fac_max(fac_sub(count, one), one), boxes->type.dtype);
    fac_value *steps = fac_cast(fac_arange(zero, count, one), boxes->type.dtype);
    fac_value *pace = fac_div(fac_mul(fac_sub(end, begin), last), gaps);
    fac_value *even = fac_add(fac_mul(begin, last), fac_mul(steps, pace));
    fac_value *middle = fac_mul(fac_grad_times(fac_add(begin, end), 0.5), last);
    return fac_where(fac_greater(count, one), even, fac_add(middle, fac_grad_times(steps, 0)));
}

/* nearest: the first pixel is the nearest one; the middle goes up. */
static side side_of(fac_value *boxes, int from, fac_value *size, fac_value *count, bool nearest) {
    fac_value *last =
        fac_cast(fac_sub(size, fac_number(size->graph, FAC_I64, 1)), boxes->type.dtype);
    fac_value *at = places(boxes, from, last, count), *none = fac_grad_number(at, 0);
    fac_value *inside = fac_and(fac_greater_or_equal(at, none), fac_less_or_equal(at, last));
    at = fac_where(inside, at, none);
    fac_value *below = fac_floor(at), *beyond = fac_sub(at, below);
    if (nearest) {
        fac_value *up = fac_greater_or_equal(beyond, fac_grad_number(at, 0.5));
        below = fac_where(up, fac_ceil(at), below);
    }
    return (side){ fac_cast(below, FAC_I64), fac_cast(fac_ceil(at), FAC_I64), beyond, inside };
}

/* [R, count] as [R, count, 1] or [R, 1, count]. */
static fac_value *along(fac_value *v, int axis) {
    return fac_unsqueeze(v, fac_shape(axis ? 1 : 2));
}

/* Images as pixels of C numbers, and the number of the first one of each box's image, [R, 1, 1]. */
typedef struct source {
    fac_value *pixels, *base, *width;
} source;

static fac_value *read(const source *s, fac_value *row, fac_value *place) {
    fac_value *at = fac_add(fac_mul(along(row, 0), s->width), along(place, 1));
    return fac_gather(s->pixels, fac_add(at, s->base), 0);
}

static fac_value *between(fac_value *a, fac_value *b, fac_value *t) {
    return fac_add(a, fac_mul(fac_sub(b, a), t));
}

static fac_value *cropped(fac_value *x, fac_value *boxes, fac_value *images, fac_value *size,
                          bool nearest, double outside) {
    fac_value *height = fac_dim_of(x, 2), *width = fac_dim_of(x, 3);
    fac_value *sizes = fac_cast(size, FAC_I64), *number[2];
    for (int k = 0; k < 2; k++)
        number[k] = fac_squeeze(fac_slice(sizes, 0, k, k + 1, 1), fac_shape(0));
    const side h = side_of(boxes, 0, height, number[0], nearest),
               w = side_of(boxes, 1, width, number[1], nearest);
    const fac_dims flat = fac_shape(-1, x->type.dims.d[1]);
    fac_value *first = fac_mul(fac_cast(images, FAC_I64), fac_mul(height, width));
    const source s = { fac_reshape(fac_transpose(x, fac_shape(0, 2, 3, 1)), flat),
                       fac_unsqueeze(first, fac_shape(1, 2)), width };
    fac_value *y = read(&s, h.first, w.first);
    if (!nearest) {
        fac_value *right = fac_unsqueeze(along(w.beyond, 1), fac_shape(3)),
                  *down = fac_unsqueeze(along(h.beyond, 0), fac_shape(3));
        fac_value *top = between(y, read(&s, h.first, w.second), right);
        fac_value *bottom =
            between(read(&s, h.second, w.first), read(&s, h.second, w.second), right);
        y = between(top, bottom, down);
    }
    fac_value *inside = fac_and(along(h.inside, 0), along(w.inside, 1));
    y = fac_where(fac_unsqueeze(inside, fac_shape(3)), y, fac_grad_number(y, outside));
    return fac_transpose(y, fac_shape(0, 3, 1, 2));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const char *mode = fac_onnx_text(n, "mode", "bilinear");
    const bool nearest = !strcmp(mode, "nearest");
    if (!nearest && strcmp(mode, "bilinear"))
        y[0] = fac_fail_graph(g, FAC_E_FORMAT,
                              "CropAndResize: mode is \"%s\", expected bilinear or nearest", mode);
    else if (x[0]->type.dims.n != 4 || x[1]->type.dims.n != 2 || x[2]->type.dims.n != 1 ||
             x[3]->type.dims.n != 1)
        y[0] = fac_fail_graph(g, FAC_E_SHAPE,
                              "CropAndResize: x must be N,C,H,W, boxes R,4, their images R, the "
                              "sizes two numbers");
    else
        y[0] = cropped(x[0], x[1], x[2], x[3], nearest, fac_onnx_real(n, "extrapolation_value", 0));
}
static const fac_onnx_attr names[] = { { "mode", NULL }, { "extrapolation_value", NULL }, { 0 } };
const fac_onnx fac_reads_crop_and_resize[] = {
    { "com.microsoft", "CropAndResize", 1, 0, names, load, 4 }, { 0 }
};
