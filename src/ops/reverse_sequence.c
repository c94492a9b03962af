#include "ops/shape.h"

#if FAC_INTERFACE
/* x whose first lengths[b] elements along time_axis come in the other order, for each b of
 * batch_axis; what follows them stays. lengths: integers [B].  Any dtype. */
fac_value *fac_reverse_sequence(fac_value *x, fac_value *lengths, int batch_axis, int time_axis);
#endif

typedef struct attrs {
    int64_t batch_axis, time_axis;
} attrs;
static const fac_attr table[] = { { "batch_axis", FAC_A_INT, offsetof(attrs, batch_axis), 0, 0,
                                    -FAC_DIMS, FAC_DIMS - 1, NULL, "of the sequences" },
                                  { "time_axis", FAC_A_INT, offsetof(attrs, time_axis), 0, 0,
                                    -FAC_DIMS, FAC_DIMS - 1, NULL,
                                    "along which they are reversed" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, 0 }, { "lengths", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims, *l = &n->in[1]->type.dims;
    const int batch = fac_axis(a->batch_axis, x->n), time = fac_axis(a->time_axis, x->n);
    if (batch < 0 || time < 0 || batch == time)
        return fac_fail(n, FAC_E_ARGUMENT, "batch_axis %lld and time_axis %lld of %d dims",
                        (long long)a->batch_axis, (long long)a->time_axis, x->n);
    if (l->n != 1 || (l->d[0] >= 0 && x->d[batch] >= 0 && l->d[0] != x->d[batch]))
        return fac_fail(n, FAC_E_SHAPE, "lengths must have one number for each element of axis %d",
                        batch);
    n->out[0]->type = n->in[0]->type;
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_dims *x = &r->in[0].type.dims;
    const int batch = fac_axis(a->batch_axis, x->n), time = fac_axis(a->time_axis, x->n);
    int64_t step = 1, count = fac_dims_count(x);
    for (int k = time + 1; k < x->n; k++) step *= x->d[k];
    for (int64_t e = 0; e < count; e++) {
        int64_t rest = e, place[FAC_DIMS] = { 0 };
        for (int k = x->n - 1; k >= 0; k--) {
            place[k] = rest % x->d[k];
            rest /= x->d[k];
        }
        const int64_t length =
            r->in[1].i[place[batch]] < x->d[time] ? r->in[1].i[place[batch]] : x->d[time];
        const int64_t at = place[time] < length ? e + (length - 1 - 2 * place[time]) * step : e;
        if (r->out[0].f)
            r->out[0].f[e] = r->in[0].f[at];
        else
            r->out[0].i[e] = r->in[0].i[at];
    }
    return FAC_OK;
}

/* Numbers along one axis of x, with 1 in place of its other dims. */
static fac_value *along(fac_value *x, fac_value *numbers, int axis) {
    fac_dims d = { .n = x->type.dims.n };
    for (int k = 0; k < d.n; k++) d.d[k] = k == axis ? x->type.dims.d[axis] : 1;
    return fac_reshape_exactly(numbers, fac_ints(x->graph, d));
}

/* An index for each element: length - 1 - t before the end of a sequence, t after it. */
static void expand(const fac_node *n, fac_value *out[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0], *one = fac_number(n->graph, FAC_I64, 1),
              *zero = fac_number(n->graph, FAC_I64, 0);
    const int batch = fac_axis(a->batch_axis, x->type.dims.n),
              time = fac_axis(a->time_axis, x->type.dims.n);
    fac_value *size = fac_gather(fac_shape_of(x), fac_number(n->graph, FAC_I64, time), 0);
    fac_value *t = along(x, fac_arange(zero, size, one), time);
    fac_value *length = fac_min(along(x, fac_cast(n->in[1], FAC_I64), batch), size);
    fac_value *reversed = fac_sub(fac_sub(length, one), t);
    fac_value *index = fac_where(fac_less(t, length), reversed, t);
    out[0] = fac_gather_elements(x, fac_expand_to(index, fac_shape_of(x)), time);
}

/* It is its own inverse. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    dx[0] = fac_reverse_sequence(dy[0], n->in[1], (int)a->batch_axis, (int)a->time_axis);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in_[], fac_value *out[]) {
    (void)g;
    out[0] = fac_reverse_sequence(in_[0], in_[1], (int)fac_onnx_int(n, "batch_axis", 1),
                                  (int)fac_onnx_int(n, "time_axis", 0));
}
static const fac_onnx_attr names[] = { { "batch_axis", NULL }, { "time_axis", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "ReverseSequence", 10, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const int rank = n->in[0]->type.dims.n;
    if (fac_axis(a->batch_axis, rank) > 1 || fac_axis(a->time_axis, rank) > 1) return false;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_list_of(w, n->in[1]) };
    fac_onnx_put(w, "ReverseSequence", 2, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "batch_axis", fac_axis(a->batch_axis, rank));
    fac_onnx_put_int(w, "time_axis", fac_axis(a->time_axis, rank));
    return true;
}

static const fac_case cases[] = { { "reverse_sequence(f32[3,5,2], i64[3]) time_axis=1", 0, 5, 0 },
                                  { "reverse_sequence(i32[4,3], i32[3]) batch_axis=1", 0, 4, 0 },
                                  { "reverse_sequence(f16[2,3,1], i64[2]) time_axis=1", 0, 3, 0 },
                                  { "reverse_sequence(f32[0,2], i64[0]) time_axis=1", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_reverse_sequence = {
    .name = "reverse_sequence",
    .doc = "the beginnings of sequences in the other order",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .grad = grad,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_reverse_sequence(fac_value *x, fac_value *lengths, int batch_axis, int time_axis) {
    return fac_emit(&fac_op_reverse_sequence, &(attrs){ batch_axis, time_axis }, 2,
                    (fac_value *[]){ x, lengths });
}
