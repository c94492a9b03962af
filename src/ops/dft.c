/* ONNX's DFT: discrete Fourier transforms along one axis, of complex numbers as pairs. */
#include <string.h>
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/cost.h"
#include "ops/dft.h"
#include "ops/grad.h"
#include "ops/host_list.h"
#include "ops/shape.h"
#include "ops/spectrum.h"

#if FAC_INTERFACE
/* X[k] = sum over i of x[i] e^(-2 pi i k sqrt(-1) / n),  inverse: e^(+..) / n.   x [.., in, .., 1
 * or 2] -> y [.., out, .., 2]; the last dim of size 2 holds real and imaginary parts, of size 1
 * real numbers.  length, an i64 or NULL: n, to which x is cut or filled up with zeros; NULL: in.
 * onesided: k = 0 .. n/2 only, the rest of a real signal's spectrum mirrors them; inverse: x is
 * such a spectrum (n is 2 (in - 1) where no length is given), y [.., n, .., 1] is real. The axis is
 * not the last one.  Floats. */
fac_value *fac_dft(fac_value *x, fac_value *length, fac_value *axis, bool inverse, bool onesided);
#endif

typedef struct attrs {
    bool inverse, onesided;
} attrs;
static const fac_attr table[] = { { "inverse", FAC_A_FLAG, offsetof(attrs, inverse), 0, 0, 0, 0,
                                    NULL, "from a spectrum to a signal" },
                                  { "onesided", FAC_A_FLAG, offsetof(attrs, onesided), 0, 0, 0, 0,
                                    NULL, "half of the spectrum, of a real signal" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "length", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { "axis", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { 0 } };
enum { LENGTH = 1, AXIS };

/* Where it is; -1: not known yet, or out of range. */
static int axis_of(const fac_node *n) {
    const int rank = n->in[0]->type.dims.n;
    fac_contents c;
    if (!n->in[AXIS]) return rank - 2;
    return fac_host_numbers(n, AXIS, &c) ? fac_axis(c.v[0], rank) : -1;
}

/* n; -1: not known yet. */
static int64_t length_of(const fac_node *n, int axis) {
    const attrs *a = n->attrs;
    const int64_t size = n->in[0]->type.dims.d[axis];
    fac_contents c;
    if (n->in[LENGTH]) return fac_host_numbers(n, LENGTH, &c) ? c.v[0] : -1;
    return a->inverse && a->onesided && size >= 0 ? 2 * (size - 1) : size;
}

/* The size of the result along the axis; 0 after fac_fail. */
static int64_t size_of(fac_node *n, int axis) {
    const attrs *a = n->attrs;
    const int64_t length = length_of(n, axis);
    fac_contents c;
    const bool known =
        n->in[LENGTH] ? fac_host_numbers(n, LENGTH, &c) : n->in[0]->type.dims.d[axis] >= 0;
    const bool none =
        n->in[0]->type.dims.d[axis] == 0 && a->inverse && a->onesided && !n->in[LENGTH];
    if (length == 0 || length > INT32_MAX || none || (known && length < 0)) {
        fac_fail(n, FAC_E_ARGUMENT, "a length of %lld, expected 1 to %d", (long long)length,
                 INT32_MAX);
        return 0;
    }
    if (length < 0 && (n->in[LENGTH] || (a->inverse && a->onesided)))
        return fac_symbol(n->graph, NULL);
    if (a->inverse || !a->onesided) return length;
    return fac_size_sum(n->graph, fac_size_quotient(n->graph, length, 2), 1);
}

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    const fac_type *x = &n->in[0]->type;
    const int rank = x->dims.n;
    fac_type y = *x;
    fac_contents c;
    const int64_t parts = rank ? x->dims.d[rank - 1] : 0;
    if (rank < 2 || (parts >= 0 && parts != 1 && parts != 2))
        return fac_fail(n, FAC_E_SHAPE, "x must have a last dim of size 1 or 2");
    for (int k = LENGTH; k <= AXIS; k++)
        if (n->in[k] && !fac_list_may_have(n->in[k], 1))
            return fac_fail(n, FAC_E_SHAPE, "%s must be one number", in[k].name);
    const int axis = axis_of(n);
    if (axis == rank - 1 || (axis < 0 && n->in[AXIS] && fac_host_numbers(n, AXIS, &c)))
        return fac_fail(n, FAC_E_ARGUMENT, "no signals along that axis of %d dims", rank);
    for (int k = 0; k < rank - 1 && axis < 0; k++) y.dims.d[k] = fac_symbol(n->graph, NULL);
    if (axis >= 0) y.dims.d[axis] = size_of(n, axis);
    if (axis >= 0 && !y.dims.d[axis]) return false;
    y.dims.d[rank - 1] = a->onesided && a->inverse ? 1 : 2;
    n->out[0]->type = y;
    return true;
}

static bool transform_of(const attrs *a, const fac_dims *x, const fac_dims *y, int axis, int64_t n,
                         fac_transform *t) {
    *t = (fac_transform){
        n, x->d[axis], y->d[axis], (int)x->d[x->n - 1], (int)y->d[y->n - 1], a->inverse, a->onesided
    };
    return t->n > 0 && t->in >= 0 && t->out >= 0;
}

bool fac_transform_of(const void *of, const fac_dims *x, const fac_dims *y, int axis,
                      int64_t length, fac_transform *to) {
    const attrs *a = of;
    int64_t n = x->d[axis];
    if (length >= 0)
        n = length;
    else if (a->inverse && a->onesided)
        n = 2 * (n - 1);
    return transform_of(a, x, y, axis, n, to);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const attrs *a = r->attrs;
    const fac_dims *x = &r->in[0].type.dims, *y = &r->out[0].type.dims;
    const int64_t *given = r->nin > AXIS ? r->in[AXIS].i : NULL;
    const int axis = given ? fac_axis(given[0], x->n) : x->n - 2, last = x->n - 1;
    const int64_t before = fac_dims_part(x, 0, axis), between = fac_dims_part(x, axis + 1, last);
    fac_transform t;
    const int64_t *length = r->nin > LENGTH ? r->in[LENGTH].i : NULL;
    if (!fac_transform_of(a, x, y, axis, length ? length[0] : -1, &t)) return FAC_OK;
    for (int64_t b = 0; b < before; b++)
        for (int64_t k = 0; k < t.out; k++)
            for (int64_t m = 0; m < between; m++)
                for (int po = 0; po < t.cout; po++) {
                    double sum = 0;
                    for (int64_t i = 0; i < t.in; i++)
                        for (int pi = 0; pi < t.cin; pi++)
                            sum += r->in[0].f[((b * t.in + i) * between + m) * t.cin + pi] *
                                   fac_transform_entry(&t, i, pi, k, po);
                    r->out[0].f[((b * t.out + k) * between + m) * t.cout + po] =
                        t.inverse ? sum / (double)t.n : sum;
                }
    return FAC_OK;
}

/* The longest that is one product where a dim in front is a symbol; the longest at all, where all
 * are numbers.  The reference sums what is longer. */
enum { LARGEST_WHOLE = 4096, LARGEST = 1 << 24, NODES = 8, NODES_OF_PARTS = 200 };
static bool known(const fac_node *n, fac_transform *t) {
    const int axis = axis_of(n);
    const int64_t length = axis < 0 ? -1 : length_of(n, axis);
    const fac_dims *x = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    return length > 0 && x->d[x->n - 1] > 0 && transform_of(n->attrs, x, y, axis, length, t);
}

static bool in_parts(const fac_node *n, const fac_transform *t) {
    return t->n <= LARGEST && fac_dims_known(&n->in[0]->type.dims, 0) && fac_transform_divides(t);
}

static int64_t expands(const fac_node *n) {
    fac_transform t;
    if (!known(n, &t)) return 0;
    if (in_parts(n, &t)) return NODES_OF_PARTS;
    return t.n <= LARGEST_WHOLE ? NODES : 0;
}

/* The axis goes before the last one. */
static void expand(const fac_node *n, fac_value *out[]) {
    const fac_dims *x = &n->in[0]->type.dims;
    const int axis = axis_of(n), last = x->n - 1;
    fac_dims order = { .n = x->n }, back = order;
    fac_transform t;
    if (!known(n, &t)) {
        out[0] = fac_fail_graph(n->graph, FAC_E_UNSUPPORTED, "dft: its length is not known");
        return;
    }
    for (int k = 0; k < x->n; k++) {
        order.d[k] = k >= axis && k < last ? k + 1 : k;
        if (k == last - 1) order.d[k] = axis;
        back.d[order.d[k]] = k;
    }
    const int64_t used = t.inverse && t.onesided ? t.n / 2 + 1 : t.n;
    fac_value *v = axis == last - 1 ? n->in[0] : fac_transpose(n->in[0], order);
    if (t.in > used) v = fac_slice(v, last - 1, 0, t.in = used, 1);
    v = in_parts(n, &t) ? fac_transform_parts(v, &t) : fac_transform_whole(v, &t);
    if (t.inverse) v = fac_div(v, fac_number(n->graph, v->type.dtype, (double)t.n));
    out[0] = axis == last - 1 ? v : fac_transpose(v, back);
}

/* n numbers along an axis: cut, or filled up with zeros. */
static fac_value *fitted(fac_value *v, int axis, int64_t n) {
    const int64_t more = n - v->type.dims.d[axis];
    if (more <= 0) return more ? fac_slice(v, axis, 0, n, 1) : v;
    return fac_pad(v, fac_ints(v->graph, fac_shape(0, more)), NULL,
                   fac_ints(v->graph, fac_shape(axis)), FAC_PAD_CONSTANT);
}

/* How often the numbers of half a spectrum stand in a signal, over its length; the parts that do
 * not count have 0. */
static fac_value *weights(const fac_node *n, const fac_transform *t, int axis) {
    const int64_t half = t->n / 2 + 1;
    fac_dims dims = n->in[0]->type.dims;
    for (int k = 0; k < dims.n - 1; k++) dims.d[k] = k == axis ? half : 1;
    double *to = fac_alloc((size_t)(2 * half), sizeof *to);
    if (!to) return fac_fail_graph(n->graph, FAC_E_NOMEM, "dft: no memory for its weights");
    for (int64_t k = 0; k < half; k++) {
        const bool alone = !k || 2 * k == t->n;
        to[2 * k] = (alone ? 1. : 2.) / (double)t->n;
        to[2 * k + 1] = alone ? 0 : to[2 * k];
    }
    fac_value *v = fac_constant(n->graph, n->in[0]->type.dtype, dims, to);
    fac_release(to);
    return v;
}

static bool grads(const fac_node *n, fac_value *const dy[]) {
    fac_transform t;
    (void)dy;
    return known(n, &t);
}

/* The matrix of a transform is symmetric, and its conjugate is n times its inverse. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_transform t;
    if (!fac_needs(n, 0) || !known(n, &t)) return;
    const int axis = axis_of(n), last = n->in[0]->type.dims.n - 1;
    const bool real = t.inverse && t.onesided;
    fac_value *length = fac_ints(n->graph, fac_shape(t.n));
    fac_value *v = fac_dft(dy[0], length, fac_ints(n->graph, fac_shape(axis)), !t.inverse, real);
    if (real)
        v = fac_mul(v, weights(n, &t, axis));
    else
        v = fac_grad_times(v, t.inverse ? 1 / (double)t.n : (double)t.n);
    v = fitted(v, axis, t.in);
    dx[0] = t.cin == 1 ? fac_slice(v, last, 0, 1, 1) : v;
}

static void cost(const fac_node *n, fac_cost *c) {
    fac_transform t;
    fac_cost_bytes(n, c);
    c->macs = known(n, &t) ? fac_cost_count(n->in[0]) * (double)t.out * t.cout : 0;
    c->other = 0;
}

/* ---- ONNX ---- */

/* The axis was an attribute, 1 by default, before opset 20; then an input, -2 by default. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_value *axis = n->nin > 2 ? x[2] : NULL;
    if (n->opset < 20) axis = fac_ints(g, fac_shape(fac_onnx_int(n, "axis", 1)));
    y[0] = fac_dft(x[0], n->nin > 1 ? x[1] : NULL, axis, fac_onnx_int(n, "inverse", 0) != 0,
                   fac_onnx_int(n, "onesided", 0) != 0);
}
static const fac_onnx_attr names[] = {
    { "axis", NULL }, { "inverse", NULL }, { "onesided", NULL }, { 0 }
};
static const fac_onnx onnx[] = { { "", "DFT", 17, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const int axis = axis_of(n);
    const fac_dims *x = &n->in[0]->type.dims;
    if (w->opset < 17 || (w->opset < 20 && axis < 0)) return false;
    if (a->onesided && !a->inverse && x->d[x->n - 1] == 2) return false; /* of real signals alone */
    const char *ins[] = { fac_onnx_name(w, n->in[0]),
                          n->in[LENGTH] ? fac_onnx_ranked(w, n->in[LENGTH], 0) : NULL,
                          n->in[AXIS] ? fac_onnx_ranked(w, n->in[AXIS], 0) : NULL };
    fac_onnx_put(w, "DFT", w->opset < 20 ? 2 : 3, ins, fac_onnx_name(w, n->out[0]));
    if (w->opset < 20) fac_onnx_put_int(w, "axis", axis);
    fac_onnx_put_int(w, "inverse", a->inverse);
    fac_onnx_put_int(w, "onesided", a->onesided);
    return true;
}

