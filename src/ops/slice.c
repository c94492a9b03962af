#include <stdio.h>
#include "base/clamp.h"
#include "ops/fusions.h"
#include "ops/host_list.h"
#include "ops/shape.h"
#include "ops/slice.h"

#if FAC_INTERFACE
/* x[.., start:end:step, ..] along one axis, as in Python: negative numbers count from the end, what
 * is outside is cut off, step is not 0.  A view when step > 0. */
fac_value *fac_slice(fac_value *x, int axis, int64_t start, int64_t end, int64_t step);
/* x[.., start[k]:end[k], ..] along axis[k], for n different axes at once. */
fac_value *fac_slice_axes(fac_value *x, int n, const int64_t axis[], const int64_t start[],
                          const int64_t end[]);
#endif

static const fac_port in[] = { { "x", FAC_ANY, 0 },
                               { "starts", FAC_INTS, FAC_HOST },
                               { "ends", FAC_INTS, FAC_HOST },
                               { "axes", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { "steps", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { 0 } };

extern const fac_op fac_op_slice;

fac_slice_range fac_slice_range_of(int64_t size, int64_t start, int64_t end, int64_t step) {
    const int64_t low = step > 0 ? 0 : -1;
    const int64_t high = step > 0 ? size : size - 1;
    if (start < 0) start = start < -size ? low : start + size;
    if (end < 0) end = end < -size ? low : end + size;
    start = fac_clamp(start, low, high);
    end = fac_clamp(end, low, high);
    const int64_t span = step > 0 ? end - start : start - end;
    const uint64_t pace = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    return (fac_slice_range){ start, step,
                              span > 0 ? (int64_t)(((uint64_t)span - 1) / pace) + 1 : 0 };
}

/* All of the inputs as numbers.  false: not known. */
typedef struct cut {
    bool known;
    int n;
    fac_contents start, end, axis, step;
} cut;

static bool numbers(const fac_node *n, cut *c) {
    *c = (cut){ 0 };
    if (!fac_host_numbers(n, 1, &c->start) || !fac_host_numbers(n, 2, &c->end)) return false;
    if (n->in[3] && !fac_host_numbers(n, 3, &c->axis)) return false;
    if (n->in[4] && !fac_host_numbers(n, 4, &c->step)) return false;
    c->n = c->start.n;
    c->known = true;
    for (int k = 0; k < c->n; k++) {
        if (!n->in[3]) c->axis.v[k] = k;
        if (!n->in[4]) c->step.v[k] = 1;
    }
    return true;
}

/* A slice of a size that is a symbol: named by its formula unless it is all of it. */
static int64_t symbolic(fac_graph *g, int64_t size, int64_t start, int64_t end, int64_t step) {
    char name[96];
    if (start == 0 && end >= INT32_MAX && step == 1) return size;
    int n = snprintf(name, sizeof name, "%s[%lld:%lld:%lld]", fac_symbol_name(g, size),
                     (long long)start, (long long)end, (long long)step);
    return fac_symbol(g, n < (int)sizeof name ? name : NULL);
}

/* The dims of the result; c->known: and the numbers that they come from. */
static bool dims_of(fac_node *n, fac_dims *to, cut *c) {
    const fac_type *x = &n->in[0]->type;
    bool seen[FAC_DIMS];
    *to = x->dims;
    bool open = true; /* all lists: any of the dims may be cut */
    int length = 0;
    for (int i = 1; i < 5; i++) {
        if (!n->in[i] || fac_list_is_open(n->in[i])) continue;
        open = false;
        length = fac_host_length(n->in[i]);
    }
    for (int i = 1; i < 5; i++)
        if (n->in[i] && (!fac_list_may_have(n->in[i], length) || length < 0 || length > x->dims.n))
            return fac_fail(n, FAC_E_SHAPE,
                            "starts, ends, axes and steps must have one length, at most %d",
                            x->dims.n);
    if (!numbers(n, c)) {
        fac_contents axes;
        bool which = fac_host_numbers(n, 3, &axes) && fac_axes_set(n, &axes, x->dims.n, seen);
        for (int k = 0; k < x->dims.n; k++)
            if (which ? seen[k] : n->in[3] || open || k < length)
                to->d[k] = fac_symbol(n->graph, NULL);
        *c = (cut){ 0 };
        return true;
    }
    c->axis.n = c->n;
    if (!fac_axes_set(n, &c->axis, x->dims.n, seen)) return false;
    for (int k = 0; k < c->n; k++) {
        const int axis = fac_axis(c->axis.v[k], x->dims.n);
        const int64_t size = x->dims.d[axis];
        if (c->step.v[k] == 0) return fac_fail(n, FAC_E_ARGUMENT, "a step of 0");
        to->d[axis] =
            size < 0 ? symbolic(n->graph, size, c->start.v[k], c->end.v[k], c->step.v[k])
                     : fac_slice_range_of(size, c->start.v[k], c->end.v[k], c->step.v[k]).count;
    }
    return true;
}

bool fac_slice_dims(fac_node *n, fac_dims *to) {
    cut c;
    return dims_of(n, to, &c);
}

static bool infer(fac_node *n) {
    const fac_type *x = &n->in[0]->type;
    fac_dims y;
    cut c;
    if (!dims_of(n, &y, &c)) return false;
    n->out[0]->type = (fac_type){ x->dtype, y };

    fac_contents items, r = { 0 };
    if (!c.known || !fac_known(n->in[0], &items) || x->dims.n != 1) return true;
    fac_slice_range s = { 0, 1, items.n };
    if (c.n) s = fac_slice_range_of(items.n, c.start.v[0], c.end.v[0], c.step.v[0]);
    for (r.n = 0; r.n < s.count; r.n++)
        fac_contents_put(&r, r.n, fac_contents_get(&items, (int)(s.first + r.n * s.step)));
    return fac_knows_items(n, &r);
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const fac_dims *x = &m->in[0].type.dims;
    const int64_t *axes = m->nin > 3 ? m->in[3].i : NULL;
    const int64_t *steps = m->nin > 4 ? m->in[4].i : NULL;
    const int count = (int)fac_dims_count(&m->in[1].type.dims);
    for (int k = 0; k < x->n; k++) from[k] = to[k];
    for (int k = 0; k < count; k++) {
        const int axis = axes ? fac_axis(axes[k], x->n) : k;
        if (axis < 0) return false;
        fac_slice_range r =
            fac_slice_range_of(x->d[axis], m->in[1].i[k], m->in[2].i[k], steps ? steps[k] : 1);
        from[axis] = r.first + to[axis] * r.step;
        if (from[axis] < 0 || from[axis] >= x->d[axis]) return false;
    }
    *input = 0;
    return true;
}

static bool view(const fac_node *n, const fac_layout *in_, fac_layout *out) {
    const fac_dims *x = &n->in[0]->type.dims;
    cut c;
    if (in_->block || fac_dims_count(x) < 0 || !numbers(n, &c)) return false;
    fac_layout y = { .offset = in_->offset };
    for (int k = 0; k < x->n; k++) y.stride[k] = in_->stride[k];
    for (int k = 0; k < c.n; k++) {
        const int axis = fac_axis(c.axis.v[k], x->n);
        fac_slice_range r = fac_slice_range_of(x->d[axis], c.start.v[k], c.end.v[k], c.step.v[k]);
        if (r.step < 0 && r.count > 1) return false;
        if (r.count > 0) y.offset += r.first * in_->stride[axis];
        if (r.count > 1) y.stride[axis] *= r.step;
    }
    *out = y;
    return true;
}

extern const fac_op fac_op_slice_grad;
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_value *all[] = { n->in[0], n->in[1], n->in[2], n->in[3], n->in[4], dy[0] };
    dx[0] = fac_emit(&fac_op_slice_grad, NULL, 6, all);
}

/* Before opset 10 all were attributes. */
static void load_old(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[],
                     fac_value *out[]) {
    fac_dims axes = fac_onnx_ints(n, "axes");
    fac_value *list[] = { ins[0], fac_ints(g, fac_onnx_ints(n, "starts")),
                          fac_ints(g, fac_onnx_ints(n, "ends")),
                          axes.n ? fac_ints(g, axes) : NULL };
    out[0] = fac_emit(&fac_op_slice, NULL, 4, list);
}
static const fac_onnx_attr names[] = {
    { "starts", NULL }, { "ends", NULL }, { "axes", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "Slice", 10, 0, NULL, fac_load_slice, 3 },
                                 { "", "Slice", 1, 9, names, load_old, 1 },
                                 { "", "Crop", 1, 0, fac_names_crop, fac_load_crop, 1 },
                                 { "com.microsoft.nchwc", "ReorderOutput", 1, 0, fac_names_reorder,
                                   fac_load_reorder_output, 1 },
                                 { 0 } };
static const fac_case cases[] = {
    { "slice(f32[5,6], i64{1}, i64{4}, i64{0})", -4, 4, 0 },
    { "slice(f32[5,6], i64{0,5}, i64{5,0}, i64{0,1}, i64{2,-2})", -4, 4, 0 },
    { "slice(f32[5,6], i64{-3}, i64{-1}, i64{1})", -4, 4, 0 },
    { "slice(i64[7], i64{9}, i64{-99}, i64{0}, i64{-1})", -9, 9, 0 },
    { "slice(i64[7], i64{-9}, i64{-99}, i64{0}, i64{-1})", -9, 9, 0 },
    { "slice(f16[2,8], i64{0}, i64{9223372036854775807}, i64{1}, i64{3})", -4, 4, 0 },
    { "slice(f32[5,6], i64{3}, i64{1})", 0, 0, 0 },
    { "slice(f32[0,6], i64{0}, i64{9})", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_slice = {
    .name = "slice",
    .doc = "x[start:end:step] along some axes",
    .in = in,
    .out = fac_ports_y,
    .is = FAC_OP_KNOWS,
    .infer = infer,
    .move = move,
    .view = view,
    .onnx = onnx,
    .save = fac_save_slice,
    .grad = grad,
    .cases = cases,
    .images = FAC_IMAGES_VIEW,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_slice(fac_value *x, int axis, int64_t start, int64_t end, int64_t step) {
    fac_graph *g = fac_value_graph(x);
    fac_value *list[] = { x, fac_ints(g, fac_shape(start)), fac_ints(g, fac_shape(end)),
                          fac_ints(g, fac_shape(axis)), fac_ints(g, fac_shape(step)) };
    return fac_emit(&fac_op_slice, NULL, 5, list);
}
fac_value *fac_slice_axes(fac_value *x, int n, const int64_t axis[], const int64_t start[],
                          const int64_t end[]) {
    fac_graph *g = fac_value_graph(x);
    fac_dims from = { .n = n }, to = { .n = n }, along = { .n = n };
    if (n < 0 || n > FAC_DIMS) return fac_fail_graph(g, FAC_E_ARGUMENT, "a slice along %d axes", n);
    for (int k = 0; k < n; k++) {
        from.d[k] = start[k];
        to.d[k] = end[k];
        along.d[k] = axis[k];
    }
    fac_value *list[] = { x, fac_ints(g, from), fac_ints(g, to), fac_ints(g, along) };
    return fac_emit(&fac_op_slice, NULL, 4, list);
}
