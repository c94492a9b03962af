#include "ops/define.h"
#include "ops/map.h"
#include "ops/map_grad.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* min(max(x, lo), hi); lo and hi are scalars of x's dtype, each may be NULL: no limit.  NaN stays
 * NaN. */
fac_value *fac_clip(fac_value *x, fac_value *lo, fac_value *hi);
fac_value *fac_relu6(fac_value *x); /* clip to 0..6 */
#endif

/* NaN passes both comparisons; where y > z the result is z, as in NumPy. */
/* clang-format off */
MAP3_NUM((x < y ? y : x) > z
             ? z
             : x < y ? y : x)
/* clang-format on */

static bool is_number(const fac_value *v, double x) {
    double known;
    return fac_scalar_known(v, &known) && known == x;
}

/* To x where it stayed as it was, on the limits too, as in torch; else to the limit that took its
 * place.  But relu6 passes nothing on its limits, as in torch, so its result alone says where, and
 * x need not be kept. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *x = n->in[0], *lo = n->in[1], *hi = n->in[2];
    bool relu6 = is_number(lo, 0) && is_number(hi, 6);
    fac_value *y = n->out[0];
    if (fac_needs(n, 0) && relu6)
        dx[0] = fac_grad_past(y, 0, fac_grad_short_of(y, 6, dy[0]));
    else if (fac_needs(n, 0))
        dx[0] = fac_grad_where(fac_equal(x, y), dy[0]);
    if (fac_needs(n, 1))
        dx[1] = fac_grad_unbroadcast(
            n, 1, fac_grad_where(fac_and(fac_less(x, lo), fac_less_or_equal(lo, hi)), dy[0]));
    if (fac_needs(n, 2))
        dx[2] = fac_grad_unbroadcast(n, 2, fac_grad_where(fac_greater(fac_max(x, lo), hi), dy[0]));
}

static const fac_port ports[] = {
    { "x", FAC_NUMBERS, 0 }, { "min", FAC_NUMBERS, 0 }, { "max", FAC_NUMBERS, 0 }, { 0 }
};

static bool infer(fac_node *n) {
    if (!fac_infer_broadcast(n)) return false;
    if (!fac_dims_equal(&n->out[0]->type.dims, &n->in[0]->type.dims))
        return fac_fail(n, FAC_E_SHAPE, "min and max must be scalars");
    return fac_knows_map(n, NULL);
}

/* Opset 6 has the limits as attributes, from 11 on they are inputs. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_dtype t = fac_value_type(in[0]).dtype;
    fac_value *lo = n->nin > 1 ? in[1] : NULL;
    fac_value *hi = n->nin > 2 ? in[2] : NULL;
    if (fac_onnx_has(n, "min")) lo = fac_number(g, t, fac_onnx_real(n, "min", 0));
    if (fac_onnx_has(n, "max")) hi = fac_number(g, t, fac_onnx_real(n, "max", 0));
    out[0] = fac_clip(in[0], lo, hi);
}
static const fac_onnx_attr names[] = { { "min", NULL }, { "max", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Clip", 11, 0, NULL, load, 1 },
                                 { "", "Clip", 1, 10, names, load, 1 },
                                 { 0 } };
/* The limits are scalars. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_ranked(w, n->in[1], 0),
                          fac_onnx_ranked(w, n->in[2], 0) };
    fac_onnx_put(w, "Clip", 3, ins, fac_onnx_name(w, n->out[0]));
    return true;
}

static const fac_case cases[] = {
    { "clip(f32[2,30], f32[], f32[])", -4, 4, 0 }, { "clip(i64[30], i64[], i64[])", -99, 99, 0 },
    { "clip(u64[3], u64[], u64[])", 0, 99, 0 },    { "clip(i8[4], i8[1], i8[])", -99, 99, 0 },
    { "clip(f16[5], f16[], f16[])", -4, 4, 0 },    { "clip(f32[0,3], f32[], f32[])", 0, 0, 0 },
    { "clip(f32[], f32[], f32[])", -4, 4, 0 },     { 0 }
};

/* A limit that limits nothing goes; two of them stay a function of their own. */
static void define(const fac_node *n, fac_value *out[]) {
    double lo = 0, hi = 0;
    if (!fac_define_floats(n)) return;
    const bool below = fac_scalar_known(n->in[1], &lo) && lo == -INFINITY;
    const bool above = fac_scalar_known(n->in[2], &hi) && hi == INFINITY;
    if (above && below)
        out[0] = n->in[0];
    else if (above)
        out[0] = fac_max(n->in[0], n->in[1]);
    else if (below)
        out[0] = fac_min(n->in[0], n->in[2]);
}

static int steps(const fac_node *n, double at[]) {
    int count = fac_scalar_known(n->in[1], &at[0]);
    count += fac_scalar_known(n->in[2], &at[count]);
    return count;
}

const fac_op fac_op_clip = {
    MAP_OP("clip", "min(max(x, y), z)", ports, infer),
    .is = FAC_OP_INPLACE | FAC_OP_KNOWS,
    .save = save,
    .grad = grad,
    .define = define,
    .steps = steps,
    .rounding = { .rule = FAC_ROUND_KEEPS },
};

fac_value *fac_clip(fac_value *x, fac_value *lo, fac_value *hi) {
    if (lo && hi) return fac_emit(&fac_op_clip, NULL, 3, (fac_value *[]){ x, lo, hi });
    if (lo) return fac_max(x, lo);
    return hi ? fac_min(x, hi) : fac_identity(x);
}

fac_value *fac_relu6(fac_value *x) {
    fac_graph *g = fac_value_graph(x);
    fac_dtype t = fac_value_type(x).dtype;
    return fac_clip(x, fac_number(g, t, 0), fac_number(g, t, 6));
}
