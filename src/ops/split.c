#include "base/memory.h"
#include "ops/host_list.h"
#include "ops/shape.h"
#include "graph/graph_internal.h"

#if FAC_INTERFACE
/* x cut along an axis into n parts, out[0..n): equal ones, the last smaller when they do not fit;
 * views of x. */
void fac_split(fac_value *x, int axis, int n, fac_value *out[]);
/* The same into parts of these sizes, an i64[n]; how many follows from its length. */
void fac_split_sizes(fac_value *x, int axis, fac_value *sizes, fac_value *out[]);
#endif

typedef struct attrs {
    int64_t axis, parts;
} attrs;
static const fac_attr table[] = { { "axis", FAC_A_INT, offsetof(attrs, axis), 0, 0, -FAC_DIMS,
                                    FAC_DIMS - 1, NULL, "the axis that is cut" },
                                  { "parts", FAC_A_INT, offsetof(attrs, parts), 0, 0, 0, 1 << 20,
                                    NULL, "how many; 0: as many as there are sizes" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, 0 },
                               { "sizes", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { 0 } };
static const fac_port out_ports[] = { { "y", FAC_ANY, FAC_VARIADIC }, { 0 } };

extern const fac_op fac_op_split;

/* The last parts are smaller unless it is known that all are equal. */
static int64_t open_part(fac_graph *g, int64_t size, int parts) {
    return fac_size_divides(g, size, parts) ? fac_size_quotient(g, size, parts)
                                            : fac_symbol(g, NULL);
}

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    const fac_type *x = &n->in[0]->type;
    const int axis = fac_axis(a->axis, x->dims.n);
    if (axis < 0)
        return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims", (long long)a->axis, x->dims.n);
    const int64_t size = x->dims.d[axis];
    const bool open = n->in[1] && fac_list_is_open(n->in[1]);
    int parts = n->in[1] && !open ? fac_host_length(n->in[1]) : (int)a->parts;
    fac_contents c;
    if (n->in[1] && a->parts && parts != a->parts)
        return fac_fail(n, FAC_E_SHAPE, "%d sizes for %lld parts", parts, (long long)a->parts);
    if (parts < 1) return fac_fail(n, FAC_E_ARGUMENT, "the number of parts must be known");
    if (!fac_node_outputs(n, parts)) return false;

    bool known = n->in[1] && fac_known(n->in[1], &c);
    int64_t sum = 0, each = n->in[1] || size < 0 ? 0 : (size + parts - 1) / parts;
    for (int k = 0; k < parts; k++) {
        int64_t part = known                    ? c.v[k]
                       : n->in[1]               ? fac_symbol(n->graph, NULL)
                       : size < 0               ? open_part(n->graph, size, parts)
                       : k * each >= size       ? 0
                       : size - k * each < each ? size - k * each
                                                : each;
        if (known && part < 0 && !(c.symbolic >> k & 1))
            return fac_fail(n, FAC_E_ARGUMENT, "part %d has size %lld", k, (long long)part);
        n->out[k]->type = *x;
        n->out[k]->type.dims.d[axis] = part;
        sum = part < 0 || sum < 0 ? -1 : fac_size_sum(n->graph, sum, part);
    }
    if (size >= 0 && sum >= 0 && sum != size)
        return fac_fail(n, FAC_E_SHAPE, "the parts are %lld together, dim %d is %lld",
                        (long long)sum, axis, (long long)size);
    return true;
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const attrs *a = m->attrs;
    const int axis = fac_axis(a->axis, m->out.n);
    for (int k = 0; k < m->out.n; k++) from[k] = to[k];
    if (m->nin > 1 && m->in[1].i) {
        for (int k = 0; k < m->output; k++) from[axis] += m->in[1].i[k];
    } else {
        from[axis] += m->output * ((m->in[0].type.dims.d[axis] + a->parts - 1) / a->parts);
    }
    *input = 0;
    return true;
}