static const fac_case cases[] = {
    { "dft(f32[2,7,1])", -1, 1, 1e-5 },
    { "dft(f32[3,5,2,2], i64{4}, i64{1})", -1, 1, 1e-5 },
    { "dft(f32[2,6,2], i64{9}, i64{-2}) inverse", -1, 1, 1e-5 },
    { "dft(f32[2,8,1], -, i32{1}) onesided", -1, 1, 1e-5 },
    { "dft(f32[2,5,2]) inverse onesided", -1, 1, 1e-5 },
    { "dft(f64[5,3,2], i64{7}, i64{0}) inverse onesided", -1, 1, 1e-12 },
    { "dft(f16[2,4,1])", -1, 1, 4e-3 },
    { "dft(f32[2,256,1])", -1, 1, 2e-5 },
    { "dft(f32[130,2,2], -, i64{0}) inverse", -1, 1, 1e-5 },
    { "dft(f32[3,521,2], -, i64{1}) onesided", -1, 1, 4e-5 },
    { "dft(f64[2,76,2], i64{150}, i64{1}) inverse onesided", -1, 1, 1e-12 },
    { "dft(f64[1,550,1], i64{547}, i64{1})", -1, 1, 1e-11 },
    { "dft(f16[2,256,1]) onesided", -1, 1, 4e-2 },
    { "dft(f32[0,4,1])", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_dft = {
    .name = "dft",
    .doc = "discrete Fourier transforms along one axis",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .expands = expands,
    .grads = grads,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_dft(fac_value *x, fac_value *length, fac_value *axis, bool inverse, bool onesided) {
    return fac_emit(&fac_op_dft, &(attrs){ inverse, onesided }, 3,
                    (fac_value *[]){ x, length, axis });
}
