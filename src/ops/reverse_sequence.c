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
                                    -FAC_DIMS, FAC_DIMS - 1, NULL, "along which they are turned" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, 0 }, { "lengths", FAC_INTS, FAC_INDEX }, { 0 } };

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

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const attrs *a = m->attrs;
    const fac_dims *x = &m->in[0].type.dims;
    const int batch = fac_axis(a->batch_axis, x->n), time = fac_axis(a->time_axis, x->n);
    int64_t length = m->in[1].i[to[batch]];
    if (length > x->d[time]) length = x->d[time];
    for (int k = 0; k < x->n; k++) from[k] = to[k];
    if (to[time] < length) from[time] = length - 1 - to[time];
    *input = 0;
    return true;
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
    .move = move,
    .grad = grad,
    .onnx = onnx,
    .save = save,
    .cases = cases,
};
fac_value *fac_reverse_sequence(fac_value *x, fac_value *lengths, int batch_axis, int time_axis) {
    return fac_emit(&fac_op_reverse_sequence, &(attrs){ batch_axis, time_axis }, 2,
                    (fac_value *[]){ x, lengths });
}
