/* ONNX's and PyTorch's grid sampling: images read at places that a grid names. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "ops/constant.h"
#include "ops/cost.h"
#include "ops/map_grad.h"
#include "ops/sampling.h"

#if FAC_INTERFACE
typedef enum fac_grid_mode { FAC_GRID_LINEAR, FAC_GRID_NEAREST, FAC_GRID_CUBIC } fac_grid_mode;
typedef enum fac_grid_padding {
    FAC_GRID_ZEROS,
    FAC_GRID_BORDER,
    FAC_GRID_REFLECTION
} fac_grid_padding;

/* y[n,c,places..] = x[n,c] read at grid[n,places..], whose last dim holds a coordinate for each
 * spatial dim of x, the last dim first (x, y or x, y, z): -1 and 1 are the edges of the outermost
 * pixels, or with align_corners their centers.  Outside lie zeros, the outermost pixels, or the
 * image mirrored at -1 and 1.
 *   x N,C,spatial..   grid N,places..,spatial dims   y N,C,places..   1 to 3 spatial dims; floats
 * nearest rounds half to even; cubic is Keys' kernel with a = -0.75.  As in ONNX, a place beyond -1
 * or 1 is moved to the border, or mirrored, before it is interpolated. */
fac_value *fac_grid_sample(fac_value *x, fac_value *grid, fac_grid_mode mode,
                           fac_grid_padding padding, bool align_corners);
#endif

