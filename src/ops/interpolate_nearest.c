/* Resizing by nearest neighbours, of any dtype.  Expands to a gather for each axis.
 */
#include "base/memory.h"
#include "ops/interpolate.h"
#include "ops/shape.h"

/* Where element i of y lies in x, along one axis. */
static int64_t from(const fac_interpolate_opts *o, const fac_interpolate_axis *a, int64_t i) {
    double weight;
    int64_t at = i;
    if (!a->same) fac_interpolate_tap(o, a, i, &at, &weight);
    return at;
}

/* Its elements are elements of x: what is blended, or comes from outside, is interpolate's. */
static bool infer(fac_node *n) {
    const fac_interpolate_opts *o = n->attrs;
    if (o->mode != FAC_INTERPOLATE_NEAREST)
        return fac_fail(n, FAC_E_ARGUMENT, "mode is not nearest");
    if (o->coordinates == FAC_INTERPOLATE_CROP)
        return fac_fail(n, FAC_E_ARGUMENT, "it does not crop");
    return fac_interpolate_infer(n);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dims *x = &r->in[0].type.dims, *y = &r->out[0].type.dims;
    const int64_t *sizes = r->nin > 1 ? r->in[1].i : NULL, count = fac_dims_count(y);
    fac_interpolate_axis axes[FAC_DIMS];
    for (int k = 0; k < x->n; k++) axes[k] = fac_interpolate_axis_of(r->attrs, x, y, sizes, k);
    for (int64_t e = 0; e < count; e++) {
        int64_t rest = e, at = 0, step = 1;
        for (int k = x->n - 1; k >= 0; k--) {
            at += step * from(r->attrs, &axes[k], rest % y->d[k]);
            rest /= y->d[k];
            step *= x->d[k];
        }
        if (r->out[0].f)
            r->out[0].f[e] = r->in[0].f[at];
        else
            r->out[0].i[e] = r->in[0].i[at];
    }
    return FAC_OK;
}

static fac_value *along(const fac_interpolate_opts *o, const fac_interpolate_axis *a, fac_value *x,
                        int axis) {
    int64_t *list = fac_alloc((size_t)a->out + 1, sizeof *list);
    if (!list)
        return fac_fail_graph(x->graph, FAC_E_NOMEM, "no memory for %lld indices",
                              (long long)a->out);
    for (int64_t i = 0; i < a->out; i++) list[i] = from(o, a, i);
    fac_value *y = fac_gather(x, fac_ints_long(x->graph, list, (int)a->out), axis);
    fac_release(list);
    return y;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_dims *x = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    fac_contents sizes = { 0 };
    const bool known = !n->in[1] || fac_known_numbers(n->in[1], &sizes);
    out[0] = known ? n->in[0]
                   : fac_fail_graph(n->graph, FAC_E_UNSUPPORTED,
                                    "interpolate_nearest: its sizes are not known");
    for (int axis = 0; axis < x->n && known; axis++) {
        if (x->d[axis] == y->d[axis] && x->d[axis] < 0) continue;
        if (x->d[axis] < 0 || y->d[axis] < 0) {
            out[0] = fac_fail_graph(n->graph, FAC_E_UNSUPPORTED,
                                    "interpolate_nearest: the size of axis %d is not known", axis);
            return;
        }
        const fac_interpolate_axis a =
            fac_interpolate_axis_of(n->attrs, x, y, n->in[1] ? sizes.v : NULL, axis);
        if (!a.same) out[0] = along(n->attrs, &a, out[0], axis);
    }
}

static const fac_case cases[] = {
    { "interpolate_nearest(f32[1,2,3,5], i64{1,2,7,4})", -2, 2, 0 },
    { "interpolate_nearest(f32[2,3,4,5], -) axes=2,3 scales=2,2 coordinates=asymmetric "
      "rounding=floor",
      -2, 2, 0 },
    { "interpolate_nearest(u8[2,3,4], i64{7,3}) axes=2,1 rounding=ceil", 0, 200, 0 },
    { "interpolate_nearest(i64[5,4], -) scales=0.6,1.7 coordinates=align_corners "
      "rounding=round_prefer_ceil",
      -9, 9, 0 },
    { "interpolate_nearest(f16[1,2,4,4], i64{7,5}) axes=2,3 aspect=not_smaller", -2, 2, 0 },
    { "interpolate_nearest(bool[6], i64{9}) coordinates=tf_half_pixel_for_nn", 0, 1, 0 },
    { "interpolate_nearest(f32[0,2], i64{0,4})", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_interpolate_nearest = {
    .name = "interpolate_nearest",
    .doc = "other sizes, by nearest neighbours",
    .in = fac_interpolate_in,
    .out = fac_ports_y,
    .attrs = fac_interpolate_table,
    .attrs_size = sizeof(fac_interpolate_opts),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = fac_interpolate_cost,
    .save = fac_interpolate_save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

extern const fac_op fac_op_interpolate;
fac_value *fac_interpolate(fac_value *x, fac_value *sizes, const fac_interpolate_opts *opts) {
    static const fac_interpolate_opts usual;
    const fac_interpolate_opts *o = opts ? opts : &usual;
    const fac_dtype t = x->type.dtype;
    if (o->mode == FAC_INTERPOLATE_NEAREST && o->coordinates != FAC_INTERPOLATE_CROP)
        return fac_emit(&fac_op_interpolate_nearest, o, 2, (fac_value *[]){ x, sizes });
    if (t != FAC_TEXT && t != FAC_NONE && fac_dtype_get(t)->kind != 'f')
        return fac_cast(fac_interpolate(fac_cast(x, FAC_F32), sizes, o), t);
    return fac_emit(&fac_op_interpolate, o, 2, (fac_value *[]){ x, sizes });
}
