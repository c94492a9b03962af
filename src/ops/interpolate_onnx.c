/* Resize and Upsample: how ONNX spells interpolate, interpolate_nearest and interpolate_by. */
#include <string.h>
#include "graph/onnx_write.h"
#include "ops/fusions.h"
#include "ops/interpolate.h"
#include "ops/shape.h"

extern const fac_op fac_op_interpolate_by;

const char *const fac_interpolate_modes[] = { "nearest", "linear", "cubic", NULL };
const char *const fac_interpolate_places[] = { "half_pixel",           "pytorch_half_pixel",
                                               "align_corners",        "asymmetric",
                                               "tf_crop_and_resize",   "half_pixel_symmetric",
                                               "tf_half_pixel_for_nn", NULL };
const char *const fac_interpolate_roundings[] = { "round_prefer_floor", "round_prefer_ceil",
                                                  "floor", "ceil", NULL };
const char *const fac_interpolate_aspects[] = { "stretch", "not_larger", "not_smaller", NULL };

/* ---- reading ---- */

bool fac_interpolate_choice(const fac_onnx_node *n, fac_graph *g, const char *attr,
                            const char *missing, const char *const *choices, int *to) {
    const char *text = fac_onnx_text(n, attr, missing);
    for (*to = 0; choices[*to]; ++*to)
        if (!strcmp(choices[*to], text)) return true;
    fac_fail_graph(g, FAC_E_FORMAT, "%s: %s is \"%s\"", n->type, attr, text);
    return false;
}

/* An operand, unless it is absent or has no elements. */
static fac_value *some(const fac_onnx_node *n, fac_value *const x[], int k) {
    return n->nin > k && x[k] && fac_dims_count(&x[k]->type.dims) != 0 ? x[k] : NULL;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_interpolate_opts o = { .axes = fac_onnx_ints(n, "axes"),
                               .cubic_a = fac_onnx_real(n, "cubic_coeff_a", -0.75),
                               .extrapolation = fac_onnx_real(n, "extrapolation_value", 0),
                               .exclude_outside = fac_onnx_int(n, "exclude_outside", 0) != 0,
                               .antialias = fac_onnx_int(n, "antialias", 0) != 0 };
    const bool understood =
        fac_interpolate_choice(n, g, "mode", "nearest", fac_interpolate_modes, &o.mode) &&
        fac_interpolate_choice(n, g, "coordinate_transformation_mode", "half_pixel",
                               fac_interpolate_places, &o.coordinates) &&
        fac_interpolate_choice(n, g, "nearest_mode", "round_prefer_floor",
                               fac_interpolate_roundings, &o.rounding) &&
        fac_interpolate_choice(n, g, "keep_aspect_ratio_policy", "stretch", fac_interpolate_aspects,
                               &o.aspect);
    fac_value *roi = o.coordinates == FAC_INTERPOLATE_CROP ? some(n, x, 1) : NULL,
              *sizes = some(n, x, 3);
    if (sizes) sizes = fac_cast(sizes, FAC_I64);
    if (!understood)
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "Resize");
    else
        y[0] = fac_interpolate_by(x[0], sizes ? NULL : some(n, x, 2), sizes, roi, &o);
}

/* Opset 10, and Upsample: asymmetric, rounded down. */
static void load_old(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    static const char *const names[] = { "nearest", "linear", "bilinear", NULL };
    fac_interpolate_opts o = { .coordinates = FAC_INTERPOLATE_ASYMMETRIC,
                               .rounding = FAC_INTERPOLATE_FLOOR };
    if (!fac_interpolate_choice(n, g, "mode", "nearest", names, &o.mode)) {
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "%s", n->type);
        return;
    }
    if (o.mode > FAC_INTERPOLATE_LINEAR) o.mode = FAC_INTERPOLATE_LINEAR;
    if (n->nin < 2) {
        o.scales.n = fac_onnx_reals(n, "scales", o.scales.v, FAC_DIMS);
        y[0] = fac_interpolate(x[0], NULL, &o);
    } else
        y[0] = fac_interpolate_by(x[0], x[1], NULL, NULL, &o);
}