typedef struct attrs {
    int mode, padding;
    bool align_corners;
} attrs;
static const char *const modes[] = { "linear", "nearest", "cubic", NULL };
static const char *const paddings[] = { "zeros", "border", "reflection", NULL };
static const fac_attr table[] = {
    { "mode", FAC_A_ENUM, offsetof(attrs, mode), 0, 0, 0, 0, modes, "how pixels make a value" },
    { "padding", FAC_A_ENUM, offsetof(attrs, padding), 0, 0, 0, 0, paddings, "what lies outside" },
    { "align_corners", FAC_A_FLAG, offsetof(attrs, align_corners), 0, 0, 0, 0, NULL,
      "-1 and 1 are the centers of the outermost pixels" },
    { 0 }
};
static const fac_port in[] = { { "x", FAC_FLOATS, 0 }, { "grid", FAC_FLOATS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *grid = &n->in[1]->type.dims;
    const int spatial = x->n - 2;
    if (spatial < 1 || spatial > 3)
        return fac_fail(n, FAC_E_SHAPE, "x has %d dims, not 3 to 5", x->n);
    if (grid->n != x->n || (grid->d[grid->n - 1] >= 0 && grid->d[grid->n - 1] != spatial))
        return fac_fail(n, FAC_E_SHAPE, "grid must have %d dims, the last of size %d", x->n,
                        spatial);
    if (x->d[0] >= 0 && grid->d[0] >= 0 && x->d[0] != grid->d[0])
        return fac_fail(n, FAC_E_SHAPE, "%lld images and %lld grids", (long long)x->d[0],
                        (long long)grid->d[0]);
    fac_type y = n->in[0]->type;
    for (int k = 0; k < spatial; k++) y.dims.d[2 + k] = grid->d[1 + k];
    for (int k = 2; k < x->n; k++)
        if (x->d[k] == 0) return fac_fail(n, FAC_E_SHAPE, "images without pixels");
    n->out[0]->type = y;
    return true;
}

/* ---- meaning ---- */

/* Where an axis begins and ends for what is mirrored. */
typedef struct edges {
    double low, high;
} edges;
static edges edges_of(const attrs *a, int64_t size) {
    return a->align_corners ? (edges){ 0, (double)size - 1 } : (edges){ -0.5, (double)size - 0.5 };
}

static double mirrored(double c, edges e) {
    const double span = e.high - e.low;
    if (!(span > 0)) return e.low;
    const double far = fabs(c - e.low), turns = floor(far / span), rest = far - turns * span;
    return e.low + (fmod(turns, 2) != 0 ? span - rest : rest);
}

static double clamped(double c, int64_t size) {
    const double high = (double)size - 1;
    if (c > high) return high;
    return c > 0 ? c : 0;
}

/* Cubic places beyond a border stay, and each pixel that they read is moved to it: PyTorch and ONNX
 * Runtime agree on that, ONNX's text does not say. */
static double place_of(const attrs *a, double g, int64_t size) {
    const edges e = edges_of(a, size);
    double c =
        a->align_corners ? (g + 1) / 2 * (double)(size - 1) : ((g + 1) * (double)size - 1) / 2;
    if (a->mode == FAC_GRID_NEAREST) c = rint(c);
    if (c >= e.low && c <= e.high) return c;
    if (a->padding == FAC_GRID_BORDER) return a->mode == FAC_GRID_CUBIC ? c : clamped(c, size);
    return a->padding == FAC_GRID_REFLECTION ? mirrored(c, e) : c;
}

static void cubic_weights(double t, double w[4]) {
    const double a = -0.75, s = 1 - t;
    w[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * s - (a + 3)) * s * s + 1;
    w[3] = ((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a;
}

static fac_tap_list taps_of(const attrs *a, double g, int64_t size) {
    fac_tap_list l = { .count = a->mode == FAC_GRID_NEAREST  ? 1
                                : a->mode == FAC_GRID_LINEAR ? 2
                                                             : 4 };
    double c = place_of(a, g, size);
    c = fmin(fmax(c, -4), (double)size + 4);
    const double below = a->mode == FAC_GRID_NEAREST ? trunc(c) : floor(c), t = c - below;
    if (a->mode == FAC_GRID_CUBIC)
        cubic_weights(t, l.weight);
    else {
        l.weight[0] = a->mode == FAC_GRID_NEAREST ? 1 : 1 - t;
        l.weight[1] = t;
    }
    for (int k = 0; k < l.count; k++) {
        double at = below + k - (a->mode == FAC_GRID_CUBIC);
        const bool inside = at >= 0 && at <= (double)size - 1;
        if (!inside && a->padding == FAC_GRID_ZEROS) l.weight[k] = 0;
        if (!inside && a->padding == FAC_GRID_REFLECTION)
            at = trunc(mirrored(at, edges_of(a, size)));
        l.at[k] = (int64_t)clamped(at, size);
    }
    return l;
}

/* One place: the sum over all combinations of the taps of each dim. */
static double read_at(const double *x, const fac_tap_list *taps, const int64_t *step, int spatial) {
    double sum = 0;
    for (int k = 0; k < taps->count; k++) {
        const double *from = x + taps->at[k] * step[0];
        if (taps->weight[k] == 0) continue;
        sum += taps->weight[k] *
               (spatial > 1 ? read_at(from, taps + 1, step + 1, spatial - 1) : *from);
    }
    return sum;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_dims *x = &r->in[0].type.dims, *y = &r->out[0].type.dims;
    const int spatial = x->n - 2;
    const int64_t C = x->d[1], pixels = fac_dims_part(x, 2, x->n),
                  places = fac_dims_part(y, 2, y->n);
    int64_t step[3] = { 0 };
    for (int k = 0; k < spatial; k++) step[k] = fac_dims_part(x, 3 + k, x->n);
    for (int64_t n = 0; n < x->d[0]; n++)
        for (int64_t p = 0; p < places; p++) {
            const double *grid = r->in[1].f + (n * places + p) * spatial;
            fac_tap_list taps[3];
            for (int k = 0; k < spatial; k++)
                taps[k] = taps_of(a, grid[spatial - 1 - k], x->d[2 + k]);
            for (int64_t c = 0; c < C; c++)
                r->out[0].f[(n * C + c) * places + p] =
                    read_at(r->in[0].f + (n * C + c) * pixels, taps, step, spatial);
        }
    return FAC_OK;
}

/* ---- as ops ---- */

static fac_value *mirror(fac_value *c, edges e) {
    const double span = e.high - e.low;
    if (!(span > 0)) return fac_grad_shifted(fac_grad_times(c, 0), e.low);
    fac_value *far = fac_abs(fac_grad_shifted(c, -e.low));
    fac_value *turns = fac_floor(fac_grad_times(fac_stop(far), 1 / span));
    fac_value *rest = fac_sub(far, fac_grad_times(turns, span));
    fac_value *pairs = fac_grad_times(fac_floor(fac_grad_times(turns, 0.5)), 2);
    fac_value *odd = fac_grad_above(fac_sub(turns, pairs), 0.5);
    fac_value *back = fac_sub(fac_grad_number(rest, span), rest);
    return fac_grad_shifted(fac_where(odd, back, rest), e.low);
}

static fac_value *clamp(fac_value *c, double low, double high) {
    return fac_max(fac_min(c, fac_grad_number(c, high)), fac_grad_number(c, low));
}

static fac_value *place(const attrs *a, fac_value *g, int64_t size) {
    const edges e = edges_of(a, size);
    const double scale = (double)(a->align_corners ? size - 1 : size) / 2;
    fac_value *c =
        fac_grad_shifted(fac_grad_times(g, scale), a->align_corners ? scale : scale - 0.5);
    if (a->mode == FAC_GRID_NEAREST) c = fac_round(fac_stop(c));
    if (a->padding == FAC_GRID_ZEROS ||
        (a->padding == FAC_GRID_BORDER && a->mode == FAC_GRID_CUBIC))
        return clamp(c, -4, (double)size + 4);
    fac_value *outside = fac_or(fac_grad_below(c, e.low), fac_grad_above(c, e.high));
    fac_value *moved = a->padding == FAC_GRID_BORDER ? clamp(c, 0, (double)size - 1) : mirror(c, e);
    return clamp(fac_where(outside, moved, c), -1, (double)size);
}

/* ((a t + b) t + c) t + d */
static fac_value *polynomial(fac_value *t, double a, double b, double c, double d) {
    fac_value *y = fac_grad_shifted(fac_grad_times(t, a), b);
    y = fac_grad_shifted(fac_mul(y, t), c);
    return fac_grad_shifted(fac_mul(y, t), d);
}

static fac_taps taps_along(const attrs *a, fac_value *g, int64_t size) {
    fac_value *c = place(a, g, size), *last[4], *w[4];
    int count = 4;
    if (a->mode == FAC_GRID_NEAREST) count = 1;
    if (a->mode == FAC_GRID_LINEAR) count = 2;
    fac_value *below = count > 1 ? fac_floor(fac_stop(c)) : c, *t = fac_sub(c, below);
    if (count == 1) w[0] = fac_grad_shifted(t, 1);
    if (count == 2) {
        w[0] = fac_grad_rest(t);
        w[1] = t;
    }
    if (count == 4) {
        fac_value *s = fac_grad_rest(t);
        w[0] = polynomial(t, -0.75, 1.5, -0.75, 0);
        w[1] = polynomial(t, 1.25, -2.25, 0, 1);
        w[2] = polynomial(s, 1.25, -2.25, 0, 1);
        w[3] = polynomial(s, -0.75, 1.5, -0.75, 0);
    }
    for (int k = 0; k < count; k++) {
        last[k] = fac_unsqueeze(fac_grad_shifted(below, k - (count == 4)), fac_shape(-1));
        w[k] = fac_unsqueeze(w[k], fac_shape(-1));
    }
    const int axis = c->type.dims.n;
    fac_taps taps = { fac_concat(last, count, axis), fac_concat(w, count, axis) };
    const double high = (double)size - 1;
    if (a->padding != FAC_GRID_BORDER) {
        fac_value *outside = fac_or(fac_grad_below(taps.at, 0), fac_grad_above(taps.at, high));
        if (a->padding == FAC_GRID_ZEROS)
            taps.weight = fac_grad_where(fac_not(outside), taps.weight);
        else
            taps.at = fac_where(outside, fac_round(mirror(taps.at, edges_of(a, size))), taps.at);
    }
    taps.at = fac_cast(clamp(taps.at, 0, high), FAC_I64);
    return taps;
}

static int64_t expands(const fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *grid = &n->in[1]->type.dims;
    return fac_dims_known(x, 1) && fac_dims_known(grid, 1) ? 64 * (x->n - 2) : 0;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const attrs *a = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    const fac_dtype dtype = n->in[0]->type.dtype, wide = fac_grad_wide(dtype);
    fac_value *grid = fac_grad_as(n->in[1], wide);
    const int spatial = x->n - 2;
    fac_taps taps = { 0 };
    for (int k = 0; k < spatial; k++) {
        const int column = spatial - 1 - k;
        fac_value *g =
            fac_squeeze(fac_slice(grid, spatial + 1, column, column + 1, 1), fac_shape(-1));
        const fac_taps more = taps_along(a, g, x->d[2 + k]);
        taps = k ? fac_taps_join(taps, more, x->d[2 + k]) : more;
    }
    fac_value *read = fac_taps_read(fac_grad_as(n->in[0], wide), NULL, taps);
    fac_value *sum = fac_transpose(fac_sum(read, fac_shape(2), false), fac_shape(0, 2, 1));
    out[0] = fac_grad_as(fac_shaped(sum, *y), dtype);
}

static void cost(const fac_node *n, fac_cost *c) {
    static const int taps[] = { 2, 1, 4 };
    double all = 1;
    for (int k = 2; k < n->in[0]->type.dims.n; k++) all *= taps[((const attrs *)n->attrs)->mode];
    fac_cost_bytes(n, c);
    c->macs = all * fac_cost_count(n->out[0]);
    c->other = 0;
}

/* ---- ONNX ---- */

static int choice(const char *const *words, const char *word) {
    for (int k = 0; words[k]; k++)
        if (!strcmp(words[k], word)) return k;
    return -1;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const char *text = fac_onnx_text(n, "mode", "linear");
    const char *outside = fac_onnx_text(n, "padding_mode", "zeros");
    int mode = choice(modes, text);
    const int padding = choice(paddings, outside);
    if (!strcmp(text, "bilinear")) mode = FAC_GRID_LINEAR;
    if (!strcmp(text, "bicubic")) mode = FAC_GRID_CUBIC;
    if (mode < 0 || padding < 0)
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "GridSample: mode \"%s\" and padding_mode \"%s\"",
                              text, outside);
    else
        y[0] = fac_grid_sample(x[0], x[1], (fac_grid_mode)mode, (fac_grid_padding)padding,
                               fac_onnx_int(n, "align_corners", 0) != 0);
}
static const fac_onnx_attr names[] = {
    { "mode", NULL }, { "padding_mode", NULL }, { "align_corners", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "GridSample", 16, 0, names, load, 0 },
                                 { "com.microsoft", "GridSample", 1, 0, names, load, 0 },
                                 { 0 } };
/* Only of images before opset 20. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    static const char *const old[] = { "bilinear", "nearest", "bicubic" };
    const attrs *a = n->attrs;
    if (w->opset < 16 || (w->opset < 20 && n->in[0]->type.dims.n != 4)) return false;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]) };
    fac_onnx_put(w, "GridSample", 2, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_text(w, "mode", w->opset < 20 ? old[a->mode] : modes[a->mode]);
    fac_onnx_put_text(w, "padding_mode", paddings[a->padding]);
    fac_onnx_put_int(w, "align_corners", a->align_corners);
    return true;
}

static const fac_case cases[] = {
    { "grid_sample(f32[2,3,5,4], f32[2,3,2,2])", -1.5, 1.5, 1e-5 },
    { "grid_sample(f32[1,2,5,4], f32[1,3,4,2]) mode=nearest padding=border", -1.5, 1.5, 1e-5 },
    { "grid_sample(f32[1,2,3,4], f32[1,3,4,2]) mode=cubic align_corners", -1.5, 1.5, 1e-4 },
    { "grid_sample(f32[1,2,3,4], f32[1,3,4,2]) padding=reflection", -3, 3, 1e-4 },
    { "grid_sample(f32[1,2,3,4], f32[1,3,4,2]) mode=cubic padding=reflection align_corners", -3, 3,
      1e-4 },
    { "grid_sample(f32[1,2,3,4], f32[1,3,4,2]) mode=cubic padding=border", -2, 2, 1e-4 },
    { "grid_sample(f32[1,2,3,4,2], f32[1,2,3,2,3]) padding=border align_corners", -1.5, 1.5, 1e-5 },
    { "grid_sample(f64[2,1,7], f64[2,4,1]) mode=cubic", -1.2, 1.2, 1e-9 },
    { "grid_sample(f16[1,2,4,4], f32[1,2,3,2])", -1.5, 1.5, 4e-3 },
    { "grid_sample(f32[1,2,1,1], f32[1,2,3,2]) padding=reflection align_corners", -1.5, 1.5, 1e-5 },
    { "grid_sample(f32[0,2,3,4], f32[0,3,4,2])", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_grid_sample = {
    .name = "grid_sample",
    .doc = "images read at places that a grid names",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
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

fac_value *fac_grid_sample(fac_value *x, fac_value *grid, fac_grid_mode mode,
                           fac_grid_padding padding, bool align_corners) {
    return fac_emit(&fac_op_grid_sample, &(attrs){ mode, padding, align_corners }, 2,
                    (fac_value *[]){ x, grid });
}