static bool view(const fac_node *n, const fac_layout *in_, fac_layout *out) {
    const int axis = fac_axis(((const attrs *)n->attrs)->axis, n->in[0]->type.dims.n);
    int64_t at = 0;
    if (in_->block) return false;
    for (int k = 0; k < n->nout; k++) {
        out[k] = *in_;
        out[k].halo = 0;
        if (n->out[k]->type.dims.d[axis]) out[k].offset += at * in_->stride[axis];
        at += n->out[k]->type.dims.d[axis];
    }
    return true;
}

/* The parts again; zeros for one that was not used. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const int axis = fac_axis(((const attrs *)n->attrs)->axis, n->in[0]->type.dims.n);
    fac_value **parts = fac_arena_alloc(&n->graph->arena, (size_t)n->nout, sizeof *parts);
    if (!parts) {
        dx[0] = fac_fail_graph(n->graph, FAC_E_NOMEM, "split: no memory for a gradient of %d parts",
                               n->nout);
        return;
    }
    for (int k = 0; k < n->nout; k++)
        parts[k] = dy[k] ? dy[k] : fac_full(fac_shape_of(n->out[k]), n->out[k]->type.dtype, 0);
    dx[0] = fac_concat(parts, n->nout, axis);
}

/* The sizes of a file that are constants, an attribute before opset 13, in memory that the caller
 * releases; how many, -1: they are not, or memory is gone. */
static int constant_sizes(const fac_onnx_node *n, fac_value *const ins[], int64_t **to) {
    fac_value *v = n->nin > 1 ? ins[1] : NULL;
    fac_tensor *t = v && v->leaf == FAC_CONST ? v->tensor : NULL, *wide = NULL;
    int count = v ? -1 : fac_onnx_count(n, "split");
    if (t) count = (int)fac_dims_count(&v->type.dims);
    *to = count < 0 ? NULL : fac_alloc((size_t)count + 1, sizeof **to);
    if (!*to) return -1;
    if (!v) return fac_onnx_ints_long(n, "split", *to, count);
    const bool good = !fac_tensor_convert(t, FAC_I64, &wide, NULL) &&
                      !fac_tensor_read(wide, *to, (size_t)count * sizeof **to, NULL);
    fac_tensor_free(wide);
    return good ? count : -1;
}

/* More parts than there are numbers that a graph knows of a list: slices. */
static void load_many(const fac_onnx_node *n, fac_graph *g, fac_value *x, int axis, int count,
                      const int64_t *sizes, fac_value *out[]) {
    int64_t at = 0;
    const int k = fac_axis(axis, x->type.dims.n);
    for (int i = 0; i < count; i++) {
        if (sizes[i] < 0 || sizes[i] > INT64_MAX - at) {
            out[0] = fac_fail_graph(g, FAC_E_ARGUMENT, "Split: part %d has size %lld", i,
                                    (long long)sizes[i]);
            return;
        }
        if (i < n->nout) out[i] = fac_slice(x, axis, at, at + sizes[i], 1);
        at += sizes[i];
    }
    if (n->nout > count || (k >= 0 && fac_differ(x->type.dims.d[k], at)))
        out[0] = fac_fail_graph(g, FAC_E_SHAPE, "Split: %d sizes, %lld together, do not fit x",
                                count, (long long)at);
}

