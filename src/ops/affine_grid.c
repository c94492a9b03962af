/* ONNX's and PyTorch's affine grids: what grid_sample is given to turn, scale and move images. */
#include "base/clamp.h"
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/grad.h"
#include "ops/host_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* grid[n, places..] = theta[n] (place, 1): where an affine map puts the places of an image of these
 * sizes, -1 and 1 being the edges of its outermost pixels, or with align_corners their centers.
 *   theta N,2,3   size i64 N,C,H,W     -> N,H,W,2
 *   theta N,3,4   size i64 N,C,D,H,W   -> N,D,H,W,3      floats; the last dim of the image comes
 * first, as in PyTorch */
fac_value *fac_affine_grid(fac_value *theta, fac_value *size, bool align_corners);
#endif

typedef struct attrs {
    bool align_corners;
} attrs;
static const fac_attr table[] = { { "align_corners", FAC_A_FLAG, offsetof(attrs, align_corners), 0,
                                    0, 0, 0, NULL,
                                    "-1 and 1 are the centers of the outermost pixels" },
                                  { 0 } };
static const fac_port in[] = { { "theta", FAC_FLOATS, 0 }, { "size", FAC_INTS, FAC_HOST }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *t = &n->in[0]->type.dims;
    const bool open = fac_list_is_open(n->in[1]);
    fac_contents size;
    const bool known = fac_known(n->in[1], &size);
    int spatial = fac_host_length(n->in[1]) - 2;
    if (open && t->n == 3 && t->d[1] < 0 && t->d[2] < 0)
        return fac_rankless(n->out[0], n->in[0]->type.dtype), true;
    if (open && t->n == 3) spatial = (int)fac_clamp(t->d[1] < 0 ? t->d[2] - 1 : t->d[1], 0, 4);
    const int length = spatial + 2;
    if (spatial != 2 && spatial != 3)
        return fac_fail(n, FAC_E_SHAPE, "size must have 4 or 5 numbers");
    if (t->n != 3 || (t->d[1] >= 0 && t->d[1] != spatial) ||
        (t->d[2] >= 0 && t->d[2] != spatial + 1))
        return fac_fail(n, FAC_E_SHAPE, "theta must be N,%d,%d", spatial, spatial + 1);
    fac_dims y = { .n = length };
    for (int k = 0; k < length; k++) {
        const bool number = known && !(size.symbolic >> k & 1);
        if (number && size.v[k] < 0)
            return fac_fail(n, FAC_E_SHAPE, "a size of %lld", (long long)size.v[k]);
        y.d[k] = known ? size.v[k] : fac_symbol(n->graph, NULL);
    }
    if (known && t->d[0] >= 0 && y.d[0] >= 0 && y.d[0] != t->d[0])
        return fac_fail(n, FAC_E_SHAPE, "%lld maps, size says %lld", (long long)t->d[0],
                        (long long)y.d[0]);
    y.d[0] = t->d[0];
    for (int k = 1; k <= spatial; k++) y.d[k] = y.d[k + 1];
    y.d[spatial + 1] = spatial;
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, y };
    return true;
}

static double place(bool align, int64_t i, int64_t size) {
    if (!align) return (double)(2 * i + 1) / (double)size - 1;
    return size > 1 ? 2 * (double)i / (double)(size - 1) - 1 : 0;
}

/* [places, spatial + 1]: the last dim of the image first, then 1. */
static fac_value *places_of(const fac_node *n, int64_t places, int spatial) {
    const fac_dims *y = &n->out[0]->type.dims;
    double *to = fac_alloc((size_t)(places * (spatial + 1)) + 1, sizeof *to);
    if (!to)
        return fac_fail_graph(n->graph, FAC_E_NOMEM, "no memory for a grid of %lld places",
                              (long long)places);
    for (int64_t p = 0; p < places; p++) {
        int64_t rest = p;
        for (int k = spatial; k >= 1; k--) {
            to[p * (spatial + 1) + spatial - k] =
                place(((const attrs *)n->attrs)->align_corners, rest % y->d[k], y->d[k]);
            rest /= y->d[k];
        }
        to[p * (spatial + 1) + spatial] = 1;
    }
    fac_value *v = fac_constant(n->graph, n->in[0]->type.dtype, fac_shape(places, spatial + 1), to);
    fac_release(to);
    return v;
}

static int64_t expands(const fac_node *n) {
    return fac_dims_known(&n->out[0]->type.dims, 1) ? 8 : 0;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_dims *y = &n->out[0]->type.dims;
    const int spatial = y->n - 2;
    fac_value *base = places_of(n, fac_dims_part(y, 1, y->n - 1), spatial);
    out[0] = fac_shaped(fac_matmul(base, fac_grad_swap(n->in[0])), *y);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_affine_grid(x[0], x[1], fac_onnx_int(n, "align_corners", 0) != 0);
}
static const fac_onnx_attr names[] = { { "align_corners", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "AffineGrid", 20, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    if (w->opset < 20) return false;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_list_of(w, n->in[1]) };
    fac_onnx_put(w, "AffineGrid", 2, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "align_corners", ((const attrs *)n->attrs)->align_corners);
    return true;
}

static const fac_case cases[] = {
    { "affine_grid(f32[2,2,3], i64{2,3,4,5})", -2, 2, 1e-5 },
    { "affine_grid(f32[1,3,4], i64{1,2,3,1,2}) align_corners", -2, 2, 1e-5 },
    { "affine_grid(f16[2,2,3], i64{2,1,2,3}) align_corners", -2, 2, 4e-3 },
    { "affine_grid(f32[0,2,3], i64{0,3,4,5})", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_affine_grid = {
    .name = "affine_grid",
    .doc = "places of an image under an affine map",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .expand = expand,
    .expands = expands,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_affine_grid(fac_value *theta, fac_value *size, bool align_corners) {
    return fac_emit(&fac_op_affine_grid, &(attrs){ align_corners }, 2,
                    (fac_value *[]){ theta, size });
}