static const fac_onnx_attr names[] = { { "mode", NULL },
                                       { "coordinate_transformation_mode", NULL },
                                       { "nearest_mode", NULL },
                                       { "cubic_coeff_a", NULL },
                                       { "exclude_outside", NULL },
                                       { "extrapolation_value", NULL },
                                       { "antialias", NULL },
                                       { "axes", NULL },
                                       { "keep_aspect_ratio_policy", NULL },
                                       { 0 } };
static const fac_onnx_attr old_names[] = { { "mode", NULL }, { "scales", NULL }, { 0 } };
const fac_onnx fac_interpolate_onnx[] = { { "", "Resize", 11, 0, names, load, 0 },
                                          { "", "Resize", 10, 10, old_names, load_old, 0 },
                                          { "", "Upsample", 7, 9, old_names, load_old, 0 },
                                          { "com.microsoft.nchwc", "Upsample", 1, 0,
                                            fac_names_nchwc_upsample, fac_load_nchwc_upsample, 1 },
                                          { 0 } };

/* ---- writing ---- */

/* Operands 1 to 3 of Resize: roi, scales, sizes. */
static void put_operands(const fac_onnx_writer *w, const fac_node *n, const char *to[4]) {
    const fac_interpolate_opts *o = n->attrs;
    const bool crop = o->coordinates == FAC_INTERPOLATE_CROP, old = w->opset < 13;
    const bool values = n->op == &fac_op_interpolate_by;
    fac_value *const sizes = n->in[values ? 2 : 1];
    if (values && n->in[3])
        to[1] = fac_onnx_name(w, n->in[3]);
    else if (crop || old)
        to[1] = fac_onnx_reals_list(w, crop ? o->roi.n : 0, o->roi.v);
    if (values && n->in[1])
        to[2] = fac_onnx_name(w, n->in[1]);
    else if (!sizes || old)
        to[2] = fac_onnx_reals_list(w, sizes ? 0 : o->scales.n, o->scales.v);
    if (sizes) to[3] = fac_onnx_list_of(w, sizes);
}

/* Whether this opset has all that the options ask for. */
static bool sayable(const fac_interpolate_opts *o, int opset) {
    const bool newer = o->axes.n || o->antialias || o->aspect != FAC_INTERPOLATE_STRETCH;
    if (opset < 11 || (newer && opset < 18)) return false;
    if (o->coordinates == FAC_INTERPOLATE_SYMMETRIC) return opset >= 19;
    return o->coordinates != FAC_INTERPOLATE_TF_HALF_PIXEL || opset < 13;
}

static void put_options(const fac_onnx_writer *w, const fac_interpolate_opts *o) {
    fac_onnx_put_text(w, "mode", fac_interpolate_modes[o->mode]);
    fac_onnx_put_text(w, "coordinate_transformation_mode", fac_interpolate_places[o->coordinates]);
    if (o->mode == FAC_INTERPOLATE_NEAREST)
        fac_onnx_put_text(w, "nearest_mode", fac_interpolate_roundings[o->rounding]);
    if (o->mode == FAC_INTERPOLATE_CUBIC) fac_onnx_put_real(w, "cubic_coeff_a", o->cubic_a);
    if (o->exclude_outside) fac_onnx_put_int(w, "exclude_outside", 1);
    if (o->antialias) fac_onnx_put_int(w, "antialias", 1);
    if (o->extrapolation != 0) fac_onnx_put_real(w, "extrapolation_value", o->extrapolation);
    if (o->axes.n) fac_onnx_put_ints(w, "axes", o->axes.n, o->axes.d);
    if (o->aspect != FAC_INTERPOLATE_STRETCH)
        fac_onnx_put_text(w, "keep_aspect_ratio_policy", fac_interpolate_aspects[o->aspect]);
}

bool fac_interpolate_save(const fac_onnx_writer *w, const fac_node *n) {
    const char *ins[4] = { fac_onnx_name(w, n->in[0]) };
    if (!sayable(n->attrs, w->opset)) return false;
    put_operands(w, n, ins);
    fac_onnx_put(w, "Resize", 4, ins, fac_onnx_name(w, n->out[0]));
    put_options(w, n->attrs);
    return true;
}
