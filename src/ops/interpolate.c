/* Resizing of any axes: linear and cubic interpolation, and nearest neighbours outside of x; what
 * all of Resize and Upsample is read as.  Axes are independent of each other: y is x times one
 * small matrix for each. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/cost.h"
#include "ops/host_list.h"
#include "ops/interpolate.h"
#include "ops/shape.h"

#if FAC_INTERFACE
typedef enum fac_interpolate_mode {
    FAC_INTERPOLATE_NEAREST,
    FAC_INTERPOLATE_LINEAR,
    FAC_INTERPOLATE_CUBIC
} fac_interpolate_mode;
/* Where element i of y lies in x, s being the scale; ONNX's coordinate_transformation_mode, in its
 * words half_pixel, pytorch_half_pixel, align_corners, asymmetric, tf_crop_and_resize,
 * half_pixel_symmetric, tf_half_pixel_for_nn. */
typedef enum fac_interpolate_coordinates {
    FAC_INTERPOLATE_HALF_PIXEL,         /* (i + 1/2) / s - 1/2 */
    FAC_INTERPOLATE_PYTORCH_HALF_PIXEL, /* the same; 0 where y has one element */
    FAC_INTERPOLATE_ALIGN_CORNERS,      /* i (in - 1) / (out - 1) */
    FAC_INTERPOLATE_ASYMMETRIC,         /* i / s */
    FAC_INTERPOLATE_CROP,               /* of the part roi of x, whose ends are at 0 and 1 */
    FAC_INTERPOLATE_SYMMETRIC,          /* half_pixel, with the centers of both on each other */
    FAC_INTERPOLATE_TF_HALF_PIXEL       /* (i + 1/2) / s */
} fac_interpolate_coordinates;
typedef enum fac_interpolate_rounding { /* nearest: of a place between two elements */
                                        FAC_INTERPOLATE_PREFER_FLOOR,
                                        FAC_INTERPOLATE_PREFER_CEIL,
                                        FAC_INTERPOLATE_FLOOR,
                                        FAC_INTERPOLATE_CEIL
} fac_interpolate_rounding;
/* With sizes: each axis by itself, or all by the least or by the largest of their scales. */
typedef enum fac_interpolate_aspect {
    FAC_INTERPOLATE_STRETCH,
    FAC_INTERPOLATE_NOT_LARGER,
    FAC_INTERPOLATE_NOT_SMALLER
} fac_interpolate_aspect;

typedef struct fac_interpolate_opts {
    int mode, coordinates, rounding, aspect; /* of the enums above */
    fac_dims axes;                           /* that are resized; none: all */
    fac_reals scales;     /* of each of these, where fac_interpolate is given no sizes */
    fac_reals roi;        /* FAC_INTERPOLATE_CROP: starts of these, then ends */
    double cubic_a;       /* of the cubic kernel; 0: -0.75 */
    double extrapolation; /* FAC_INTERPOLATE_CROP: what lies outside of x */
    bool exclude_outside; /* elements outside of x have no weight, instead of being its outermost */
    bool antialias;       /* smaller: kernels as wide as the distance of y's elements */
} fac_interpolate_opts;

/* x with other sizes along some axes: sizes i64[n], one for each of opts.axes, or NULL: floor(scale
 * in).  Any dtype: integers are interpolated as f32 and cut off, nearest neighbours are moved as
 * they are. */
fac_value *fac_interpolate(fac_value *x, fac_value *sizes, const fac_interpolate_opts *opts);
#endif

