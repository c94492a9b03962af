/* One axis of a resize: where element i of y lies in x, and which elements around that place count
 * how much.
 *
 * Coordinates and coefficients as ONNX defines them (Resize-19).  The cubic kernel is that of Keys,
 * 1981: a = -0.75 as in PyTorch.  With antialias kernels are stretched by 1 / scale, as Pillow does
 * it, so that no element of x is passed over. */
#include <limits.h>
#include <math.h>
#include "ops/interpolate.h"
#include "ops/shape.h"

static const int taps_of[] = {
    [FAC_INTERPOLATE_NEAREST] = 1, [FAC_INTERPOLATE_LINEAR] = 2, [FAC_INTERPOLATE_CUBIC] = 4
};

/* The place of an axis among those that are resized, or -1. */
static int place_of(const fac_interpolate_opts *o, const fac_dims *x, int axis) {
    if (!o->axes.n) return axis;
    for (int k = 0; k < o->axes.n; k++)
        if (fac_axis(o->axes.d[k], x->n) == axis) return k;
    return -1;
}

/* The one scale that keeps the aspect. */
static double common_scale(const fac_interpolate_opts *o, const fac_dims *x, const int64_t *sizes) {
    double scale = 0;
    for (int axis = 0; axis < x->n; axis++) {
        const int k = place_of(o, x, axis);
        if (k < 0) continue;
        const double s = (double)sizes[k] / (double)x->d[axis];
        const bool better = o->aspect == FAC_INTERPOLATE_NOT_LARGER ? s < scale : s > scale;
        if (scale == 0 || better) scale = s;
    }
    return scale;
}

fac_interpolate_axis fac_interpolate_axis_of(const fac_interpolate_opts *o, const fac_dims *x,
                                             const fac_dims *y, const int64_t *sizes, int axis) {
    const int k = place_of(o, x, axis), n = o->axes.n ? o->axes.n : x->n;
    fac_interpolate_axis a = { .in = x->d[axis], .out = y->d[axis], .scale = 1, .end = 1 };
    if (k >= 0 && !sizes)
        a.scale = (double)(float)o->scales.v[k];
    else if (k >= 0 && o->aspect != FAC_INTERPOLATE_STRETCH)
        a.scale = common_scale(o, x, sizes);
    else if (k >= 0)
        a.scale = (double)a.out / (double)a.in;
    if (k >= 0 && o->coordinates == FAC_INTERPOLATE_CROP) {
        a.start = o->roi.v[k];
        a.end = o->roi.v[n + k];
    }
    a.same = a.in == a.out && fabs(a.scale - 1) < 1e-9 && a.start == 0 && a.end == 1;
    return a;
}

/* Where element i of y lies in x.  T is float for neighbours: on the border between two of them
 * other engines decide by arithmetic in f32, and models were trained with that. */
#define COORDINATE(NAME, T)                                                                        \
    static double NAME(const fac_interpolate_opts *o, const fac_interpolate_axis *a, int64_t i) {  \
        const T in = (T)a->in, last = in - 1, s = (T)a->scale, length = s * in, at = (T)i;         \
        const T start = (T)a->start, end = (T)a->end, half = (T)0.5;                               \
        switch (o->coordinates) {                                                                  \
        case FAC_INTERPOLATE_PYTORCH_HALF_PIXEL:                                                   \
            return a->out > 1 ? (at + half) / s - half : 0;                                        \
        case FAC_INTERPOLATE_ALIGN_CORNERS:                                                        \
            return length == 1 ? 0 : at * last / (length - 1);                                     \
        case FAC_INTERPOLATE_ASYMMETRIC:                                                           \
            return at / s;                                                                         \
        case FAC_INTERPOLATE_TF_HALF_PIXEL:                                                        \
            return (at + half) / s;                                                                \
        case FAC_INTERPOLATE_CROP:                                                                 \
            if (length == 1) return (start + end) / 2 * last;                                      \
            return start * last + at * (end - start) * last / (length - 1);                        \
        case FAC_INTERPOLATE_SYMMETRIC:                                                            \
            return in / 2 * (1 - (T)a->out / length) + (at + half) / s - half;                     \
        default:                                                                                   \
            return (at + half) / s - half;                                                         \
        }                                                                                          \
    }
COORDINATE(coordinate, double)
COORDINATE(coordinate_f32, float)

static double nearest(const fac_interpolate_opts *o, double x) {
    const double below = floor(x), part = x - below;
    switch (o->rounding) {
    case FAC_INTERPOLATE_PREFER_CEIL:
        return part < 0.5 ? below : below + 1;
    case FAC_INTERPOLATE_FLOOR:
        return below;
    case FAC_INTERPOLATE_CEIL:
        return part > 0 ? below + 1 : below;
    default:
        return part <= 0.5 ? below : below + 1;
    }
}

/* The kernel at a distance. */
static double kernel(const fac_interpolate_opts *o, double d) {
    const double a = o->cubic_a, x = fabs(d);
    if (o->mode == FAC_INTERPOLATE_LINEAR) return x < 1 ? 1 - x : 0;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double stretch_of(const fac_interpolate_opts *o, const fac_interpolate_axis *a) {
    return o->antialias && a->scale < 1 ? a->scale : 1;
}

int fac_interpolate_taps(const fac_interpolate_opts *o, const fac_interpolate_axis *a) {
    const double stretch = stretch_of(o, a);
    if (stretch == 1 || o->mode == FAC_INTERPOLATE_NEAREST) return taps_of[o->mode];
    const double reach = ceil(taps_of[o->mode] / 2 / stretch); /* to either side */
    const double most = 4 * fmax((double)a->in, 0) + 4;        /* no element is further away */
    return 2 * (int)fmin(reach, fmin(most, INT_MAX / 4.0));
}

/* Elements before the first and after the last are those; weights add up to 1. */
static void settle(const fac_interpolate_opts *o, const fac_interpolate_axis *a, int n, int64_t *at,
                   double *weight) {
    double sum = 0;
    for (int k = 0; k < n; k++) {
        const bool outside = at[k] < 0 || at[k] >= a->in;
        if (outside && o->exclude_outside) weight[k] = 0;
        if (at[k] < 0) at[k] = 0;
        if (at[k] >= a->in) at[k] = a->in - 1;
        sum += weight[k];
    }
    if (!(o->exclude_outside || o->antialias) || sum == 0) return;
    for (int k = 0; k < n; k++) weight[k] /= sum;
}

static double place(const fac_interpolate_opts *o, const fac_interpolate_axis *a, int64_t i) {
    if (a->same) return (double)i;
    return o->mode == FAC_INTERPOLATE_NEAREST ? coordinate_f32(o, a, i) : coordinate(o, a, i);
}

bool fac_interpolate_tap(const fac_interpolate_opts *o, const fac_interpolate_axis *a, int64_t i,
                         int64_t *at, double *weight) {
    const double x = place(o, a, i), stretch = stretch_of(o, a);
    const int n = fac_interpolate_taps(o, a);
    if (o->coordinates == FAC_INTERPOLATE_CROP && (x < 0 || x > (double)a->in - 1)) return false;
    if (o->mode == FAC_INTERPOLATE_NEAREST) {
        at[0] = (int64_t)nearest(o, x);
        weight[0] = 1;
    }
    for (int k = 0; k < n && o->mode != FAC_INTERPOLATE_NEAREST; k++) {
        at[k] = (int64_t)floor(x) + 1 - n / 2 + k;
        weight[k] = kernel(o, ((double)at[k] - x) * stretch);
    }
    settle(o, a, n, at, weight);
    return true;
}