/* Without sizes, the number of outputs says how many parts (from 18 on: num_outputs). */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *out[]) {
    const int axis = (int)fac_onnx_int(n, "axis", 0);
    int64_t *list;
    const int count = constant_sizes(n, ins, &list);
    fac_value *sizes = n->nin > 1 ? ins[1] : NULL;
    if (!sizes && count >= 0 && count <= FAC_KNOWN) sizes = fac_ints_long(g, list, count);
    if (count > FAC_KNOWN)
        load_many(n, g, ins[0], axis, count, list, out);
    else {
        attrs a = { axis, sizes ? 0 : fac_onnx_int(n, "num_outputs", n->nout) };
        if (sizes && fac_list_is_open(sizes)) a.parts = n->nout; /* one number for each of them */
        fac_value *y = fac_emit(&fac_op_split, &a, 2, (fac_value *[]){ ins[0], sizes });
        for (int k = 0; k < n->nout; k++)
            out[k] = fac_value_other(y, k); /* the file may name fewer than there are parts */
    }
    fac_release(list);
}
static const fac_onnx_attr names[] = {
    { "axis", NULL }, { "split", NULL }, { "num_outputs", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "Split", 2, 0, names, load, 0 }, { 0 } };
/* Equal parts are as many as there are outputs, before opset 18 said how many; uneven ones, and
 * those of which the last is not read, need their sizes. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const bool ranked = n->in[0]->guess != FAC_RANKLESS;
    const int axis = ranked ? fac_axis(a->axis, n->in[0]->type.dims.n) : 0;
    int64_t sizes[FAC_KNOWN];
    bool known = n->in[0]->guess == FAC_CERTAIN && n->nout <= FAC_KNOWN, even = true;
    for (int k = 0; k < n->nout && known; k++) {
        sizes[k] = n->out[k]->type.dims.d[axis];
        known = sizes[k] >= 0;
        even = even && sizes[k] == sizes[0];
    }
    const bool counted = w->opset >= 18 || fac_onnx_name(w, n->out[n->nout - 1]);
    if (!n->in[1] && !counted && !known) return false;
    if (!n->in[1] && !ranked && w->opset < 18) return false;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), n->in[1] ? fac_onnx_list_of(w, n->in[1])
                                                      : known && !(even && counted)
                                                          ? fac_onnx_list(w, n->nout, sizes)
                                                          : NULL };
    const char *first = fac_onnx_name(w, n->out[0]);
    fac_onnx_put(w, "Split", 2, ins, first ? first : "");
    for (int k = 1; k < n->nout; k++) fac_onnx_put_out(w, fac_onnx_name(w, n->out[k]));
    fac_onnx_put_int(w, "axis", a->axis);
    if (!ins[1] && w->opset >= 18) fac_onnx_put_int(w, "num_outputs", n->nout);
    return true;
}

static const fac_case cases[] = { { "split(f32[2,6], i64{1,2,3}) axis=1", -4, 4, 0 },
                                  { "split(f32[6,2]) parts=3", -4, 4, 0 },
                                  { "split(i64[7]) parts=4", -9, 9, 0 },
                                  { "split(f16[2,4,3]) axis=1 parts=2", -4, 4, 0 },
                                  { "split(f32[0,2]) parts=2", 0, 0, 0 },
                                  { "split(f32[2,3], i64{0,3}) axis=-1", -4, 4, 0 },
                                  { 0 } };

const fac_op fac_op_split = {
    .name = "split",
    .doc = "x cut along an axis",
    .in = in,
    .out = out_ports,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .move = move,
    .view = view,
    .onnx = onnx,
    .save = save,
    .grad = grad,
    .cases = cases,
    .images = FAC_IMAGES_AXIS,
    .rounding = { .rule = FAC_ROUND_MOVES },
};

void fac_split(fac_value *x, int axis, int n, fac_value *out[]) {
    fac_value *y = fac_emit(&fac_op_split, &(attrs){ axis, n }, 1, &x);
    for (int k = 0; k < n; k++) out[k] = fac_value_other(y, k);
}

void fac_split_sizes(fac_value *x, int axis, fac_value *sizes, fac_value *out[]) {
    fac_value *y = fac_emit(&fac_op_split, &(attrs){ axis, 0 }, 2, (fac_value *[]){ x, sizes });
    int n = fac_host_length(sizes);
    for (int k = 0; k < n; k++) out[k] = fac_value_other(y, k);
}