#define AT(field) offsetof(fac_interpolate_opts, field)
const fac_attr fac_interpolate_table[] = {
    { "mode", FAC_A_ENUM, AT(mode), 0, 0, 0, 0, fac_interpolate_modes,
      "how elements of y are made" },
    { "coordinates", FAC_A_ENUM, AT(coordinates), 0, 0, 0, 0, fac_interpolate_places,
      "where they lie in x" },
    { "rounding", FAC_A_ENUM, AT(rounding), 0, 0, 0, 0, fac_interpolate_roundings,
      "nearest: of a place between two elements" },
    { "aspect", FAC_A_ENUM, AT(aspect), 0, 0, 0, 0, fac_interpolate_aspects,
      "sizes: one scale for all axes" },
    { "axes", FAC_A_DIMS, AT(axes), 0, 0, 0, 0, NULL, "that are resized; none: all" },
    { "scales", FAC_A_REALS, AT(scales), 0, 0, 0, 0, NULL, "of these axes, without sizes" },
    { "roi", FAC_A_REALS, AT(roi), 0, 0, 0, 0, NULL,
      "tf_crop_and_resize: starts, then ends, 0 to 1" },
    { "cubic_a", FAC_A_REAL, AT(cubic_a), 0, -0.75, 0, 0, NULL, "of the cubic kernel" },
    { "extrapolation", FAC_A_REAL, AT(extrapolation), 0, 0, 0, 0, NULL,
      "tf_crop_and_resize: outside of x" },
    { "exclude_outside", FAC_A_FLAG, AT(exclude_outside), 0, 0, 0, 0, NULL,
      "what lies outside of x has no weight" },
    { "antialias", FAC_A_FLAG, AT(antialias), 0, 0, 0, 0, NULL,
      "wider kernels where y is smaller" },
    { 0 }
};
#undef AT
const fac_port fac_interpolate_in[] = { { "x", FAC_ANY, 0 },
                                        { "sizes", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                                        { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "sizes", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { 0 } };

/* ---- sizes ---- */

/* floor(scale size); of an open size where that is a formula, else a size of its own. */
static int64_t scaled(fac_graph *g, int64_t size, double scale) {
    char name[80];
    if (size >= 0) return (int64_t)floorf((float)scale * (float)size);
    if (scale == floor(scale)) return fac_size_product(g, size, (int64_t)scale);
    snprintf(name, sizeof name, "floor(%.40s*%.9g)", fac_symbol_name(g, size), scale);
    return fac_symbol(g, name);
}

bool fac_interpolate_by_scales(fac_node *n, const fac_reals *scales, const int *axes, int count,
                               fac_dims *y) {
    if (scales->n != count)
        return fac_fail(n, FAC_E_SHAPE, "%d scales for %d axes", scales->n, count);
    for (int k = 0; k < count; k++) {
        const double s = scales->v[k];
        if (!(s > 0 && s < 1e6))
            return fac_fail(n, FAC_E_ARGUMENT, "a scale of %g for axis %d", s, axes[k]);
        y->d[axes[k]] = scaled(n->graph, y->d[axes[k]], s);
    }
    return true;
}

/* All by one scale. */
static bool by_aspect(fac_node *n, const fac_contents *sizes, const int *axes, int count,
                      fac_dims *y) {
    const fac_dims *x = &n->in[0]->type.dims;
    bool numbers = !sizes->symbolic;
    for (int k = 0; k < count; k++) numbers &= x->d[axes[k]] >= 0;
    for (int k = 0; k < count; k++) y->d[axes[k]] = numbers ? 0 : fac_symbol(n->graph, NULL);
    for (int k = 0; k < count && numbers; k++) {
        const fac_interpolate_axis a = fac_interpolate_axis_of(n->attrs, x, y, sizes->v, axes[k]);
        y->d[axes[k]] = (int64_t)(a.scale * (double)x->d[axes[k]] + 0.5);
    }
    return true;
}

bool fac_interpolate_by_sizes(fac_node *n, const fac_value *from, const int *axes, int count,
                              fac_dims *y) {
    const fac_interpolate_opts *o = n->attrs;
    fac_contents sizes;
    const bool known = fac_known(from, &sizes);
    if (!fac_list_may_have(from, count))
        return fac_fail(n, FAC_E_SHAPE, "sizes has not one number for each of %d axes", count);
    for (int k = 0; k < count && known; k++)
        if (!(sizes.symbolic >> k & 1) && (sizes.v[k] < 0 || sizes.v[k] > INT32_MAX))
            return fac_fail(n, FAC_E_SHAPE, "a size of %lld for axis %d", (long long)sizes.v[k],
                            axes[k]);
    if (known && o->aspect != FAC_INTERPOLATE_STRETCH) return by_aspect(n, &sizes, axes, count, y);
    for (int k = 0; k < count; k++) y->d[axes[k]] = known ? sizes.v[k] : fac_symbol(n->graph, NULL);
    return true;
}

bool fac_interpolate_makes(fac_node *n, const int *axes, int count, const fac_dims *y) {
    const fac_dims *x = &n->in[0]->type.dims;
    for (int k = 0; k < count; k++)
        if (x->d[axes[k]] == 0 && y->d[axes[k]] > 0)
            return fac_fail(n, FAC_E_SHAPE,
                            "axis %d of size 0 has nothing to make %lld elements of", axes[k],
                            (long long)y->d[axes[k]]);
    return true;
}

int fac_interpolate_axes(fac_node *n, int *axes) {
    const fac_interpolate_opts *o = n->attrs;
    const int rank = n->in[0]->type.dims.n, count = o->axes.n ? o->axes.n : rank;
    bool seen[FAC_DIMS] = { false };
    for (int k = 0; k < count; k++) {
        axes[k] = o->axes.n ? fac_axis(o->axes.d[k], rank) : k;
        if (axes[k] < 0 || seen[axes[k]]) {
            fac_fail(n, FAC_E_ARGUMENT, "axes are out of range, or one stands twice");
            return -1;
        }
        seen[axes[k]] = true;
    }
    return count;
}

bool fac_interpolate_infer(fac_node *n) {
    const fac_interpolate_opts *o = n->attrs;
    const fac_type *x = &n->in[0]->type;
    int axes[FAC_DIMS];
    const int count = fac_interpolate_axes(n, axes);
    fac_type y = *x;
    if (count < 0) return false;
    if (o->coordinates == FAC_INTERPOLATE_CROP && o->roi.n != 2 * count)
        return fac_fail(n, FAC_E_SHAPE, "roi has %d numbers, not two for each of %d axes", o->roi.n,
                        count);
    if (o->antialias && o->mode == FAC_INTERPOLATE_NEAREST)
        return fac_fail(n, FAC_E_ARGUMENT, "antialias goes with linear and cubic");
    const bool fits = n->in[1] ? fac_interpolate_by_sizes(n, n->in[1], axes, count, &y.dims)
                               : fac_interpolate_by_scales(n, &o->scales, axes, count, &y.dims);
    if (!fits || !fac_interpolate_makes(n, axes, count, &y.dims)) return false;
    n->out[0]->type = y;
    return true;
}

/* ---- meaning ---- */

/* y[before, out, after] of x[before, in, after] */
static void resize_axis(const fac_interpolate_opts *o, const fac_interpolate_axis *a,
                        int64_t before, int64_t after, const double *x, double *y, int64_t *at,
                        double *weight) {
    const int taps = fac_interpolate_taps(o, a);
    for (int64_t b = 0; b < before; b++)
        for (int64_t i = 0; i < a->out; i++) {
            const bool inside = fac_interpolate_tap(o, a, i, at, weight);
            for (int64_t j = 0; j < after; j++) {
                double sum = inside ? 0 : o->extrapolation;
                for (int k = 0; k < taps && inside; k++)
                    sum += weight[k] * x[(b * a->in + at[k]) * after + j];
                y[(b * a->out + i) * after + j] = sum;
            }
        }
}

static fac_status one_axis(const fac_interpolate_opts *o, const fac_interpolate_axis *a,
                           fac_dims *d, int axis, double **values, fac_error *err) {
    int64_t before = 1, after = 1;
    const int taps = fac_interpolate_taps(o, a);
    for (int k = 0; k < axis; k++) before *= d->d[k];
    for (int k = axis + 1; k < d->n; k++) after *= d->d[k];
    double *y = fac_alloc((size_t)(before * a->out * after) + 1, sizeof *y);
    double *weight = fac_alloc((size_t)taps, sizeof *weight);
    int64_t *at = fac_alloc((size_t)taps, sizeof *at);
    const bool room = y && weight && at;
    if (room) resize_axis(o, a, before, after, *values, y, at, weight);
    fac_release(weight);
    fac_release(at);
    if (!room) {
        fac_release(y);
        return fac_raise(err, FAC_E_NOMEM, "no memory to resize axis %d", axis);
    }
    fac_release(*values);
    *values = y;
    d->d[axis] = a->out;
    return FAC_OK;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_interpolate_opts *o = r->attrs;
    const int64_t n = fac_dims_count(&r->in[0].type.dims),
                  count = fac_dims_count(&r->out[0].type.dims);
    const int64_t *sizes = r->nin > 1 ? r->in[1].i : NULL;
    fac_dims d = r->in[0].type.dims;
    double *values = fac_alloc((size_t)n + 1, sizeof *values);
    if (!values)
        return fac_raise(err, FAC_E_NOMEM, "no memory to resize %lld elements", (long long)n);
    memcpy(values, r->in[0].f, (size_t)n * sizeof *values);
    fac_status status = FAC_OK;
    for (int axis = 0; axis < d.n && !status; axis++) {
        const fac_interpolate_axis a =
            fac_interpolate_axis_of(o, &r->in[0].type.dims, &r->out[0].type.dims, sizes, axis);
        if (!a.same && count) status = one_axis(o, &a, &d, axis, &values, err);
    }
    if (!status && count) memcpy(r->out[0].f, values, (size_t)count * sizeof *values);
    fac_release(values);
    return status;
}

/* ---- as products ---- */

static fac_value *constant(fac_value *x, fac_dims dims, const double *numbers) {
    return fac_constant(x->graph, x->type.dtype, dims, numbers);
}

/* matrix [out, in] of an axis, and outside[out]: what is added. */
static bool matrix_of(const fac_interpolate_opts *o, const fac_interpolate_axis *a, double *matrix,
                      double *outside) {
    const int taps = fac_interpolate_taps(o, a);
    double *weight = fac_alloc((size_t)taps, sizeof *weight);
    int64_t *at = fac_alloc((size_t)taps, sizeof *at);
    for (int64_t i = 0; i < a->out && weight && at; i++) {
        const bool inside = fac_interpolate_tap(o, a, i, at, weight);
        outside[i] = inside ? 0 : o->extrapolation;
        for (int k = 0; k < taps && inside; k++) matrix[i * a->in + at[k]] += weight[k];
    }
    const bool room = weight && at;
    fac_release(weight);
    fac_release(at);
    return room;
}

/* The last axis of x times the matrix. */
static fac_value *last_axis(const fac_interpolate_opts *o, const fac_interpolate_axis *a,
                            fac_value *x) {
    double *matrix = fac_alloc((size_t)(a->in * a->out) + 1, sizeof *matrix);
    double *outside = fac_alloc((size_t)a->out + 1, sizeof *outside);
    fac_value *y;
    if (!matrix || !outside || !matrix_of(o, a, matrix, outside))
        y = fac_fail_graph(x->graph, FAC_E_NOMEM, "no memory for a matrix of %lld x %lld",
                           (long long)a->out, (long long)a->in);
    else
        y = fac_matmul(
            x, fac_transpose(constant(x, fac_shape(a->out, a->in), matrix), fac_shape(1, 0)));
    if (outside && o->coordinates == FAC_INTERPOLATE_CROP && o->extrapolation != 0)
        y = fac_add(y, constant(x, fac_shape(a->out), outside));
    fac_release(matrix);
    fac_release(outside);
    return y;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_interpolate_opts *o = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    fac_contents sizes = { 0 };
    fac_value *v = n->in[0];
    const bool known = !n->in[1] || fac_known_numbers(n->in[1], &sizes);
    for (int axis = 0; axis < x->n && known; axis++) {
        fac_dims swap = { .n = x->n };
        if (x->d[axis] == y->d[axis] && x->d[axis] < 0) continue;
        if (x->d[axis] < 0 || y->d[axis] < 0) {
            out[0] = fac_fail_graph(n->graph, FAC_E_UNSUPPORTED,
                                    "interpolate: the size of axis %d is not known", axis);
            return;
        }
        const fac_interpolate_axis a =
            fac_interpolate_axis_of(o, x, y, n->in[1] ? sizes.v : NULL, axis);
        if (a.same) continue;
        for (int k = 0; k < x->n; k++) swap.d[k] = k;
        swap.d[axis] = x->n - 1;
        swap.d[x->n - 1] = axis;
        const bool last = axis == x->n - 1;
        v = last_axis(o, &a, last ? v : fac_transpose(v, swap));
        if (!last) v = fac_transpose(v, swap);
    }
    out[0] =
        known ? v
              : fac_fail_graph(n->graph, FAC_E_UNSUPPORTED, "interpolate: its sizes are not known");
}

void fac_interpolate_cost(const fac_node *n, fac_cost *cost) {
    const fac_interpolate_opts *o = n->attrs;
    static const double each[] = { 0, 8, 32 };
    fac_cost_bytes(n, cost);
    cost->macs = 0;
    cost->other = each[o->mode] * fac_cost_count(n->out[0]);
}

static const fac_case cases[] = {
    { "interpolate(f32[1,2,3,5], i64{1,2,7,4}) mode=linear", -2, 2, 1e-6 },
    { "interpolate(f32[2,3,4,5], -) mode=linear axes=2,3 scales=2,2 coordinates=align_corners", -2,
      2, 1e-6 },
    { "interpolate(f32[1,2,9,7], i64{4,3}) mode=linear axes=2,-1 antialias", -2, 2, 1e-6 },
    { "interpolate(f32[1,2,5,6], i64{9,4}) mode=cubic axes=2,3 exclude_outside", -2, 2, 1e-5 },
    { "interpolate(f32[1,1,9,8], i64{4,3}) mode=cubic axes=2,3 antialias cubic_a=-0.5", -2, 2,
      1e-5 },
    { "interpolate(f32[1,1,4,6], i64{5,5}) mode=linear axes=2,3 coordinates=tf_crop_and_resize "
      "roi=0.2,-0.3,1.1,0.7 "
      "extrapolation=7",
      -2, 2, 1e-5 },
    { "interpolate(f32[1,4,6], i64{5,5}) axes=1,2 coordinates=tf_crop_and_resize roi=0,0.4,0.7,1.2 "
      "extrapolation=-3",
      -2, 2, 1e-5 },
    { "interpolate(f32[2,3,5], i64{4,4}) mode=linear axes=1,2 aspect=not_larger", -2, 2, 1e-6 },
    { "interpolate(f16[1,2,4,4], i64{6,6}) mode=linear axes=2,3 coordinates=asymmetric", -2, 2,
      4e-3 },
    { "interpolate(f64[7], i64{3}) mode=linear coordinates=half_pixel_symmetric", -2, 2, 1e-12 },
    { "interpolate(f32[1,2,4,4,3], i64{2,5,6}) mode=linear axes=2,3,4 "
      "coordinates=pytorch_half_pixel",
      -2, 2, 1e-6 },
    { "interpolate(f32[0,2,3], i64{0,2,6}) mode=linear", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_interpolate = {
    .name = "interpolate",
    .doc = "other sizes by interpolation",
    .in = in,
    .out = fac_ports_y,
    .attrs = fac_interpolate_table,
    .attrs_size = sizeof(fac_interpolate_opts),
    .infer = fac_interpolate_infer,
    .ref = ref,
    .expand = expand,
    .cost = fac_interpolate_cost,
    .onnx = fac_interpolate_onnx,
    .save = fac_interpolate_save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
