#include "base/clamp.h"
#include "ops/fusions.h"
#include "ops/host_list.h"
#include "ops/onnx_in.h"
#include "ops/pad.h"
#include "ops/shape.h"

#if FAC_INTERFACE
typedef enum fac_pad_mode {
    FAC_PAD_CONSTANT,
    FAC_PAD_REFLECT,
    FAC_PAD_EDGE,
    FAC_PAD_WRAP
} fac_pad_mode;

/* x with more elements (or, negative, fewer) around: pads i64[2n] is [before each axis.., after
 * each axis..].  value: a scalar of x's dtype for FAC_PAD_CONSTANT, NULL is 0.  axes i64[n], NULL
 * is all. */
fac_value *fac_pad(fac_value *x, fac_value *pads, fac_value *value, fac_value *axes,
                   fac_pad_mode mode);
#endif

typedef struct attrs {
    int mode;
} attrs;
static const char *const modes[] = { "constant", "reflect", "edge", "wrap", NULL };
static const fac_attr table[] = {
    { "mode", FAC_A_ENUM, offsetof(attrs, mode), 0, 0, 0, 0, modes,
      "what the new elements are: the value, mirrored, the outermost, from the other side" },
    { 0 }
};
static const fac_port in[] = { { "x", FAC_ANY, 0 },
                               { "pads", FAC_INTS, FAC_HOST },
                               { "value", FAC_ANY, FAC_OPTIONAL },
                               { "axes", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { 0 } };

bool fac_pad_dims(fac_node *n, int axes_at, int mode, fac_dims *to) {
    fac_contents pads, axes = { 0 };
    bool seen[FAC_DIMS];
    *to = n->in[0]->type.dims;
    const bool open = n->in[axes_at] && fac_list_is_open(n->in[axes_at]);
    const int count = n->in[axes_at] ? fac_host_length(n->in[axes_at]) : to->n;
    if (!open && (count < 0 || !fac_list_may_have(n->in[1], 2 * count)))
        return fac_fail(n, FAC_E_SHAPE, "pads must have two numbers for each axis");
    if (!fac_host_numbers(n, 1, &pads) ||
        (n->in[axes_at] && !fac_host_numbers(n, axes_at, &axes))) {
        const bool which = n->in[axes_at] && fac_host_numbers(n, axes_at, &axes) &&
                           fac_axes_set(n, &axes, to->n, seen);
        for (int k = 0; k < to->n; k++)
            if (!which || seen[k]) to->d[k] = fac_symbol(n->graph, NULL);
        return true;
    }
    if (!n->in[axes_at])
        for (axes.n = 0; axes.n < count; axes.n++) axes.v[axes.n] = axes.n;
    if (!fac_axes_set(n, &axes, to->n, seen)) return false;
    for (int k = 0; k < count; k++) {
        int64_t *d = &to->d[fac_axis(axes.v[k], to->n)], before = pads.v[k],
                after = pads.v[k + count];
        if (before > INT32_MAX || after > INT32_MAX || before < -INT32_MAX || after < -INT32_MAX)
            return fac_fail(n, FAC_E_SHAPE, "a padding of %lld and %lld", (long long)before,
                            (long long)after);
        int64_t more = before + after;
        if (*d == 0 && more > 0 && mode != FAC_PAD_CONSTANT)
            return fac_fail(n, FAC_E_SHAPE, "nothing to repeat along an axis of size 0");
        if (*d < 0)
            *d = more >= 0 ? fac_size_sum(n->graph, *d, more)
                           : fac_size_difference(n->graph, *d, -more);
        else if (*d + more < 0)
            return fac_fail(n, FAC_E_SHAPE, "axis %lld of size %lld is cut by %lld",
                            (long long)axes.v[k], (long long)*d, (long long)-more);
        else
            *d += more;
    }
    return true;
}

static bool infer(fac_node *n) {
    fac_type y = n->in[0]->type;
    if (n->in[2] && n->in[2]->type.dtype != y.dtype)
        return fac_fail(n, FAC_E_DTYPE, "value must have x's dtype");
    if (n->in[2] && !fac_may_be_one(n->in[2]))
        return fac_fail(n, FAC_E_SHAPE, "value must be one number");
    if (!fac_pad_dims(n, 3, ((const attrs *)n->attrs)->mode, &y.dims)) return false;
    n->out[0]->type = y;
    return true;
}

static int64_t mod(int64_t a, int64_t b) {
    int64_t r = a % b;
    return r < 0 ? r + b : r;
}

int64_t fac_pad_from(int mode, int64_t i, int64_t size) {
    if (mode == FAC_PAD_EDGE || size == 1) return fac_clamp(i, 0, size - 1);
    if (mode == FAC_PAD_WRAP) return mod(i, size);
    i = mod(i, 2 * size - 2);
    return i < size ? i : 2 * size - 2 - i;
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const fac_dims *x = &m->in[0].type.dims;
    const int mode = ((const attrs *)m->attrs)->mode,
              count = (int)(fac_dims_count(&m->in[1].type.dims) / 2);
    const int64_t *axes = m->nin > 3 ? m->in[3].i : NULL;
    *input = 0;
    for (int k = 0; k < x->n; k++) from[k] = to[k];
    for (int k = 0; k < count; k++) {
        const int axis = axes ? fac_axis(axes[k], x->n) : k;
        if (axis < 0) return false;
        const int64_t size = x->d[axis];
        int64_t i = to[axis] - m->in[1].i[k];
        if (i < 0 || i >= size) {
            if (mode == FAC_PAD_CONSTANT) {
                *input = 2;
                for (int j = 0; j < FAC_DIMS; j++) from[j] = 0;
                return m->nin > 2 && m->in[2].type.dtype != FAC_NONE;
            }
            i = fac_pad_from(mode, i, size);
        }
        from[axis] = i;
    }
    return true;
}

extern const fac_op fac_op_pad_grad;
/* Padding by less cuts off what was added; all of that is the value. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const int mode = ((const attrs *)n->attrs)->mode;
    if (mode != FAC_PAD_CONSTANT) {
        dx[0] = fac_emit(&fac_op_pad_grad, n->attrs, 4,
                         (fac_value *[]){ n->in[0], n->in[1], n->in[3], dy[0] });
        return;
    }
    fac_value *inner = fac_pad(dy[0], fac_neg(n->in[1]), NULL, n->in[3], FAC_PAD_CONSTANT);
    if (fac_needs(n, 0)) dx[0] = inner;
    if (fac_needs(n, 2)) {
        const fac_dims all = { 0 };
        dx[2] = fac_reshape_like(fac_sub(fac_sum(dy[0], all, false), fac_sum(inner, all, false)),
                                 n->in[2]);
    }
}

static fac_pad_mode mode_of(const fac_onnx_node *n, fac_graph *g) {
    const char *mode = fac_onnx_text(n, "mode", "constant");
    for (int k = 0; modes[k]; k++) {
        const char *a = modes[k], *b = mode;
        while (*a && *a == *b) a++, b++;
        if (*a == *b) return (fac_pad_mode)k;
    }
    fac_fail_graph(g, FAC_E_FORMAT, "Pad: mode is \"%s\", expected constant, reflect, edge or wrap",
                   mode);
    return FAC_PAD_CONSTANT;
}
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *out[]) {
    out[0] = fac_pad(ins[0], ins[1], fac_onnx_in(n, ins, 2), fac_onnx_in(n, ins, 3), mode_of(n, g));
}
/* Before opset 11 pads and value were attributes. */
static void load_old(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[],
                     fac_value *out[]) {
    int64_t pads[2 * FAC_DIMS];
    int count = fac_onnx_ints_long(n, "pads", pads, 2 * FAC_DIMS);
    double value = fac_onnx_real(n, "value", 0);
    if (count < 0 || count > 2 * FAC_DIMS)
        out[0] = fac_fail_graph(g, FAC_E_FORMAT, "Pad: pads has %d numbers", count);
    else
        out[0] = fac_pad(ins[0], fac_ints_long(g, pads, count),
                         value != 0 ? fac_number(g, fac_value_type(ins[0]).dtype, value) : NULL,
                         NULL, mode_of(n, g));
}
static const fac_onnx_attr new_names[] = { { "mode", NULL }, { 0 } };
static const fac_onnx_attr old_names[] = {
    { "mode", NULL }, { "pads", NULL }, { "value", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "Pad", 11, 0, new_names, load, 0 },
                                 { "", "Pad", 2, 10, old_names, load_old, 1 },
                                 { "com.microsoft", "Pad", 1, 0, new_names, load, 0 },
                                 { "com.microsoft.nchwc", "ReorderInput", 1, 0, fac_names_reorder,
                                   fac_load_reorder_input, 1 },
                                 { 0 } };
/* axes came with opset 18, wrap with 19. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const int mode = ((const attrs *)n->attrs)->mode, rank = n->in[0]->type.dims.n;
    fac_contents pads, axes;
    int64_t all[2 * FAC_DIMS] = { 0 };
    if (mode == FAC_PAD_WRAP && w->opset < 19) return false;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_list_of(w, n->in[1]),
                          fac_onnx_ranked(w, n->in[2], 0),
                          w->opset < 18 ? NULL : fac_onnx_list_of(w, n->in[3]) };
    if (w->opset < 18 && n->in[3]) {
        if (!fac_known_numbers(n->in[1], &pads) || !fac_known_numbers(n->in[3], &axes))
            return false;
        for (int k = 0; k < axes.n; k++) {
            int axis = fac_axis(axes.v[k], rank);
            all[axis] = pads.v[k];
            all[rank + axis] = pads.v[axes.n + k];
        }
        ins[1] = fac_onnx_list(w, 2 * rank, all);
    }
    fac_onnx_put(w, "Pad", 4, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_text(w, "mode", modes[mode]);
    return true;
}

static const fac_case cases[] = { { "pad(f32[2,3], i64{1,0,2,3})", -4, 4, 0 },
                                  { "pad(f32[2,3], i64{1,0,2,3}, f32[])", -4, 4, 0 },
                                  { "pad(f32[1,2,4,5], i64{0,0,1,2,0,0,2,1}) mode=reflect", -4, 4,
                                    0 },
                                  { "pad(i64[3,4], i64{2,-1,1,3}) mode=edge", -9, 9, 0 },
                                  { "pad(f32[3,4], i64{5,0,0,6}) mode=wrap", -4, 4, 0 },
                                  { "pad(f32[3,4], i64{-1,-2}, -, i64{1})", -4, 4, 0 },
                                  { "pad(f16[0,2], i64{1,0,1,0})", 0, 0, 0 },
                                  { "pad(f32[3,4], i64{9,7}, -, i64{-1}) mode=reflect", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_pad = {
    .name = "pad",
    .doc = "x with more elements around",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .move = move,
    .onnx = onnx,
    .save = save,
    .grad = grad,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_pad(fac_value *x, fac_value *pads, fac_value *value, fac_value *axes,
                   fac_pad_mode mode) {
    return fac_emit(&fac_op_pad, &(attrs){ mode }, 4, (fac_value *[]){ x, pads, value, axes });
}
