/* Resizing by scales or of a part of x that are computed, or inputs: once they are known it is
 * interpolate. */
#include "ops/host_list.h"
#include "ops/interpolate.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* fac_interpolate with options that are values: scales, floats [n], one for each of opts.axes, or
 * sizes; roi, floats [2n], or NULL where nothing is cropped.  What is constant is an option at
 * once; sizes of y stay open until scales are known. */
fac_value *fac_interpolate_by(fac_value *x, fac_value *scales, fac_value *sizes, fac_value *roi,
                              const fac_interpolate_opts *opts);
#endif

static const fac_port in[] = { { "x", FAC_ANY, 0 },
                               { "scales", FAC_FLOATS, FAC_HOST | FAC_OPTIONAL },
                               { "sizes", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { "roi", FAC_FLOATS, FAC_HOST | FAC_OPTIONAL },
                               { 0 } };
enum { SCALES = 1, SIZES, ROI };

bool fac_interpolate_reals(const fac_value *v, fac_reals *to) {
    const int64_t n = v ? fac_dims_count(&v->type.dims) : 0;
    fac_tensor *wide = NULL;
    to->n = 0;
    if (n == 0) return true;
    if (v->leaf != FAC_CONST || !v->tensor || n < 0 || n > FAC_REALS) return false;
    if (fac_tensor_convert(v->tensor, FAC_F64, &wide, NULL)) return false;
    const fac_status s = fac_tensor_read(wide, to->v, (size_t)n * sizeof *to->v, NULL);
    fac_tensor_free(wide);
    to->n = s ? 0 : (int)n;
    return !s;
}

/* All as options; false: some of it is still computed. */
static bool known(const fac_node *n, fac_interpolate_opts *o) {
    *o = *(const fac_interpolate_opts *)n->attrs;
    return fac_interpolate_reals(n->in[SCALES], &o->scales) &&
           (!n->in[ROI] || fac_interpolate_reals(n->in[ROI], &o->roi));
}

static bool has_length(fac_node *n, int port, int count) {
    if (!n->in[port] || fac_list_may_have(n->in[port], count)) return true;
    return fac_fail(n, FAC_E_SHAPE, "%s has not %d numbers", n->op->in[port].name, count);
}

static bool infer(fac_node *n) {
    fac_interpolate_opts o;
    fac_reals scales;
    int axes[FAC_DIMS];
    fac_type y = n->in[0]->type;
    const int count = fac_interpolate_axes(n, axes);
    if (count < 0 || !has_length(n, SCALES, count) || !has_length(n, SIZES, count) ||
        !has_length(n, ROI, 2 * count))
        return false;
    if (!n->in[SCALES] == !n->in[SIZES])
        return fac_fail(n, FAC_E_ARGUMENT, "it takes either scales or sizes");
    known(n, &o);
    bool fits = true;
    if (n->in[SIZES])
        fits = fac_interpolate_by_sizes(n, n->in[SIZES], axes, count, &y.dims);
    else if (fac_interpolate_reals(n->in[SCALES], &scales))
        fits = fac_interpolate_by_scales(n, &scales, axes, count, &y.dims);
    else
        for (int k = 0; k < count; k++) y.dims.d[axes[k]] = fac_symbol(n->graph, NULL);
    if (!fits || !fac_interpolate_makes(n, axes, count, &y.dims)) return false;
    n->out[0]->type = y;
    return true;
}

static void expand(const fac_node *n, fac_value *out[]) {
    fac_interpolate_opts o;
    if (known(n, &o))
        out[0] = fac_interpolate(n->in[0], n->in[SIZES], &o);
    else
        out[0] = fac_fail_graph(n->graph, FAC_E_UNSUPPORTED,
                                "interpolate_by: its scales or its part are not known");
}

static int64_t expands(const fac_node *n) {
    fac_interpolate_opts o;
    return known(n, &o) ? 8 : 0;
}

static const fac_case cases[] = {
    { "interpolate_by(f32[1,2,4,5], f32{1,1,2,1.5})", -2, 2, 0 },
    { "interpolate_by(f16[1,2,4,5], -, i64{3,7}) axes=2,3 rounding=ceil", -2, 2, 0 },
    { 0 }
};

const fac_op fac_op_interpolate_by = {
    .name = "interpolate_by",
    .doc = "other sizes, by options that are computed",
    .in = in,
    .out = fac_ports_y,
    .attrs = fac_interpolate_table,
    .attrs_size = sizeof(fac_interpolate_opts),
    .infer = infer,
    .expand = expand,
    .expands = expands,
    .cost = fac_interpolate_cost,
    .save = fac_interpolate_save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_interpolate_by(fac_value *x, fac_value *scales, fac_value *sizes, fac_value *roi,
                              const fac_interpolate_opts *opts) {
    fac_interpolate_opts o = opts ? *opts : (fac_interpolate_opts){ 0 };
    if (fac_interpolate_reals(scales, &o.scales) && (!roi || fac_interpolate_reals(roi, &o.roi)))
        return fac_interpolate(x, sizes, &o);
    return fac_emit(&fac_op_interpolate_by, &o, 4, (fac_value *[]){ x, scales, sizes, roi });
}
